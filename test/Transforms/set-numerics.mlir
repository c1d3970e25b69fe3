// RUN: k2c-opt %s --set-numerics | FileCheck %s
// RUN: k2c-opt %s --set-numerics --set-numerics | FileCheck %s
// RUN: k2c-opt %s --set-numerics="mla=absorbed" | FileCheck %s --check-prefix=ABSORBED
// RUN: k2c-opt %s --set-numerics="mla=expanded" | FileCheck %s --check-prefix=EXPANDED
// RUN: k2c-opt %s --set-numerics="compute=bf16" | FileCheck %s --check-prefix=BF16
// RUN: k2c-opt %s --set-numerics --remarks-filter=set-numerics 2>&1 | FileCheck %s --check-prefix=REMARK

// The identity of the bits lies on the module; a second run changes nothing.
// CHECK: module attributes {nn.numerics = #nn.numerics<version = {{[0-9]+}}, compute = f32, mla = phased, class = "f32">}
// BF16: module attributes {nn.numerics = #nn.numerics<version = {{[0-9]+}}, compute = bf16, mla = phased, class = "bf16-x86">}
// REMARK: remark: {{.*}}orders{{.*}}7 reductions have their order{{.*}}reductions=7

!x = tensor<?x64xf32, #nn.rows<token>>

nn.weights @w511 "w511" : tensor<64x511xf32>
nn.weights @w1024 "w1024" : tensor<64x1024xf32>
nn.weights @w18432 "w18432" : tensor<64x18432xf32>
nn.weights @gu "{layer}.{expert}.{g|u}" over (layer = 0 to 2, expert = 0 to 160) : tensor<160x2x1536x64xf32>
nn.weights @down "{layer}.{expert}" over (layer = 0 to 2, expert = 0 to 160) : tensor<160x64x1536xf32>
nn.weights @kvb "{layer}.kvb" over (layer = 0 to 2) : tensor<4x64x64xf32>

// N1: the largest power of two of leaves that is at most K / 512, within 1 and 8.
// CHECK-LABEL: func.func @contractions
func.func @contractions(%a: tensor<?x511xf32, #nn.rows<token>>, %b: tensor<?x1024xf32, #nn.rows<token>>,
                        %c: tensor<?x18432xf32, #nn.rows<token>>) -> (!x, !x, !x) {
  // CHECK: nn.linear %{{.*}}, @w511 order tree<1>
  %0 = nn.linear %a, @w511 : tensor<?x511xf32, #nn.rows<token>> -> !x
  // CHECK: %{{.*}} = nn.linear %{{.*}}, @w1024 order tree<2> : tensor<?x1024xf32, #tok> -> tensor<?x64xf32, #tok>
  %1 = nn.linear %b, @w1024 : tensor<?x1024xf32, #nn.rows<token>> -> !x
  // CHECK: nn.linear %{{.*}}, @w18432 order tree<8>
  %2 = nn.linear %c, @w18432 : tensor<?x18432xf32, #nn.rows<token>> -> !x
  return %0, %1, %2 : !x, !x, !x
}

// N5: 160 experts are 32 leaves of 5; each contraction has its own order.
// CHECK-LABEL: func.func @experts
func.func @experts(%l: index, %x: !x, %e: tensor<?x6xi32, #nn.rows<token>>, %w: tensor<?x6xf32, #nn.rows<token>>) -> !x {
  // CHECK: moe.experts {{.*}} act silu up_order tree<1> down_order tree<2> combine tree<32>
  %0 = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 160 inner 1536 act silu
      : !x, tensor<?x6xi32, #nn.rows<token>>, tensor<?x6xf32, #nn.rows<token>> -> !x
  return %0 : !x
}

// N3 and N4: attention has its order and the forms of its segments.
// CHECK-LABEL: func.func @latent
func.func @latent(%l: index, %q: tensor<?x4x48xf32, #nn.rows<token>>, %kv: !mla.view<latent = 64 x f32, rope = 16 x f32>,
                  %b: !nn.batch) -> tensor<?x4x32xf32, #nn.rows<token>> {
  // CHECK: mla.attention {{.*}} forms<prompt = table, generated = absorbed> order softmax<block = 64, split = by_position>
  // ABSORBED: mla.attention {{.*}} forms<prompt = absorbed, generated = absorbed>
  // EXPANDED: mla.attention {{.*}} forms<prompt = expanded, generated = expanded>
  %0 = mla.attention %q, %kv, @kvb[%l], %b nope 32 rope 16 v 32 scale 0.125
      : tensor<?x4x48xf32, #nn.rows<token>>, !mla.view<latent = 64 x f32, rope = 16 x f32>
      -> tensor<?x4x32xf32, #nn.rows<token>>
  return %0 : tensor<?x4x32xf32, #nn.rows<token>>
}

// What sums nothing has no order.
// CHECK-LABEL: func.func @add
func.func @add(%x: !x, %y: !x) -> !x {
  // CHECK: nn.add %{{.*}}, %{{.*}} : tensor
  %0 = nn.add %x, %y : !x
  return %0 : !x
}
