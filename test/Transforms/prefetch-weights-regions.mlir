// RUN: k2c-copy-opt %s --attach-plan="l2-bytes=16384" --prefetch-weights --mlir-print-local-scope --split-input-file | FileCheck %s

// Both ends of a branch stream @q first, so the launch before it names @q, and the last of each end what is behind the
// branch.
rt.weight_slots @q of @w first 0 count 2 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.weight_slots @o of @w first 2 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
rt.kernel @linear_o id 1 hash "o" variants ["all"] streams 0 items 2 bytes 2048
// CHECK-LABEL: func.func @step
func.func @step() {
  %t = rt.rows token
  %c0 = arith.constant 0 : index
  %few = arith.cmpi slt, %t, %t : i64
  %o = rt.weight @o
  // CHECK: %[[Q:.*]] = rt.weight @q[%{{.*}}]
  // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[Q]]
  // CHECK-NOT: rt.share
  // CHECK: rt.prefetch %[[F]], %[[E]]
  // CHECK-NEXT: rt.launch @linear_o
  rt.launch @linear_o grid(%t) args(%o) : !rt.ptr
  // CHECK: scf.if
  scf.if %few {
    %q = rt.weight @q[%c0]
    // CHECK: %[[O:.*]] = rt.weight @o
    // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[O]]
    // CHECK: rt.prefetch %[[F]], %[[E]]
    // CHECK-NEXT: rt.launch @linear_q
    rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  // CHECK: } else {
  } else {
    %c = arith.constant 0 : index
    %q = rt.weight @q[%c]
    // CHECK: %[[O:.*]] = rt.weight @o
    // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[O]]
    // CHECK: rt.prefetch %[[F]], %[[E]]
    // CHECK-NEXT: rt.launch @linear_q
    rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  }
  %p = rt.weight @o
  rt.launch @linear_o grid(%t) args(%p) : !rt.ptr
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0

// -----

// The ends of the branch stream two layers of @q: the launch before it names no bytes, nor does the beginning of a step
// name what only one end streams.
rt.weight_slots @q of @w first 0 count 2 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.weight_slots @o of @w first 2 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
rt.kernel @linear_o id 1 hash "o" variants ["all"] streams 0 items 2 bytes 2048
// CHECK-LABEL: func.func @step
func.func @step() {
  // CHECK-NEXT: %[[NONE:.*]] = rt.arena 0
  // CHECK-NEXT: rt.prefetch %[[NONE]], %[[NONE]]
  %t = rt.rows token
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %few = arith.cmpi slt, %t, %t : i64
  scf.if %few {
    %q = rt.weight @q[%c0]
    // CHECK: rt.weight @o
    // CHECK: rt.share
    // CHECK: rt.launch @linear_q
    rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  }
  %o = rt.weight @o
  // CHECK: %[[O:.*]] = rt.weight @o
  // CHECK-NOT: rt.share
  // CHECK: %[[NONE:.*]] = rt.arena 0
  // CHECK-NEXT: rt.prefetch %[[NONE]], %[[NONE]]
  // CHECK-NEXT: rt.launch @linear_o grid(%{{.*}}) args(%[[O]])
  rt.launch @linear_o grid(%t) args(%o) : !rt.ptr
  // CHECK-NEXT: scf.if
  scf.if %few {
    %q = rt.weight @q[%c0]
    rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  } else {
    %q = rt.weight @q[%c1]
    rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  }
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0

// -----

// An inner loop is followed by its own next iteration, then by its last, then by what is behind it in the outer one.
rt.weight_slots @q of @w first 0 count 4 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.weight_slots @o of @w first 4 count 2 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
rt.kernel @linear_o id 1 hash "o" variants ["all"] streams 0 items 2 bytes 2048
// CHECK-LABEL: func.func @step
func.func @step() {
  %t = rt.rows token
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  // CHECK: scf.for %[[I:[^ ]*]] =
  scf.for %i = %c0 to %c2 step %c1 {
    // CHECK: scf.for %[[J:[^ ]*]] =
    scf.for %j = %c0 to %c4 step %c1 {
      // CHECK: %[[NEXT:.*]] = arith.addi %[[J]]
      // CHECK: %[[Q:.*]] = rt.weight @q[%[[NEXT]]]
      // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[Q]]
      // CHECK: rt.prefetch %[[F]], %[[E]]
      // CHECK-NEXT: rt.launch @linear_q
      %q = rt.weight @q[%j]
      rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
    }
    // CHECK: %[[O:.*]] = rt.weight @o[%[[I]]]
    // CHECK: rt.share %[[O]]
    // CHECK: rt.launch @linear_q
    // CHECK: %[[Q:.*]] = rt.weight @q
    // CHECK: rt.share %[[Q]]
    // CHECK: rt.launch @linear_o
    %o = rt.weight @o[%i]
    rt.launch @linear_o grid(%t) args(%o) : !rt.ptr
  }
  // The last iteration of the outer loop.
  // CHECK: scf.for %[[J:[^ ]*]] =
  // CHECK: arith.addi %[[J]]
  // CHECK: rt.launch @linear_q
  // CHECK: rt.launch @linear_q
  // CHECK: rt.launch @linear_o
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0

// -----

// Of a loop of unknown length, and of one that carries a value, the last launch has two that may follow, an iteration
// and what is behind the loop; the first has one.
rt.weight_slots @q of @w first 0 count 4 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.weight_slots @o of @w first 4 count 4 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
rt.kernel @linear_o id 1 hash "o" variants ["all"] streams 0 items 2 bytes 2048
// CHECK-LABEL: func.func @step
func.func @step() {
  %t = rt.rows token
  %n = arith.index_cast %t : i64 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for %[[I:[^ ]*]] =
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c0) -> (index) {
    %q = rt.weight @q[%j]
    // CHECK: %[[O:.*]] = rt.weight @o[%[[I]]]
    // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[O]]
    // CHECK: rt.prefetch %[[F]], %[[E]]
    // CHECK-NEXT: rt.launch @linear_q
    rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
    %o = rt.weight @o[%i]
    // CHECK: rt.weight @o
    // CHECK-NOT: rt.share
    // CHECK: %[[NONE:.*]] = rt.arena 0
    // CHECK-NEXT: rt.prefetch %[[NONE]], %[[NONE]]
    // CHECK-NEXT: rt.launch @linear_o
    rt.launch @linear_o grid(%t) args(%o) : !rt.ptr
    %k = arith.addi %j, %c1 : index
    scf.yield %k : index
  }
  %q = rt.weight @q[%c0]
  rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0

// -----

// A copy, of which nothing is known, may read anything: no bytes are named across it. Behind it they are.
rt.weight_slots @q of @w first 0 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.weight_slots @o of @w first 1 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
rt.kernel @linear_o id 1 hash "o" variants ["all"] streams 0 items 2 bytes 2048
// CHECK-LABEL: func.func @step
func.func @step() {
  // CHECK: rt.weight @q
  // CHECK: %[[F:.*]], %[[E:.*]] = rt.share
  // CHECK: rt.prefetch %[[F]], %[[E]]
  %t = rt.rows token
  %p = rt.arena 0 bytes 64
  %q = rt.weight @q
  // CHECK: %[[Q:.*]] = rt.weight @q
  // CHECK: %[[NONE:.*]] = rt.arena 0
  // CHECK-NEXT: rt.prefetch %[[NONE]], %[[NONE]]
  // CHECK-NEXT: rt.launch @linear_q grid(%{{.*}}) args(%[[Q]])
  rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  // CHECK-NEXT: copy.start
  %token, %y = copy.start %p : !rt.ptr -> !rt.ptr
  copy.wait %token
  %o = rt.weight @o
  // CHECK: %[[NEXT:.*]] = rt.weight @q
  // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[NEXT]]
  // CHECK: rt.prefetch %[[F]], %[[E]]
  // CHECK-NEXT: rt.launch @linear_o
  rt.launch @linear_o grid(%t) args(%o) : !rt.ptr
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0

// -----

// Without the copy, the first launch names @o.
rt.weight_slots @q of @w first 0 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.weight_slots @o of @w first 1 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
rt.kernel @linear_o id 1 hash "o" variants ["all"] streams 0 items 2 bytes 2048
// CHECK-LABEL: func.func @step
func.func @step() {
  %t = rt.rows token
  %q = rt.weight @q
  // CHECK: %[[O:.*]] = rt.weight @o
  // CHECK: %[[F:.*]], %[[E:.*]] = rt.share %[[O]]
  // CHECK: rt.prefetch %[[F]], %[[E]]
  // CHECK-NEXT: rt.launch @linear_q
  rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  %o = rt.weight @o
  rt.launch @linear_o grid(%t) args(%o) : !rt.ptr
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0

// -----

// A loop counts in any whole number: the last of four iterations follows the others, and the next step follows it.
rt.weight_slots @q of @w first 0 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
// CHECK-LABEL: func.func @step
func.func @step() {
  %t = rt.rows token
  %begin = arith.constant 0 : i64
  %end = arith.constant 4 : i64
  %by = arith.constant 1 : i64
  // CHECK: %[[LAST:.*]] = arith.constant 3 : i64
  // CHECK: scf.for %{{.*}} = %{{.*}} to %[[LAST]] step %{{.*}} : i64
  scf.for %i = %begin to %end step %by : i64 {
    %q = rt.weight @q
    rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  }
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0
