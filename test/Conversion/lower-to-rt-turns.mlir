// RUN: k2c-opt %s --attach-plan --assign-slots --certify-memory --lower-to-rt --mlir-print-local-scope | FileCheck %s

// Kinds of layers that take turns are one loop over whole turns; the layers left of the last turn are calls behind it.
// Layers run in ascending order.
!x = tensor<?x64xf32, #nn.rows<token>>

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 100>, mem.peak = 8192 : i64} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> !x tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : !x
    kern.yield %x : !x
  }
  nn.layer @first(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    nn.yield %x : !x
  }
  nn.layer @a(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    nn.yield %x : !x
  }
  nn.layer @b(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    nn.yield %x : !x
  }
  // CHECK: func.func @step() {
  // CHECK: call @first(%c0
  // CHECK: scf.for %[[I:.*]] = %c1{{.*}} to %c10{{.*}} step %c3
  // CHECK-NEXT: func.call @a(%[[I]])
  // CHECK: %[[J:.*]] = arith.addi %[[I]], %c1
  // CHECK-NEXT: func.call @a(%[[J]])
  // CHECK: %[[K:.*]] = arith.addi %[[I]], %c2
  // CHECK-NEXT: func.call @b(%[[K]])
  // CHECK-NEXT: }
  // CHECK: call @a(%c10
  // CHECK: call @a(%c11
  // CHECK-NEXT: return
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = kern.call @embedding(%b, @embed) at [0] : (!nn.batch) -> !x
    %y = nn.layers %x, %b [@first[0 to 1], (@a, @a, @b)[1 to 12]] : !x
    return
  }
}
