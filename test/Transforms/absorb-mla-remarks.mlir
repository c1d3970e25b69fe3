// RUN: k2c-opt %s --attach-plan="expanded-from=171" --absorb-mla --split-input-file --remarks-filter=absorb-mla 2>&1 | FileCheck %s
// RUN: k2c-opt %s --attach-plan --absorb-mla --split-input-file --remarks-filter=absorb-mla 2>&1 | FileCheck %s --check-prefix=NEVER

!q = tensor<?x4x48xf32, #nn.rows<token>>
!o = tensor<?x4x32xf32, #nn.rows<token>>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>

// CHECK: crossover{{.*}}prompt segments of 171 or more new tokens run expanded{{.*}}expanded_from_tokens=171
// NEVER: crossover{{.*}}prompt segments run absorbed at any length{{.*}}expanded_from_tokens=-1
nn.weights @kvb "{layer}.kvb" over (layer = 0 to 2) : tensor<4x64x64xbf16>
func.func @table(%l: index, %q: !q, %kv: !kv, %b: !nn.batch) -> !o {
  %o = mla.attention %q, %kv, @kvb[%l], %b nope 32 rope 16 v 32 scale 0.125
      forms<prompt = table, generated = absorbed> : !q, !kv -> !o
  return %o : !o
}

// -----

!q = tensor<?x4x48xf32, #nn.rows<token>>
!o = tensor<?x4x32xf32, #nn.rows<token>>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>

// CHECK: crossover{{.*}}one form for every segment
nn.weights @kvb "{layer}.kvb" over (layer = 0 to 2) : tensor<4x64x64xbf16>
func.func @one(%l: index, %q: !q, %kv: !kv, %b: !nn.batch) -> !o {
  %o = mla.attention %q, %kv, @kvb[%l], %b nope 32 rope 16 v 32 scale 0.125
      forms<prompt = absorbed, generated = absorbed> : !q, !kv -> !o
  return %o : !o
}
