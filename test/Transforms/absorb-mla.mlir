// RUN: k2c-opt %s --set-numerics --attach-plan="expanded-from=171" --absorb-mla | FileCheck %s
// RUN: k2c-opt %s --set-numerics --attach-plan="expanded-from=171" --absorb-mla --absorb-mla | FileCheck %s
// RUN: k2c-opt %s --set-numerics="mla=absorbed" --attach-plan --absorb-mla | FileCheck %s --check-prefix=ABSORBED
// RUN: k2c-opt %s --set-numerics --attach-plan="expanded-from=-1" --absorb-mla | FileCheck %s --check-prefix=ABSORBED
// RUN: k2c-opt %s --set-numerics="mla=expanded" --attach-plan="expanded-from=0" --absorb-mla | FileCheck %s --check-prefix=EXPANDED

!q = tensor<?x4x48xf32, #nn.rows<token>>
!o = tensor<?x4x32xf32, #nn.rows<token>>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>

// W_UK and W_UV become families of their own, slices of each head of kv_b, which is no longer read.
// CHECK-NOT: @kvb "
// CHECK-DAG: nn.weights @kvb_uk_t "{layer}.kvb" over (layer = 0 to 2) view slice<dims = [4, 64, 64], dim = 1, from = 0, to = 32, transpose> : tensor<4x64x32xbf16>
// CHECK-DAG: nn.weights @kvb_uk "{layer}.kvb" over (layer = 0 to 2) view slice<dims = [4, 64, 64], dim = 1, from = 0, to = 32> : tensor<4x32x64xbf16>
// CHECK-DAG: nn.weights @kvb_uv "{layer}.kvb" over (layer = 0 to 2) view slice<dims = [4, 64, 64], dim = 1, from = 32, to = 64> : tensor<4x32x64xbf16>
// One form needs no slice of the other, and cuts its own as both do. Where the plan lets no prompt run expanded, phased
// attention has the absorbed form alone.
// ABSORBED-NOT: @kvb_uk "
// EXPANDED-NOT: @kvb_uk_t
// EXPANDED-DAG: nn.weights @kvb_uk "{layer}.kvb" over (layer = 0 to 2) view slice<dims = [4, 64, 64], dim = 1, from = 0, to = 32>
// EXPANDED-DAG: nn.weights @kvb_uv "{layer}.kvb" over (layer = 0 to 2) view slice<dims = [4, 64, 64], dim = 1, from = 32, to = 64>
nn.weights @kvb "{layer}.kvb" over (layer = 0 to 2) : tensor<4x64x64xbf16>

// CHECK-LABEL: func.func @phased(
// CHECK-SAME: %[[L:.*]]: index, %[[Q:.*]]: tensor<?x4x48xf32, #tok>, %[[KV:.*]]: !kv, %[[B:.*]]: !nn.batch)
func.func @phased(%l: index, %q: !q, %kv: !kv, %b: !nn.batch) -> !o {
  // CHECK: %[[P:.*]]:2 = nn.split %[[Q]]
  // CHECK: %[[QL:.*]] = mla.absorb_query %[[P]]#0, @kvb_uk_t[%[[L]]], %[[B]] order tree<1>
  // CHECK: %[[OL:.*]] = mla.attention_absorbed %[[QL]], %[[P]]#1, %[[KV]], %[[B]] scale 0.125 order softmax<block = 64, split = by_position>
  // CHECK: %[[OA:.*]] = mla.expand_output %[[OL]], @kvb_uv[%[[L]]], %[[B]] order tree<1>
  // CHECK: %[[OE:.*]] = mla.attention_expanded %[[Q]], %[[KV]], @kvb_uk[%[[L]]], @kvb_uv[%[[L]]], %[[B]] scale 0.125 order softmax<block = 64, split = by_position>
  // CHECK: %[[O:.*]] = mla.merge_forms %[[OA]], %[[OE]], %[[B]]
  // CHECK: return %[[O]]
  // ABSORBED-LABEL: func.func @phased(
  // ABSORBED-NOT: mla.attention_expanded
  // ABSORBED: %[[O:.*]] = mla.expand_output
  // ABSORBED-NEXT: return %[[O]]
  // EXPANDED-LABEL: func.func @phased(
  // EXPANDED-NEXT: %[[O:.*]] = mla.attention_expanded
  // EXPANDED-NEXT: return %[[O]]
  %o = mla.attention %q, %kv, @kvb[%l], %b nope 32 rope 16 v 32 scale 0.125 : !q, !kv -> !o
  return %o : !o
}

// A second reader shares the slices.
// CHECK-LABEL: func.func @again(
func.func @again(%l: index, %q: !q, %kv: !kv, %b: !nn.batch) -> !o {
  // CHECK: mla.absorb_query %{{.*}}, @kvb_uk_t[
  // CHECK-NOT: _0[
  %o = mla.attention %q, %kv, @kvb[%l], %b nope 32 rope 16 v 32 scale 0.125 : !q, !kv -> !o
  return %o : !o
}

// Attention without a latent is left alone.
// CHECK-LABEL: func.func @grouped(
func.func @grouped(%q: tensor<?x4x16xf32, #nn.rows<token>>, %kv: !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>,
                   %b: !nn.batch) -> tensor<?x4x16xf32, #nn.rows<token>> {
  // CHECK-NEXT: nn.attention
  // CHECK-NEXT: return
  %o = nn.attention %q, %kv, %b scale 0.25
      : tensor<?x4x16xf32, #nn.rows<token>>, !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
      -> tensor<?x4x16xf32, #nn.rows<token>>
  return %o : tensor<?x4x16xf32, #nn.rows<token>>
}
