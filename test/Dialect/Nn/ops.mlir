// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

// CHECK: nn.weights @qa
#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!s = tensor<?x64xf32, #nn.rows<slot, 8>>
!plan = !moe.plan<experts = 384, top = 8>
module attributes {nn.limits = #nn.limits<token = 2048, seq = 16, context = 8192>, nn.numerics = #nn.numerics<version = 1, compute = f32, mla = phased, class = "f32">} {
nn.weights @qa "model.layers.{layer}.self_attn.q_a_proj.weight" over (layer = 0 to 3) stored blocks<f8E4M3FN, [128, 128], f32> view slice<dims = [64, 256, 512], dim = 1, from = 0, to = 128, transpose> : tensor<48x64xbf16>
nn.constant_table @rope rope<theta = 5.0e4, dims = 64, scaling = #nn.yarn<factor = 32.0, original = 4096, beta_fast = 1.0, beta_slow = 1.0, magnitude = 1.0, truncate = true>> : tensor<8192x2x32xf32>
nn.pool @cache over (layer = 0 to 3) planes (latent = 64 x f32, rope = 16 x f32) page 64 group 0
func.func @layer(%l: index, %x: !x, %b: !nn.batch, %e: !e, %w: !w) -> !x {
  %h = nn.rms_norm %x, @ln1[%l] eps 1.0e-6 : !x
  %a = nn.linear %h, @qa[%l] bias @qab[%l] order tree<8> : !x -> tensor<?x48xf32, #tok>
  %q, %kr = nn.split %a : tensor<?x48xf32, #tok> -> tensor<?x32xf32, #tok>, tensor<?x16xf32, #tok>
  %kv = mla.append @cache[%l], %h, %kr, %b : !x, tensor<?x16xf32, #tok> -> !kv
  %r0 = nn.rotary %x, @rope, %b first 0 count 64 interleaved : !x
  %p = moe.dispatch %e : !e -> !plan
  %in = moe.gather %x, %p : !x, !plan -> !s
  %d = moe.grouped_linear %in, %p, @down[%l] weighted %w : !w order tree<4> : !s, !plan -> !s
  %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 384 inner 96 act silu up_order tree<8> down_order tree<4> combine tree<128> : !x, !e, !w -> !x
  %e2, %w2 = moe.select %x, %b bias @bias[%l] layer %l first 1 score sigmoid top 8 groups 4 of 8 by max normalize scale 2.827 : !x -> !e, !w
  return %x : !x
}
func.func @k(%x: !x, %wt: tensor<48x64xbf16>) {
  %a = nn.linear %x, %wt : tensor<48x64xbf16> order tree<8> : !x -> tensor<?x48xf32, #tok>
  return
}
}
