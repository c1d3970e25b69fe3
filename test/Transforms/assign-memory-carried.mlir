// RUN: k2c-opt %s --assign-memory --split-input-file | FileCheck %s

// What a layer carries it yields in the same place, each of several in its own. What it only reads lives while the
// layers run: nothing of theirs lies there. It may be read after them.
!x = tensor<?x64xf32, #nn.rows<token>>
!y = tensor<?x32xf32, #nn.rows<token>>
// CHECK: module attributes {mem.peak = 8960 : i64
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xf32>) -> !x {
    %x = nn.embed %w : tensor<100x64xf32>, %b : !x
    kern.yield %x : !x
  }
  kern.func @embedding_narrow(%b: !nn.batch, %w: tensor<100x32xf32>) -> !y {
    %x = nn.embed %w : tensor<100x32xf32>, %b : !y
    kern.yield %x : !y
  }
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  kern.func @linear_up(%a: !y, %w: tensor<64x32xf32>, %x: !x) -> !x {
    %s = nn.linear %a, %w : tensor<64x32xf32> order tree<1> : !y -> !x
    %y = nn.add %s, %x : !x
    kern.yield %y : !x
  }
  kern.func @linear_down(%a: !x, %w: tensor<32x64xf32>, %x: !y) -> !y {
    %s = nn.linear %a, %w : tensor<32x64xf32> order tree<1> : !x -> !y
    %y = nn.add %s, %x : !y
    kern.yield %y : !y
  }
  nn.weights @embed "embed" : tensor<100x64xf32>
  nn.weights @narrow "narrow" : tensor<100x32xf32>
  nn.weights @up "{layer}.up" over (layer = 0 to 4) : tensor<64x32xf32>
  nn.weights @down "{layer}.down" over (layer = 0 to 4) : tensor<32x64xf32>

  // CHECK-LABEL: nn.layer @both
  // CHECK-SAME: mem.arguments = array<i64: 2560, 5120, 0>, mem.peak = 8960 : i64
  nn.layer @both(%layer: index, %x: !x, %y: !y, %t: !x, %b: !nn.batch) -> (!x, !y) {
    // CHECK-NEXT: kern.call @linear_up({{.*}}) at [2560]
    // CHECK-NEXT: kern.call @add({{.*}}) at [6400]
    // CHECK-NEXT: kern.call @linear_down({{.*}}) at [5120]
    %0 = kern.call @linear_up(%y, @up[%layer], %x) : (!y, !x) -> !x
    %1 = kern.call @add(%0, %t) : (!x, !x) -> !x
    %2 = kern.call @linear_down(%1, @down[%layer], %y) : (!x, !y) -> !y
    nn.yield %0, %2 : !x, !y
  }
  // One that only forwards a value.
  // CHECK-LABEL: nn.layer @first
  // CHECK-SAME: mem.arguments = array<i64: 2560, 5120, 0>, mem.peak = 6400 : i64
  nn.layer @first(%layer: index, %x: !x, %y: !y, %t: !x, %b: !nn.batch) -> (!x, !y) {
    // CHECK-NEXT: kern.call @add({{.*}}) at [2560]
    %0 = kern.call @add(%x, %t) : (!x, !x) -> !x
    nn.yield %0, %y : !x, !y
  }
  // CHECK-LABEL: func.func @step
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [2560]
    // CHECK-NEXT: kern.call @embedding_narrow({{.*}}) at [5120]
    %t = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    %x = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    %y = kern.call @embedding_narrow(%b, @narrow) : (!nn.batch) -> !y
    %z:2 = nn.layers %x, %y reads %t, %b [@both[0 to 2], (@first, @both)[2 to 4]] : !x, !y reads !x
    // CHECK: kern.call @add({{.*}}) at [5120]
    // CHECK-NEXT: kern.call @add({{.*}}) at [0]
    %0 = kern.call @add(%z#0, %t) : (!x, !x) -> !x
    %1 = kern.call @add(%0, %z#0) : (!x, !x) -> !x
    return
  }
}

// -----

// Nothing else than the layers reads the third value. The next list carries the results in another order, and has them
// where they lie.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xf32>) -> !x {
    %x = nn.embed %w : tensor<100x64xf32>, %b : !x
    kern.yield %x : !x
  }
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  nn.weights @embed "embed" : tensor<100x64xf32>

  // CHECK-LABEL: nn.layer @one
  // CHECK-SAME: mem.arguments = array<i64: 2560, 5120, 0>
  nn.layer @one(%layer: index, %x: !x, %y: !x, %t: !x, %b: !nn.batch) -> (!x, !x) {
    // CHECK-NEXT: kern.call @add({{.*}}) at [7680]
    // CHECK-NEXT: kern.call @add({{.*}}) at [5120]
    %0 = kern.call @add(%x, %t) : (!x, !x) -> !x
    %1 = kern.call @add(%y, %0) : (!x, !x) -> !x
    nn.yield %x, %1 : !x, !x
  }
  // CHECK-LABEL: nn.layer @other
  // CHECK-SAME: mem.arguments = array<i64: 5120, 2560>
  nn.layer @other(%layer: index, %x: !x, %y: !x, %b: !nn.batch) -> (!x, !x) {
    // CHECK-NEXT: kern.call @add({{.*}}) at [7680]
    // CHECK-NEXT: kern.call @add({{.*}}) at [5120]
    %0 = kern.call @add(%y, %y) : (!x, !x) -> !x
    %1 = kern.call @add(%x, %0) : (!x, !x) -> !x
    nn.yield %1, %y : !x, !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    %x = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    %y = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    %z:2 = nn.layers %x, %y reads %t, %b [@one[0 to 2]] : !x, !x reads !x
    %u:2 = nn.layers %z#1, %z#0, %b [@other[2 to 4]] : !x, !x
    return
  }
}
