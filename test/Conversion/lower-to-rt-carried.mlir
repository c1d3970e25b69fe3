// RUN: k2c-opt %s --attach-plan --assign-slots --certify-memory --lower-to-rt --mlir-print-local-scope | FileCheck %s

// A layer that carries two values and reads a third finds each at an address of its own; the results of its list lie
// where what it carries lies.
!x = tensor<?x64xf32, #nn.rows<token>>

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 100>, mem.peak = 10240 : i64} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> !x tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : !x
    kern.yield %x : !x
  }
  kern.func @add(%x: !x, %y: !x) -> !x tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // CHECK: func.func private @layer(%{{.*}}: index) {
  nn.layer @layer(%l: index, %x: !x, %y: !x, %t: !x, %b: !nn.batch) -> (!x, !x) attributes {mem.arguments = array<i64: 2560, 5120, 0>} {
    // CHECK-DAG: %[[Y:.*]] = rt.arena 5120
    // CHECK-DAG: %[[T:.*]] = rt.arena 0
    // CHECK-DAG: %[[SUM:.*]] = rt.arena 7680
    // CHECK: rt.launch @add grid(%{{.*}}) args(%[[Y]], %[[T]], %[[SUM]])
    %0 = kern.call @add(%y, %t) at [7680] : (!x, !x) -> !x
    // CHECK-DAG: %[[X:.*]] = rt.arena 2560
    // CHECK-DAG: %[[SUM1:.*]] = rt.arena 7680
    // CHECK-DAG: %[[X1:.*]] = rt.arena 2560
    // CHECK: rt.launch @add grid(%{{.*}}) args(%[[X]], %[[SUM1]], %[[X1]])
    %1 = kern.call @add(%x, %0) at [2560] : (!x, !x) -> !x
    // CHECK: return
    nn.yield %1, %y : !x, !x
  }
  // CHECK: func.func @step() {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = kern.call @embedding(%b, @embed) at [0] : (!nn.batch) -> !x
    %x = kern.call @embedding(%b, @embed) at [2560] : (!nn.batch) -> !x
    %y = kern.call @embedding(%b, @embed) at [5120] : (!nn.batch) -> !x
    // CHECK: func.call @layer(%
    %z:2 = nn.layers %x, %y reads %t, %b [@layer[0 to 3]] : !x, !x reads !x
    // CHECK: %[[Z1:.*]] = rt.arena 5120
    // CHECK: %[[Z0:.*]] = rt.arena 2560
    // CHECK: rt.launch @add grid(%{{.*}}) args(%[[Z1]], %[[Z0]], %
    %s = kern.call @add(%z#1, %z#0) at [7680] : (!x, !x) -> !x
    return
  }
}
