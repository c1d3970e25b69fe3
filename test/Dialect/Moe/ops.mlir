// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>

nn.weights @router "layers.{layer}.mlp.gate.weight" over (layer = 1 to 3) : tensor<384x64xbf16>
nn.weights @bias "layers.{layer}.mlp.gate.e_score_correction_bias" over (layer = 1 to 3) : tensor<384xf32>
nn.weights @gu "layers.{layer}.mlp.experts.{expert}.{gate_proj|up_proj}.weight" over (layer = 1 to 3, expert = 0 to 384) : tensor<384x2x96x64xbf16>
nn.weights @down "layers.{layer}.mlp.experts.{expert}.down_proj.weight" over (layer = 1 to 3, expert = 0 to 384) : tensor<384x64x96xbf16>

// CHECK-LABEL: func.func @whole
func.func @whole(%l: index, %n: !x, %b: !nn.batch) -> !x {
  %s = nn.linear %n, @router[%l] order tree<1> : !x -> !s
  // CHECK: moe.routing %{{.*}}, %{{.*}} bias @bias[%{{.*}}] layer %{{.*}} among 1 to 61 score sigmoid top 8 groups 1 of 1 normalize scale 2.827 : tensor<?x384xf32, #tok> -> tensor<?x8xi32, #tok>, tensor<?x8xf32, #tok>
  %e, %w = moe.routing %s, %b bias @bias[%l] layer %l among 1 to 61 score sigmoid top 8 groups 1 of 1 normalize scale 2.827 : !s -> !e, !w
  // CHECK: moe.routing %{{.*}}, %{{.*}} layer %{{.*}} among 1 to 4 and 5 to 61 step 2 score softmax top 8 groups 3 of 8 by max scale 16.0 : tensor
  %e2, %w2 = moe.routing %s, %b layer %l among 1 to 4 and 5 to 61 step 2 score softmax top 8 groups 3 of 8 by max scale 16.0 : !s -> !e, !w
  // CHECK: moe.routing %{{.*}} score sigmoid top 8 groups 1 of 1 bound<nodes = 4, slots = 96, max = 2, penalty = 0.25> scale 1.0 : tensor
  %e3, %w3 = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 8 groups 1 of 1
      bound<nodes = 4, slots = 96, max = 2, penalty = 0.25> scale 1.0 : !s -> !e, !w
  // CHECK: moe.experts %{{.*}}, %{{.*}}, %{{.*}}, @gu[%{{.*}}], @down[%{{.*}}] experts 384 inner 96 act silu up_order tree<8> down_order tree<4> combine tree<128> : tensor<?x64xf32, #tok>, tensor<?x8xi32, #tok>, tensor<?x8xf32, #tok> -> tensor<?x64xf32, #tok>
  %r = moe.experts %n, %e, %w, @gu[%l], @down[%l] experts 384 inner 96 act silu up_order tree<8> down_order tree<4> combine tree<128> : !x, !e, !w -> !x
  // CHECK: experts 384 inner 96 act silu : tensor
  %r2 = moe.experts %n, %e, %w, @gu[%l], @down[%l] experts 384 inner 96 act silu : !x, !e, !w -> !x
  return %r : !x
}

// CHECK-LABEL: func.func @parts
func.func @parts(%l: index, %n: !x, %e: !e, %w: !w) -> !x {
  // CHECK: moe.permutation %{{.*}} : tensor<?x8xi32, #tok> -> !permutation
  %p = moe.permutation %e : !e -> !permutation
  // CHECK: moe.permute %{{.*}}, %{{.*}} : tensor<?x64xf32, #tok>, !permutation -> tensor<?x64xf32, #slot>
  %in = moe.permute %n, %p : !x, !permutation -> !slots
  // CHECK: moe.grouped_linear %{{.*}}, %{{.*}}, @gu[%{{.*}}] order tree<8> : tensor
  %g = moe.grouped_linear %in, %p, @gu[%l] order tree<8> : !slots, !permutation -> tensor<?x2x96xf32, #nn.rows<slot, 8>>
  %a = nn.gated_act %g act silu : tensor<?x2x96xf32, #nn.rows<slot, 8>> -> tensor<?x96xf32, #nn.rows<slot, 8>>
  // CHECK: moe.grouped_linear %{{.*}}, %{{.*}}, @down[%{{.*}}] weighted %{{.*}} : tensor<?x8xf32, #tok> order tree<4> : tensor
  %d = moe.grouped_linear %a, %p, @down[%l] weighted %w : !w order tree<4> : tensor<?x96xf32, #nn.rows<slot, 8>>, !permutation -> !slots
  // CHECK: moe.unpermute %{{.*}}, %{{.*}}, %{{.*}} order tree<128> : tensor<?x64xf32, #slot>, !permutation, tensor<?x8xi32, #tok> -> tensor<?x64xf32, #tok>
  %r = moe.unpermute %d, %p, %e order tree<128> : !slots, !permutation, !e -> !x
  return %r : !x
}

// A rank may hold fewer experts than a token chooses: a row has no more slots than there are experts.
// CHECK-LABEL: func.func @few
// CHECK-SAME: !permutation1
func.func @few(%p: !moe.permutation<experts = 4, top = 8, site = 0, max = 512>, %x: tensor<?x64xf32, #nn.rows<recv, site = 0, max = 512>>) {
  // CHECK: -> tensor<?x64xf32, #slot1>
  %in = moe.permute %x, %p : tensor<?x64xf32, #nn.rows<recv, site = 0, max = 512>>, !moe.permutation<experts = 4, top = 8, site = 0, max = 512>
      -> tensor<?x64xf32, #nn.rows<slot, 4, site = 0, max = 512>>
  return
}
