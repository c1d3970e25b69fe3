// RUN: k2c-copy-opt %s --group-launches --assign-memory --verify-form=form=scheduled | FileCheck %s

// A loop, and a copy that goes on beside it, of a dialect that no pass knows. A row of 64 f32 in 10 token rows is 2560
// bytes.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xf32>) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x64xf32>, %b : !x
    kern.yield %x : !x
  }
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

  // What the loop carries lies in one place, 0. %outer is read in every iteration, so nothing in the loop takes its
  // place, though no op behind its reader names it. Calls of the loop form groups of their own.
  // CHECK-LABEL: func.func @loop
  func.func @loop(%b: !nn.batch, %t: tensor<100x64xf32>, %w: tensor<64x64xf32>) attributes {nn.entry = "serve"} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    // CHECK: %[[X:.*]] = kern.call nowait @embedding({{.*}}) at [0]
    // CHECK-NEXT: %[[OUTER:.*]] = kern.call @embedding({{.*}}) at [2560]
    %x = kern.call @embedding(%b, %t) : (!nn.batch, tensor<100x64xf32>) -> !x
    %outer = kern.call @embedding(%b, %t) : (!nn.batch, tensor<100x64xf32>) -> !x
    // CHECK-NEXT: scf.for {{.*}} iter_args(%[[I:.*]] = %[[X]])
    %r = scf.for %l = %c0 to %c8 step %c1 iter_args(%i = %x) -> (!x) {
      // CHECK-NEXT: kern.call nowait @linear(%[[OUTER]], {{.*}}) at [5120]
      // CHECK-NEXT: kern.call @linear(%[[I]], {{.*}}) at [7680]
      // CHECK-NEXT: kern.call nowait @add({{.*}}) at [10240]
      // CHECK-NEXT: kern.call @add({{.*}}) at [0]
      %0 = kern.call @linear(%outer, %w) : (!x, tensor<64x64xf32>) -> !x
      %1 = kern.call @linear(%i, %w) : (!x, tensor<64x64xf32>) -> !x
      %2 = kern.call @add(%0, %1) : (!x, !x) -> !x
      %3 = kern.call @add(%i, %2) : (!x, !x) -> !x
      scf.yield %3 : !x
    }
    // CHECK: kern.call @add({{.*}}) at [2560]
    %4 = kern.call @add(%r, %r) : (!x, !x) -> !x
    return
  }

  // Both ends of a branch write its result, in one place.
  // CHECK-LABEL: func.func @branch
  func.func @branch(%b: !nn.batch, %t: tensor<100x64xf32>, %if: i1) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    %x = kern.call @embedding(%b, %t) : (!nn.batch, tensor<100x64xf32>) -> !x
    // CHECK-NEXT: scf.if
    %r = scf.if %if -> !x {
      // CHECK-NEXT: kern.call @add({{.*}}) at [2560]
      %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
      scf.yield %0 : !x
    } else {
      // CHECK: kern.call nowait @embedding({{.*}}) at [5120]
      // CHECK-NEXT: kern.call @add({{.*}}) at [2560]
      %1 = kern.call @embedding(%b, %t) : (!nn.batch, tensor<100x64xf32>) -> !x
      %2 = kern.call @add(%x, %1) : (!x, !x) -> !x
      scf.yield %2 : !x
    }
    // CHECK: kern.call @add({{.*}}) at [0]
    %3 = kern.call @add(%r, %r) : (!x, !x) -> !x
    return
  }

  // What the copy reads and writes is held from the start to the wait: %1 and %2 lie beside %x, which no op reads any
  // more. Behind the wait the place of %x is free.
  // CHECK-LABEL: func.func @copy
  func.func @copy(%b: !nn.batch, %t: tensor<100x64xf32>) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    // CHECK-NEXT: copy.start {{.*}} at [0, 2560]
    // CHECK-NEXT: kern.call nowait @embedding({{.*}}) at [5120]
    // CHECK-NEXT: kern.call @add({{.*}}) at [7680]
    // CHECK-NEXT: copy.wait
    // CHECK-NEXT: kern.call @add({{.*}}) at [0]
    %x = kern.call @embedding(%b, %t) : (!nn.batch, tensor<100x64xf32>) -> !x
    %token, %y = copy.start %x : !x -> !x
    %1 = kern.call @embedding(%b, %t) : (!nn.batch, tensor<100x64xf32>) -> !x
    %2 = kern.call @add(%1, %1) : (!x, !x) -> !x
    copy.wait %token
    %3 = kern.call @add(%y, %2) : (!x, !x) -> !x
    return
  }

  // A copy that every iteration begins and the next one waits for: what it touches is held in the whole loop, so %0
  // lies beside %z, which is written later in the iteration. What a copy reads may be read beside it.
  // CHECK-LABEL: func.func @carried
  func.func @carried(%b: !nn.batch, %t: tensor<100x64xf32>, %w: tensor<64x64xf32>) attributes {nn.entry = "serve"} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    // CHECK: kern.call @embedding({{.*}}) at [0]
    // CHECK-NEXT: copy.start {{.*}} at [0, 2560]
    %x = kern.call @embedding(%b, %t) : (!nn.batch, tensor<100x64xf32>) -> !x
    %first, %y = copy.start %x : !x -> !x
    %last = scf.for %l = %c0 to %c8 step %c1 iter_args(%before = %first) -> (!copy.token) {
      // CHECK: kern.call @linear({{.*}}) at [5120]
      // CHECK-NEXT: copy.wait
      // CHECK-NEXT: copy.start {{.*}} at [0, 7680]
      %0 = kern.call @linear(%x, %w) : (!x, tensor<64x64xf32>) -> !x
      copy.wait %before
      %next, %z = copy.start %x : !x -> !x
      scf.yield %next : !copy.token
    }
    copy.wait %last
    return
  }
}
