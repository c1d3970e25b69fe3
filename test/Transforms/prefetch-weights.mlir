// RUN: k2c-opt %s --attach-plan="l2-bytes=16384" --prefetch-weights | FileCheck %s
// RUN: k2c-opt %s --attach-plan="l2-bytes=16384" --prefetch-weights > %t.once
// RUN: k2c-opt %t.once --attach-plan="l2-bytes=16384" --prefetch-weights | diff %t.once -
// RUN: k2c-opt %s --attach-plan="l2-bytes=16384" --prefetch-weights --remarks-filter=prefetch-weights 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: launches{{.*}}4 launches name what their workers read next, at most 4.00 KiB (4.10 KB){{.*}}launches=4, max_bytes=4096

rt.weight_slots @q of @w first 0 count 3 bytes 12288 layout #rt.panels<bf16, matrices = 1, n = 96, k = 64>
rt.weight_slots @o of @w first 3 count 3 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.weight_slots @head of @w first 6 count 1 bytes 65536 layout #rt.panels<bf16, matrices = 1, n = 512, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 1 items 6 bytes 2048
rt.kernel @linear_o id 1 hash "o" variants ["all"] streams 1 items 2 bytes 2048
rt.kernel @norm id 2 hash "norm" variants ["all"]
rt.kernel @linear_head id 3 hash "head" variants ["all"] streams 1 items 32 bytes 2048

// A layer is told what follows it.
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%[[L:.*]]: index, %[[FROM:.*]]: !rt.ptr, %[[END:.*]]: !rt.ptr)
func.func private @layer(%l: index) {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 4096 bytes 64
  %q = rt.weight @q[%l]
  %t = rt.rows token
  %g = rt.grid %t slots 1 rows_per_item 64 items 6
  // During @linear_q, and the norm that streams nothing, workers fetch their part of @o.
  // CHECK: %[[O:.*]] = rt.weight @o[%[[L]]]
  // CHECK: %[[GRID:.*]] = rt.grid %{{.*}} slots 1 rows_per_item 64 items 2
  // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[O]] grid(%[[GRID]]) items 2 bytes 2048 max 4096
  // CHECK: rt.prefetch %[[F]], %[[E]]
  // CHECK-NEXT: rt.launch @linear_q
  rt.launch @linear_q grid(%g) args(%x, %q, %y) : !rt.ptr, !rt.ptr, !rt.ptr
  // CHECK-NOT: rt.prefetch
  // CHECK: rt.launch @norm
  rt.launch @norm grid(%t) args(%y, %x) : !rt.ptr, !rt.ptr
  %o = rt.weight @o[%l]
  %h = rt.grid %t slots 1 rows_per_item 64 items 2
  // CHECK: rt.prefetch %[[FROM]], %[[END]]
  // CHECK-NEXT: rt.launch @linear_o
  rt.launch @linear_o grid(%h) args(%x, %o, %y) : !rt.ptr, !rt.ptr, !rt.ptr
  return
}

// Of a group, the last launch that streams names what follows the group: nobody waits before.
// CHECK-LABEL: func.func private @grouped
func.func private @grouped(%l: index) {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 4096 bytes 64
  %q = rt.weight @q[%l]
  %o = rt.weight @o[%l]
  %t = rt.rows token
  // CHECK-NOT: rt.prefetch
  // CHECK: rt.launch nowait @linear_q
  rt.launch nowait @linear_q grid(%t) args(%x, %q, %y) : !rt.ptr, !rt.ptr, !rt.ptr
  // CHECK: rt.prefetch
  // CHECK-NEXT: rt.launch nowait @linear_o
  rt.launch nowait @linear_o grid(%t) args(%x, %o, %y) : !rt.ptr, !rt.ptr, !rt.ptr
  // CHECK-NOT: rt.prefetch
  // CHECK: rt.launch @norm
  rt.launch @norm grid(%t) args(%y, %x) : !rt.ptr, !rt.ptr
  return
}

// CHECK-LABEL: func.func @step
func.func @step() {
  // Before anything else, the first weight.
  // CHECK: %[[FIRST:.*]] = arith.constant 0 : index
  // CHECK: %[[Q:.*]] = rt.weight @q[%[[FIRST]]]
  // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[Q]]
  // CHECK: rt.prefetch %[[F]], %[[E]]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  // CHECK: %[[LAST:.*]] = arith.constant 2 : index
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[LAST]]
  scf.for %l = %c0 to %c3 step %c1 {
    // In the loop, the next layer's.
    // CHECK: %[[NEXT:.*]] = arith.addi %[[I]]
    // CHECK: %[[QN:.*]] = rt.weight @q[%[[NEXT]]]
    // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[QN]]
    // CHECK: func.call @layer(%[[I]], %[[F]], %[[E]])
    func.call @layer(%l) : (index) -> ()
  }
  // The last layer is followed by the head.
  // CHECK: %[[HEAD:.*]] = rt.weight @head
  // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[HEAD]] grid(%{{.*}}) items 32
  // CHECK: call @layer(%[[LAST]], %[[F]], %[[E]])
  %x = rt.arena 0 bytes 64
  %w = rt.weight @head
  %logits = rt.logits
  %t = rt.rows output
  %g = rt.grid %t slots 1 rows_per_item 64 items 32
  // The head is followed by the next step.
  // CHECK: %[[FIRST:.*]] = arith.constant 0 : index
  // CHECK: %[[Q:.*]] = rt.weight @q[%[[FIRST]]]
  // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[Q]]
  // CHECK: rt.prefetch %[[F]], %[[E]]
  // CHECK-NEXT: rt.launch @linear_head
  rt.launch @linear_head grid(%g) args(%x, %w, %logits) : !rt.ptr, !rt.ptr, !rt.ptr
  rt.sample
  return
}
rt.program @p entries {serve = @step} arena 8192 scratch 0
