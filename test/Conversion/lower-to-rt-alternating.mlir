// RUN: k2c-opt %s --attach-plan --assign-slots --certify-memory --lower-to-rt --mlir-print-local-scope | FileCheck %s

// A layer's slot is its position in the ascending list of the family's layers: 0, 1, 3, 5 here, of which 3 is number 2.
!x = tensor<?x64xf32, #nn.rows<token>>

// CHECK: module attributes {{{.*}} {
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 100>, mem.peak = 8192 : i64} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @two "{layer}.two" over (layer = 0 to 2 and 3 to 6 step 2) : tensor<64x64xbf16>
  nn.weights @one "{layer}.one" over (layer = 2 to 5 step 2) : tensor<64x64xbf16>

  // CHECK: rt.weight_slots @two.panels of @two first 0 count 4 bytes
  // CHECK: rt.weight_slots @one.panels of @one first 4 count 2 bytes
  // CHECK: rt.weight_slots @embed.rows of @embed first 6 count 1 bytes
  kern.func @linear(%x: !x, %w: tensor<64x64xbf16>) -> !x tile<generic, lanes = 8, mr = 4, nr = 2, prefetch = 0, rows_block = 8, head_tile = 1, value_parts = 1> {
    %k = nn.linear %x, %w : tensor<64x64xbf16> order tree<1> : !x -> !x
    kern.yield %k : !x
  }
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> !x tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : !x
    kern.yield %x : !x
  }

  // Several ranges: clamp(layer - 0, 0, 2) + clamp((layer - 2) / 2, 0, 2).
  // CHECK: func.func private @a(%[[A:.*]]: index) {
  // CHECK: %[[LOW:.*]] = arith.minsi
  // CHECK: arith.subi %[[A]], %c2
  // CHECK: arith.divsi
  // CHECK: arith.maxsi
  // CHECK: %[[HIGH:.*]] = arith.minsi
  // CHECK: %[[O:.*]] = arith.addi %[[LOW]], %[[HIGH]] : index
  // CHECK: rt.weight @two.{{panels|rows}}[%[[O]]]
  nn.layer @a(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    %y = kern.call @linear(%x, @two[%l]) at [0] : (!x) -> !x
    nn.yield %y : !x
  }
  // One range: (layer - 2) / 2.
  // CHECK: func.func private @b(%[[B:.*]]: index) {
  // CHECK: %[[SHIFTED:.*]] = arith.subi %[[B]], %c2
  // CHECK: %[[P:.*]] = arith.divsi %[[SHIFTED]], %c2
  // CHECK: rt.weight @one.{{panels|rows}}[%[[P]]]
  nn.layer @b(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    %y = kern.call @linear(%x, @one[%l]) at [0] : (!x) -> !x
    nn.yield %y : !x
  }
  // Runs of one layer are calls; the order is that of the list.
  // CHECK: func.func @step() {
  // CHECK: scf.for %[[I:.*]] = %c0
  // CHECK-NEXT: func.call @a(%[[I]])
  // CHECK: call @b(%c2
  // CHECK: call @a(%c3
  // CHECK: call @b(%c4
  // CHECK: call @a(%c5
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = kern.call @embedding(%b, @embed) at [0] : (!nn.batch) -> !x
    %y = nn.layers %x, %b [@a[0 to 2], @b[2 to 3], @a[3 to 4], @b[4 to 5], @a[5 to 6]] : !x
    return
  }
}
