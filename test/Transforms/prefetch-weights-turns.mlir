// RUN: k2c-opt %s --attach-plan="l2-bytes=16384" --prefetch-weights --mlir-print-local-scope | FileCheck %s

// Kinds of layers that take turns: each call is told what the next one streams first; the last turn leaves the loop.
rt.weight_slots @a of @w first 0 count 4 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.weight_slots @b of @w first 4 count 4 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_a id 0 hash "a" variants ["all"] streams 0 items 2 bytes 2048
rt.kernel @linear_b id 1 hash "b" variants ["all"] streams 0 items 2 bytes 2048

func.func private @even(%l: index) {
  %c2 = arith.constant 2 : index
  %o = arith.divsi %l, %c2 : index
  %w = rt.weight @a[%o]
  %t = rt.rows token
  rt.launch @linear_a grid(%t) args(%w) : !rt.ptr
  return
}
func.func private @odd(%l: index) {
  %c2 = arith.constant 2 : index
  %o = arith.divsi %l, %c2 : index
  %w = rt.weight @b[%o]
  %t = rt.rows token
  rt.launch @linear_b grid(%t) args(%w) : !rt.ptr
  return
}
// CHECK-LABEL: func.func @step
func.func @step() {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[LAST:.*]] = arith.constant 6 : index
  // CHECK: scf.for %[[L:.*]] = %{{.*}} to %[[LAST]] step
  scf.for %l = %c0 to %c8 step %c2 {
    // The odd layer of this turn reads @b next.
    // CHECK: rt.weight @b[
    // CHECK: func.call @even(%[[L]], %
    func.call @even(%l) : (index) -> ()
    // The even layer of the next turn reads @a.
    // CHECK: %[[NEXT:.*]] = arith.addi %[[L]], %c2
    // CHECK: %[[ORDINAL:.*]] = arith.divsi %[[NEXT]]
    // CHECK: rt.weight @a[%[[ORDINAL]]]
    // CHECK: func.call @odd(%
    %m = arith.addi %l, %c1 : index
    func.call @odd(%m) : (index) -> ()
  }
  // CHECK: }
  // CHECK: call @even(%[[LAST]], %
  // CHECK: %[[ODD:.*]] = arith.addi %[[LAST]], %c1
  // CHECK: call @odd(%[[ODD]], %
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0
