// RUN: k2c-opt %s --shard-experts | FileCheck %s
// RUN: k2c-opt %s --shard-experts --shard-experts | FileCheck %s
// RUN: k2c-opt %s --shard-experts --remarks-filter=shard-experts 2>&1 | FileCheck %s --check-prefix=REMARK

!x = tensor<?x64xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>

nn.weights @gu "{layer}.{expert}.{g|u}" over (layer = 0 to 2, expert = 0 to 12) : tensor<12x2x96x64xbf16>
nn.weights @down "{layer}.{expert}" over (layer = 0 to 2, expert = 0 to 12) : tensor<12x64x96xbf16>

// REMARK: one-rank{{.*}}all 12 experts on one rank: no exchange{{.*}}experts=12{{.*}}ranks=1{{.*}}top_k=2

// Rows move once, weights never; the weight of a choice multiplies after the down projection, and N5's tree adds.
// CHECK-LABEL: func.func @experts(
// CHECK-SAME: %[[L:.*]]: index, %[[X:.*]]: tensor<?x64xf32, #tok>, %[[E:.*]]: tensor<?x2xi32, #tok>, %[[W:.*]]: tensor<?x2xf32, #tok>)
func.func @experts(%l: index, %x: !x, %e: !e, %w: !w) -> !x {
  // CHECK: %[[P:.*]] = moe.permutation %[[E]] : tensor<?x2xi32, #tok> -> !permutation
  // CHECK: %[[S:.*]] = moe.permute %[[X]], %[[P]] : tensor<?x64xf32, #tok>, !permutation -> tensor<?x64xf32, #slot>
  // CHECK: %[[G:.*]] = moe.grouped_linear %[[S]], %[[P]], @gu[%[[L]]] order tree<1> : {{.*}} -> tensor<?x2x96xf32, #slot>
  // CHECK: %[[A:.*]] = nn.gated_act %[[G]] act silu
  // CHECK: %[[D:.*]] = moe.grouped_linear %[[A]], %[[P]], @down[%[[L]]] weighted %[[W]] : tensor<?x2xf32, #tok> order tree<1>
  // CHECK: %[[R:.*]] = moe.unpermute %[[D]], %[[P]], %[[E]] order tree<4>
  // CHECK: return %[[R]]
  %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 12 inner 96 act silu
      up_order tree<1> down_order tree<1> combine tree<4> : !x, !e, !w -> !x
  return %r : !x
}

// Orders that set-numerics has not written yet stay unwritten.
// CHECK-LABEL: func.func @undeclared(
func.func @undeclared(%l: index, %x: !x, %e: !e, %w: !w) -> !x {
  // CHECK-NOT: tree<
  // CHECK: return
  %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 12 inner 96 act silu : !x, !e, !w -> !x
  return %r : !x
}

// A gated layer without experts is left alone.
// CHECK-LABEL: func.func @dense(
func.func @dense(%g: tensor<?x2x64xf32, #nn.rows<token>>) -> !x {
  // CHECK-NEXT: nn.gated_act
  // CHECK-NEXT: return
  %a = nn.gated_act %g act silu : tensor<?x2x64xf32, #nn.rows<token>> -> !x
  return %a : !x
}
