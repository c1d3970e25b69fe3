// RUN: k2c-opt %s --attach-plan="without=buffer-reuse" --assign-memory | FileCheck %s
// RUN: k2c-opt %s --assign-memory | FileCheck %s --check-prefix=REUSE

// Bounds of what travels, for 10 tokens a step on each of two ranks: 20 messages of 272 bytes, counts of two ranks, 20
// rows that arrive and 40 slots of these.
#tok = #nn.rows<token>
#recv = #nn.rows<recv, site = 0, max = 20>
!x = tensor<?x64xf32, #tok>
!messages = tensor<?x272xi8, #nn.rows<message, site = 0, max = 20>>
!counts = !dist.counts<members = 2>
!arrived = tensor<?x64xf32, #recv>
!chosen = tensor<?x2xi32, #recv>
!weights = tensor<?x2xf32, #recv>
!permutation = !moe.permutation<experts = 6, top = 2, site = 0, max = 20>
!slots = tensor<?x64xf32, #nn.rows<slot, 2, site = 0, max = 20>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 40>>
// CHECK: module attributes {{{.*}}mem.peak = 53568 : i64
// REUSE: module attributes {mem.peak = 28800 : i64
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @route_plan(%e: tensor<?x2xi32, #tok>, %l: index) -> (tensor<?x3x2xi32, #tok>, !counts, !counts) {
    %r, %s, %b = moe.route_plan %e layer %l among 0 to 3 experts 12 slots 12 within world to rank held 6 : tensor<?x2xi32, #tok> -> tensor<?x3x2xi32, #tok>, !counts, !counts
    kern.yield %r, %s, %b : tensor<?x3x2xi32, #tok>, !counts, !counts
  }
  kern.func @pack(%x: !x, %w: tensor<?x2xf32, #tok>, %r: tensor<?x3x2xi32, #tok>) -> !messages {
    %m = moe.pack %x, %w, %r : !x, tensor<?x2xf32, #tok>, tensor<?x3x2xi32, #tok> -> !messages
    kern.yield %m : !messages
  }
  kern.func @unpack(%m: !messages, %c: !counts) -> (!arrived, !chosen, !weights) {
    %x, %s, %w = moe.unpack %m, %c : !messages, !counts -> !arrived, !chosen, !weights
    kern.yield %x, %s, %w : !arrived, !chosen, !weights
  }
  kern.func @permutation(%s: !chosen) -> !permutation {
    %p = moe.permutation %s : !chosen -> !permutation
    kern.yield %p : !permutation
  }
  kern.func @permute(%x: !arrived, %p: !permutation) -> !slots {
    %in = moe.permute %x, %p : !arrived, !permutation -> !slots
    kern.yield %in : !slots
  }
  kern.func @return_plan(%s: !chosen, %c: !counts, %l: index) -> (tensor<?x2xi32, #recv>, !counts) {
    %q, %b = moe.return_plan %s, %c layer %l among 0 to 3 experts 12 slots 12 by rank held 6 : !chosen, !counts -> tensor<?x2xi32, #recv>, !counts
    kern.yield %q, %b : tensor<?x2xi32, #recv>, !counts
  }
  kern.func @reduce_subtrees(%d: !slots, %p: !permutation, %s: !chosen, %q: tensor<?x2xi32, #recv>, %l: index) -> !sums {
    %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 0 to 3 experts 12 slots 12 order tree<4> : !slots, !permutation, !chosen, tensor<?x2xi32, #recv> -> !sums
    kern.yield %u : !sums
  }
  kern.func @combine(%u: !sums, %r: tensor<?x3x2xi32, #tok>, %e: tensor<?x2xi32, #tok>) -> !x {
    %y = moe.combine %u, %r, %e experts 12 order tree<4> : !sums, tensor<?x3x2xi32, #tok>, tensor<?x2xi32, #tok> -> !x
    kern.yield %y : !x
  }
  func.func @step(%l: index, %x: !x, %e: tensor<?x2xi32, #tok>, %w: tensor<?x2xf32, #tok>, %b: !nn.batch) attributes {nn.entry = "serve"} {
    // Arguments take 2816 bytes. Routes are six i32 of each token, counts four i64 in a cache line.
    // CHECK: kern.call @route_plan({{.*}}) at [2816, 3072, 3136]
    // REUSE: kern.call @route_plan({{.*}}) at [2816, 3072, 3136]
    %r:3 = kern.call @route_plan(%e, %l) : (tensor<?x2xi32, #tok>, index) -> (tensor<?x3x2xi32, #tok>, !counts, !counts)
    // CHECK: kern.call @pack({{.*}}) at [3200]
    // REUSE: kern.call @pack({{.*}}) at [3200]
    %m = kern.call @pack(%x, %w, %r#0) : (!x, tensor<?x2xf32, #tok>, tensor<?x3x2xi32, #tok>) -> !messages
    // What comes lies beside what goes: 20 * 272 bytes each.
    // CHECK: dist.all_to_all {{.*}} site 0 quota 10 at [8640, 14080]
    // REUSE: dist.all_to_all {{.*}} site 0 quota 10 at [8640, 0]
    %in, %came = dist.all_to_all %m to %r#1 over ep site 0 quota 10 : !messages, !counts -> !messages, !counts
    // CHECK: kern.call @unpack({{.*}}) at [14144, 19264, 19456]
    // REUSE: kern.call @unpack({{.*}}) at [3200, 64, 256]
    %y:3 = kern.call @unpack(%in, %came) : (!messages, !counts) -> (!arrived, !chosen, !weights)
    // 4 * (6 + 1 + 2 * 20 * 2) = 348 bytes.
    // CHECK: kern.call @permutation({{.*}}) at [19648]
    %p = kern.call @permutation(%y#1) : (!chosen) -> !permutation
    // CHECK: kern.call @permute({{.*}}) at [20032]
    %s = kern.call @permute(%y#0, %p) : (!arrived, !permutation) -> !slots
    // CHECK: kern.call @return_plan({{.*}}) at [30272, 30464]
    %q:2 = kern.call @return_plan(%y#1, %came, %l) : (!chosen, !counts, index) -> (tensor<?x2xi32, #recv>, !counts)
    // CHECK: kern.call @reduce_subtrees({{.*}}) at [30528]
    // REUSE: kern.call @reduce_subtrees({{.*}}) at [18560]
    %u = kern.call @reduce_subtrees(%s, %p, %y#1, %q#0, %l) : (!slots, !permutation, !chosen, tensor<?x2xi32, #recv>, index) -> !sums
    // The counts of what comes were written before the first exchange, and are held up to this one.
    // CHECK: dist.all_to_all {{.*}} site 1 at [40768]
    // REUSE: dist.all_to_all {{.*}} site 1 at [3200]
    %v = dist.all_to_all %u to %q#1 from %r#2 over ep site 1 : !sums, !counts, !counts -> !sums
    // CHECK: kern.call @combine({{.*}}) at [51008]
    %z = kern.call @combine(%v, %r#0, %e) : (!sums, tensor<?x3x2xi32, #tok>, tensor<?x2xi32, #tok>) -> !x
    return
  }
}
