// RUN: k2c-opt %s --overlap-communication | FileCheck %s
// RUN: k2c-opt %s --overlap-communication > %t.once
// RUN: k2c-opt %t.once --overlap-communication | diff %t.once -
// RUN: k2c-opt %s --overlap-communication --verify-form=form=runtime -o /dev/null
// RUN: sed 's/halves_from = 64/without = ["overlap-communication"], halves_from = 64/' %s | k2c-opt --overlap-communication | FileCheck %s --check-prefix=WITHOUT
// RUN: k2c-opt %s --overlap-communication --remarks-filter=overlap-communication 2>&1 | FileCheck %s --check-prefix=REMARK

// A layer is cut where it waits. What a segment needs of numbers and addresses it computes itself; its rows lie in the
// arena. A function without a wait of its own block is not cut.
// CHECK-LABEL: func.func private @layer(%arg0: index)
// CHECK: rt.collective_start @site0 layer %arg0
// CHECK-NEXT: return
// CHECK: func.func private @layer_1(%arg0: index)
// CHECK-NEXT: rt.collective_wait @site0
// CHECK-NEXT: %[[N:.*]] = rt.arrived @site0
// CHECK-NEXT: %[[IN:.*]] = rt.arena 128
// CHECK-NEXT: rt.launch @k in @site0 grid(%[[N]]) args(%[[IN]])
// CHECK: rt.collective_start @site1 layer %arg0
// CHECK-NEXT: return
// CHECK: func.func private @layer_2(%arg0: index)
// CHECK-NEXT: rt.collective_wait @site1
// CHECK: return

// Steps that are whole run the segments one after another.
// CHECK-LABEL: func.func @step()
// CHECK: scf.for
// CHECK: func.call @layer(%[[I:.*]]) : (index) -> ()
// CHECK-NEXT: func.call @layer_1(%[[I]]) : (index) -> ()
// CHECK-NEXT: func.call @layer_2(%[[I]]) : (index) -> ()
// CHECK-NEXT: func.call @plain(%[[I]]) : (index) -> ()
// CHECK-NEXT: }
// CHECK-NEXT: call @branch()
// CHECK: rt.sample
// CHECK-NEXT: return

// Halves take turns between segments; what else a function does is done for both.
// A branch without an exchange may go by the rows of a half.
// CHECK-LABEL: func.func @step_halves()
// CHECK: rt.launch @k grid
// CHECK: scf.if
// CHECK-NOT: rt.second_half
// CHECK: }
// CHECK-NEXT: rt.second_half {
// CHECK: rt.rows token
// CHECK: rt.launch @k grid
// CHECK: scf.if
// CHECK: rt.launch @k grid
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK: scf.for %[[L:.*]] =
// CHECK: func.call @layer(%[[A:.*]]) : (index) -> ()
// CHECK-NEXT: rt.second_half {
// CHECK: arith.addi %[[L]]
// CHECK: func.call @layer(%[[B:.*]]) : (index) -> ()
// CHECK-NEXT: }
// CHECK: func.call @layer_1(%[[C:.*]]) : (index) -> ()
// CHECK-NEXT: rt.second_half {
// CHECK: func.call @layer_1(%[[D:.*]]) : (index) -> ()
// CHECK-NEXT: }
// CHECK: func.call @layer_2(%
// CHECK-NEXT: rt.second_half {
// CHECK: func.call @layer_2(%
// CHECK-NEXT: }
// CHECK: func.call @plain(
// CHECK-NEXT: rt.second_half {
// CHECK: call @branch()
// CHECK-NEXT: rt.second_half {
// CHECK-NEXT: func.call @branch()
// CHECK-NEXT: }
// CHECK: rt.launch @k grid
// CHECK-NEXT: rt.sample
// CHECK-NEXT: rt.second_half {
// CHECK: rt.launch @k grid
// CHECK-NEXT: rt.sample
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK: rt.program @program entries {serve = @step, serve_halves = @step_halves} arena 8192 second 4096 scratch 512
// WITHOUT-NOT: second
// REMARK: steps of 64 token rows of a rank and more go in two halves, which take turns at 2 exchanges of a layer
module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1, halves_from = 64>} {
  rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
  rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 272 quota 1
  rt.collective @site1 site 1 op all_to_all_rows axis ep members 2 row_bytes 272
  rt.collective @site2 site 2 op all_to_all_rows axis ep members 2 row_bytes 256
  func.func private @layer(%l: index) {
    %m = rt.arena 0 bytes 544
    %sent = rt.arena 64 bytes 32
    %in = rt.arena 128 bytes 544
    %came = rt.arena 192 bytes 32
    rt.collective_start @site0 layer %l source %m to %sent result %in from %came
    rt.collective_wait @site0 layer %l
    %n = rt.arrived @site0
    rt.launch @k in @site0 grid(%n) args(%in) : !rt.ptr
    rt.collective_start @site1 layer %l source %in to %came result %m from %sent
    rt.collective_wait @site1 layer %l
    rt.launch @k in @site0 grid(%n) args(%m) : !rt.ptr
    return
  }
  func.func private @plain(%l: index) {
    %t = rt.rows token
    %p = rt.arena 0 bytes 64
    rt.launch @k grid(%t) args(%p) : !rt.ptr
    return
  }
  func.func private @branch() {
    %p = rt.arena 0 bytes 256
    %c = rt.arena 256 bytes 32
    %yes = arith.constant true
    scf.if %yes {
      rt.collective_start @site2 source %p to %c result %p from %c
      rt.collective_wait @site2
    }
    return
  }
  func.func @step() {
    %t = rt.rows token
    %p = rt.arena 0 bytes 64
    %none = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %c4 = arith.constant 4 : i64
    %few = arith.cmpi slt, %t, %c4 : i64
    rt.launch @k grid(%t) args(%p) : !rt.ptr
    scf.if %few {
      rt.launch @k grid(%t) args(%p) : !rt.ptr
    }
    scf.for %l = %none to %four step %one {
      %next = arith.addi %l, %one : index
      func.call @layer(%next) : (index) -> ()
      func.call @plain(%next) : (index) -> ()
    }
    func.call @branch() : () -> ()
    rt.launch @k grid(%t) args(%p) : !rt.ptr
    rt.sample
    return
  }
  rt.program @program entries {serve = @step} arena 8192 scratch 512
}
