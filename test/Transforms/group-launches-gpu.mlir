// RUN: k2c-opt %s --group-launches --split-input-file | FileCheck %s

// On a GPU launches of a group run beside each other: what has a row of both on one worker of a processor is in two
// groups there, and what touches other values stays in one.
!x = tensor<?x32xf32, #nn.rows<token>>
module attributes {kern.target = #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 4, ctas = 264,
                                           host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = []>>,
                   nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // CHECK-LABEL: func.func @chain
  func.func @chain(%x: !x, %y: !x) {
    // CHECK-NEXT: %{{.*}} = kern.call nowait @add(%arg0, %arg1)
    // CHECK-NEXT: %{{.*}} = kern.call @add(%arg1, %arg0)
    // CHECK-NEXT: %{{.*}} = kern.call @add(%add, %arg1)
    %0 = kern.call @add(%x, %y) : (!x, !x) -> !x
    %1 = kern.call @add(%0, %y) : (!x, !x) -> !x
    %2 = kern.call @add(%y, %x) : (!x, !x) -> !x
    return
  }
}

// -----

// The same on processors: one group.
!x = tensor<?x32xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // CHECK-LABEL: func.func @chain
  func.func @chain(%x: !x, %y: !x) {
    // CHECK-NEXT: %{{.*}} = kern.call nowait @add
    // CHECK-NEXT: %{{.*}} = kern.call nowait @add
    // CHECK-NEXT: %{{.*}} = kern.call @add
    %0 = kern.call @add(%x, %y) : (!x, !x) -> !x
    %1 = kern.call @add(%0, %y) : (!x, !x) -> !x
    %2 = kern.call @add(%y, %x) : (!x, !x) -> !x
    return
  }
}
