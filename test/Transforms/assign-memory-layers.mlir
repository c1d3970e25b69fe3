// RUN: k2c-opt %s --assign-memory --split-input-file | FileCheck %s
// RUN: k2c-opt %s --attach-plan="without=buffer-reuse" --assign-memory --split-input-file | FileCheck %s --check-prefix=APART

// Layers lie above what lives where they are called, and neither above what is dead there nor above what comes later.
!x = tensor<?x64xf32, #nn.rows<token>>
// CHECK: module attributes {mem.peak = 10240 : i64
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xf32>) -> !x {
    %x = nn.embed %w : tensor<100x64xf32>, %b : !x
    kern.yield %x : !x
  }
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // A linear with its residual reads the argument of the layer element by element, whatever else it reads as a whole.
  kern.func @linear_down(%a: !x, %w: tensor<64x64xf32>, %x: !x) -> !x {
    %s = nn.linear %a, %w : tensor<64x64xf32> order tree<1> : !x -> !x
    %y = nn.add %s, %x : !x
    kern.yield %y : !x
  }
  nn.weights @embed "embed" : tensor<100x64xf32>
  nn.weights @down "{layer}.down" over (layer = 0 to 2) : tensor<64x64xf32>

  // CHECK-LABEL: nn.layer @above
  // CHECK-SAME: mem.arguments = array<i64: 2560>
  nn.layer @above(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // CHECK-NEXT: kern.call @add({{.*}}) at [5120]
    // CHECK-NEXT: kern.call @linear_down({{.*}}) at [2560]
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @linear_down(%0, @down[%l], %x) : (!x, !x) -> !x
    nn.yield %1 : !x
  }
  // CHECK-LABEL: func.func @lives_across
  func.func @lives_across(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [2560]
    %0 = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    %1 = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    %2 = nn.layers %1, %b [@above[0 to 2]] : !x
    // CHECK: kern.call @add({{.*}}) at [5120]
    %3 = kern.call @add(%0, %2) : (!x, !x) -> !x
    return
  }

  // CHECK-LABEL: nn.layer @beside
  nn.layer @beside(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // CHECK-NEXT: kern.call @add({{.*}}) at [2560]
    // CHECK-NEXT: kern.call @add({{.*}}) at [0]
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @add(%0, %x) : (!x, !x) -> !x
    nn.yield %1 : !x
  }
  // The place of %0 is that of %2, %1 is dead; %4 and %5 come later.
  // CHECK-LABEL: func.func @dead_or_later
  func.func @dead_or_later(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    // CHECK-NEXT: kern.call @add({{.*}}) at [2560]
    // CHECK-NEXT: kern.call @add({{.*}}) at [0]
    %0 = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    %1 = kern.call @add(%0, %0) : (!x, !x) -> !x
    %2 = kern.call @add(%1, %1) : (!x, !x) -> !x
    %3 = nn.layers %2, %b [@beside[0 to 2]] : !x
    // CHECK: kern.call @embedding({{.*}}) at [2560]
    // CHECK-NEXT: kern.call @add({{.*}}) at [5120]
    // CHECK-NEXT: kern.call @add({{.*}}) at [7680]
    %4 = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    %5 = kern.call @add(%3, %4) : (!x, !x) -> !x
    %6 = kern.call @add(%4, %5) : (!x, !x) -> !x
    %7 = kern.call @add(%3, %6) : (!x, !x) -> !x
    return
  }
}

// -----

// The argument lives while the layers run, though nothing reads it or them afterwards. Functions of one list begin at one
// place, and one function may be in it twice; without reuse they lie one above the other.
!x = tensor<?x64xf32, #nn.rows<token>>
// CHECK: module attributes {mem.peak = 10240 : i64
// APART: module attributes {{{.*}}mem.peak = 12800 : i64
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

  // CHECK-LABEL: nn.layer @large
  // APART-LABEL: nn.layer @large
  nn.layer @large(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // CHECK-NEXT: kern.call @add({{.*}}) at [5120]
    // CHECK-NEXT: kern.call @add({{.*}}) at [7680]
    // APART-NEXT: kern.call @add({{.*}}) at [5120]
    // APART-NEXT: kern.call @add({{.*}}) at [7680]
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @add(%0, %0) : (!x, !x) -> !x
    %2 = kern.call @add(%1, %x) : (!x, !x) -> !x
    nn.yield %2 : !x
  }
  // CHECK-LABEL: nn.layer @small
  // APART-LABEL: nn.layer @small
  nn.layer @small(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // CHECK-NEXT: kern.call @add({{.*}}) at [5120]
    // APART-NEXT: kern.call @add({{.*}}) at [10240]
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @add(%0, %x) : (!x, !x) -> !x
    nn.yield %1 : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    %1 = kern.call @add(%0, %0) : (!x, !x) -> !x
    %2 = nn.layers %1, %b [@large[0 to 1], @small[1 to 2], @large[2 to 3]] : !x
    return
  }
}
