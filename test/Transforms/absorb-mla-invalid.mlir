// RUN: k2c-opt %s --attach-plan --absorb-mla --split-input-file --verify-diagnostics

!q = tensor<?x4x48xf32, #nn.rows<token>>
!o = tensor<?x4x32xf32, #nn.rows<token>>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>

nn.weights @kvb "{layer}.kvb" over (layer = 0 to 2) : tensor<4x64x64xbf16>
func.func @no_forms(%l: index, %q: !q, %kv: !kv, %b: !nn.batch) -> !o {
  // expected-error @below {{'mla.attention' op has no forms; run set-numerics before absorb-mla}}
  %o = mla.attention %q, %kv, @kvb[%l], %b nope 32 rope 16 v 32 scale 0.125 : !q, !kv -> !o
  return %o : !o
}

// -----

!q = tensor<?x4x48xf32, #nn.rows<token>>
!o = tensor<?x4x32xf32, #nn.rows<token>>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>

func.func @value(%w: tensor<4x64x64xbf16>, %q: !q, %kv: !kv, %b: !nn.batch) -> !o {
  // expected-error @below {{'mla.attention' op reads kv_b from a value or from a view; absorb-mla needs the whole family of the checkpoint}}
  %o = mla.attention %q, %kv, %w : tensor<4x64x64xbf16>, %b nope 32 rope 16 v 32 scale 0.125
      forms<prompt = table, generated = absorbed> : !q, !kv -> !o
  return %o : !o
}

// -----

!q = tensor<?x4x48xf32, #nn.rows<token>>
!o = tensor<?x4x32xf32, #nn.rows<token>>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>

nn.weights @part "{layer}.kvb" over (layer = 0 to 2) view slice<dims = [4, 96, 64], dim = 1, from = 0, to = 64> : tensor<4x64x64xbf16>
func.func @view(%l: index, %q: !q, %kv: !kv, %b: !nn.batch) -> !o {
  // expected-error @below {{'mla.attention' op reads kv_b from a value or from a view; absorb-mla needs the whole family of the checkpoint}}
  %o = mla.attention %q, %kv, @part[%l], %b nope 32 rope 16 v 32 scale 0.125
      forms<prompt = table, generated = absorbed> : !q, !kv -> !o
  return %o : !o
}
