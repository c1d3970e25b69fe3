// RUN: k2c-opt %s --absorb-mla --verify-diagnostics

!q = tensor<?x4x48xf32, #nn.rows<token>>
!o = tensor<?x4x32xf32, #nn.rows<token>>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>

nn.weights @kvb "{layer}.kvb" over (layer = 0 to 2) : tensor<4x64x64xbf16>
func.func @table(%l: index, %q: !q, %kv: !kv, %b: !nn.batch) -> !o {
  // expected-error @below {{'mla.attention' op is absorbed as dist.plan says; run attach-plan before absorb-mla}}
  %o = mla.attention %q, %kv, @kvb[%l], %b nope 32 rope 16 v 32 scale 0.125
      forms<prompt = table, generated = absorbed> : !q, !kv -> !o
  return %o : !o
}
