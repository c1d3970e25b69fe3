// RUN: k2c-opt %s --group-launches --split-input-file | FileCheck %s
// RUN: k2c-opt %s --group-launches --split-input-file > %t.once
// RUN: k2c-opt %t.once --group-launches --split-input-file | diff %t.once -
// RUN: k2c-opt %s --group-launches --split-input-file --remarks-filter=group-launches 2>&1 | FileCheck %s --check-prefix=REMARK

!x = tensor<?x64xf32, #nn.rows<token>>

// Two linears of %n are one group; what reads the first moves behind the second. The linear that nobody waits for goes
// to the first group of linears. REMARK counts calls and barriers.
// REMARK: step{{.*}}6 calls, 3 barriers{{.*}}barriers=3{{.*}}calls=6
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @linear(%x: !x, %w: tensor<64x64xf32>) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 64, head_tile = 1, value_parts = 1> {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : !x -> !x
    kern.yield %a : !x
  }
  kern.func @add(%x: !x, %y: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  kern.func @capture(%x: !x, %b: !nn.batch)
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    nn.capture %x, %b embed : !x
    kern.yield
  }
  // CHECK-LABEL: func.func @step(
  // CHECK-SAME: %[[N:.*]]: tensor<?x64xf32, #tok>, %[[W:.*]]: tensor<64x64xf32>, %[[B:.*]]: !nn.batch)
  func.func @step(%n: !x, %w: tensor<64x64xf32>, %b: !nn.batch) {
    // CHECK-NEXT: %[[Q:.*]] = kern.call nowait @linear(%[[N]], %[[W]])
    %q = kern.call @linear(%n, %w) : (!x, tensor<64x64xf32>) -> !x
    // CHECK-NEXT: %[[KV:.*]] = kern.call nowait @linear(%[[N]], %[[W]])
    // CHECK-NEXT: %{{.*}} = kern.call @linear(%[[N]], %[[W]])
    // CHECK-NEXT: %[[R:.*]] = kern.call @linear(%[[Q]], %[[W]])
    %r = kern.call @linear(%q, %w) : (!x, tensor<64x64xf32>) -> !x
    %kv = kern.call @linear(%n, %w) : (!x, tensor<64x64xf32>) -> !x
    // A sum and what captures it take row i as item i, on the same worker: one group, in this order.
    // CHECK-NEXT: %[[S:.*]] = kern.call nowait @add(%[[R]], %[[KV]])
    %s = kern.call @add(%r, %kv) : (!x, !x) -> !x
    // CHECK-NEXT: kern.call @capture(%[[S]], %[[B]])
    kern.call @capture(%s, %b) : (!x, !nn.batch) -> ()
    %late = kern.call @linear(%n, %w) : (!x, tensor<64x64xf32>) -> !x
    // CHECK-NEXT: return
    return
  }
}

// -----

// Groups end before layers. A layer's result takes the place of its argument, so what reads the argument comes before
// a barrier, even if the rows are the same worker's; what is captured is captured once a group.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : !x
    kern.yield %x : !x
  }
  kern.func @add(%x: !x, %y: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  kern.func @capture(%x: !x, %b: !nn.batch)
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    nn.capture %x, %b embed : !x
    kern.yield
  }
  // CHECK-LABEL: nn.layer @layer
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // CHECK-NEXT: kern.call @add
    %a = kern.call @add(%x, %x) : (!x, !x) -> !x
    // CHECK-NEXT: kern.call @add
    %y = kern.call @add(%x, %a) : (!x, !x) -> !x
    nn.yield %y : !x
  }
  // CHECK-LABEL: func.func @step
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call nowait @embedding
    %x = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
    // CHECK-NEXT: kern.call @capture
    kern.call @capture(%x, %b) : (!x, !nn.batch) -> ()
    // CHECK-NEXT: kern.call @capture
    kern.call @capture(%x, %b) : (!x, !nn.batch) -> ()
    // CHECK-NEXT: nn.layers
    %y = nn.layers %x, %b [@layer[0 to 2]] : !x
    // CHECK-NEXT: kern.call @add
    %z = kern.call @add(%y, %y) : (!x, !x) -> !x
    return
  }
}
