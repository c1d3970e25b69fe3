// RUN: k2c-opt %s --attach-plan --assign-slots --certify-memory --lower-to-rt --mlir-print-local-scope | FileCheck %s

// A branch on the step's token rows, and a loop: what they forward lies in one place, so they have no results.
!x = tensor<?x64xf32, #nn.rows<token>>

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 100>, mem.peak = 10240 : i64} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @other "other" : tensor<100x64xbf16>
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> !x tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : !x
    kern.yield %x : !x
  }
  kern.func @add(%x: !x, %y: !x) -> !x tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // CHECK-LABEL: func.func @step() {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK: %[[T:.*]] = rt.rows token
    // CHECK: %[[FEW:.*]] = arith.cmpi slt, %[[T]], %{{.*}} : i64
    %t = rt.rows token
    %c4 = arith.constant 4 : i64
    %few = arith.cmpi slt, %t, %c4 : i64
    // Numbers stay what they are.
    // CHECK: %[[N:.*]] = arith.select %[[FEW]], %[[T]], %{{.*}} : i64
    // CHECK: arith.muli %[[N]], %[[T]] : i64
    %n = arith.select %few, %t, %c4 : i64
    %m = arith.muli %n, %t : i64
    %x = kern.call @embedding(%b, @embed) at [0] : (!nn.batch) -> !x
    // CHECK: scf.if %[[FEW]] {
    %r = scf.if %few -> !x {
      // CHECK: %[[X:.*]] = rt.arena 0
      // CHECK: %[[R:.*]] = rt.arena 2560
      // CHECK: rt.launch @add grid(%{{.*}}) args(%[[X]], %{{.*}}, %[[R]])
      %0 = kern.call @add(%x, %x) at [2560] : (!x, !x) -> !x
      scf.yield %0 : !x
    // CHECK: } else {
    } else {
      // A weight that only this end reads has a slot, too.
      // CHECK: %[[W:.*]] = rt.weight @other.rows
      // CHECK: rt.launch @embedding grid(%{{.*}}) args(%[[W]], %
      %1 = kern.call @embedding(%b, @other) at [2560] : (!nn.batch) -> !x
      scf.yield %1 : !x
    }
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{[^ ]*}} {
    %s = scf.for %l = %c0 to %c1 step %c1 iter_args(%i = %r) -> (!x) {
      // CHECK: %[[I:.*]] = rt.arena 2560
      // CHECK: rt.launch @add grid(%{{.*}}) args(%[[I]], %
      %2 = kern.call @add(%i, %x) at [2560] : (!x, !x) -> !x
      scf.yield %2 : !x
    }
    // CHECK: }
    // CHECK: %[[S:.*]] = rt.arena 2560
    // CHECK: rt.launch @add grid(%{{.*}}) args(%[[S]], %
    %3 = kern.call @add(%s, %x) at [5120] : (!x, !x) -> !x
    return
  }
}
