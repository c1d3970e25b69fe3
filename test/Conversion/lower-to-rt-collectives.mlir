// RUN: k2c-opt %s --attach-plan --assign-slots --certify-memory --emit-kernels --lower-to-rt --mlir-print-local-scope | FileCheck %s

// An exchange becomes a start and a wait, its site a table; what runs on the rows that came has them for its step.
#tok = #nn.rows<token>
#recv = #nn.rows<recv, site = 0, max = 20>
!x = tensor<?x64xf32, #tok>
!e = tensor<?x2xi32, #tok>
!w = tensor<?x2xf32, #tok>
!routes = tensor<?x3x2xi32, #tok>
!messages = tensor<?x272xi8, #nn.rows<message, site = 0, max = 20>>
!counts = !dist.counts<members = 2>
!chosen = tensor<?x2xi32, #recv>
!permutation = !moe.permutation<experts = 6, top = 2, site = 0, max = 20>
!slots = tensor<?x64xf32, #nn.rows<slot, 2, site = 0, max = 20>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 40>>

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.peak = 65536 : i64} {
  // Sites are numbered as the step comes to them, and listed by number. Where the program knows how many rows come,
  // there is no quota.
  // CHECK: rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 272 quota 10
  // CHECK-NEXT: rt.collective @site1 site 1 op all_to_all_rows axis ep members 2 row_bytes 256{{$}}
  // CHECK-NEXT: rt.kernel @route_plan id 0
  kern.func @route_plan(%e: !e, %l: index) -> (!routes, !counts, !counts) tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 0, head_tile = 1, value_parts = 1> {
    %r, %s, %b = moe.route_plan %e layer %l among 1 to 3 experts 12 slots 12 within world to rank held 6 : !e -> !routes, !counts, !counts
    kern.yield %r, %s, %b : !routes, !counts, !counts
  }
  kern.func @pack(%x: !x, %w: !w, %r: !routes) -> !messages tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %m = moe.pack %x, %w, %r : !x, !w, !routes -> !messages
    kern.yield %m : !messages
  }
  kern.func @unpack(%m: !messages, %c: !counts) -> (tensor<?x64xf32, #recv>, !chosen, tensor<?x2xf32, #recv>) tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x, %s, %w = moe.unpack %m, %c : !messages, !counts -> tensor<?x64xf32, #recv>, !chosen, tensor<?x2xf32, #recv>
    kern.yield %x, %s, %w : tensor<?x64xf32, #recv>, !chosen, tensor<?x2xf32, #recv>
  }
  kern.func @permutation(%s: !chosen) -> !permutation tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 0, head_tile = 1, value_parts = 1> {
    %p = moe.permutation %s : !chosen -> !permutation
    kern.yield %p : !permutation
  }
  kern.func @double(%x: !slots) -> !slots tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %y = nn.add %x, %x : !slots
    kern.yield %y : !slots
  }
  kern.func @permute(%x: tensor<?x64xf32, #recv>, %p: !permutation) -> !slots tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = moe.permute %x, %p : tensor<?x64xf32, #recv>, !permutation -> !slots
    kern.yield %s : !slots
  }
  kern.func @return_plan(%s: !chosen, %c: !counts, %l: index) -> (tensor<?x2xi32, #recv>, !counts) tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 0, head_tile = 1, value_parts = 1> {
    %q, %b = moe.return_plan %s, %c layer %l among 1 to 3 experts 12 slots 12 by rank held 6 : !chosen, !counts -> tensor<?x2xi32, #recv>, !counts
    kern.yield %q, %b : tensor<?x2xi32, #recv>, !counts
  }
  kern.func @reduce_subtrees(%d: !slots, %p: !permutation, %s: !chosen, %q: tensor<?x2xi32, #recv>, %l: index) -> !sums tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 3 experts 12 slots 12 order tree<4> : !slots, !permutation, !chosen, tensor<?x2xi32, #recv> -> !sums
    kern.yield %u : !sums
  }
  kern.func @combine(%u: !sums, %r: !routes, %e: !e) -> !x tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %y = moe.combine %u, %r, %e experts 12 order tree<4> : !sums, !routes, !e -> !x
    kern.yield %y : !x
  }

  // CHECK: func.func private @layer(%[[L:.*]]: index) {
  nn.layer @layer(%l: index, %x: !x, %e: !e, %w: !w, %b: !nn.batch) -> (!x, !e, !w) attributes {mem.arguments = array<i64: 0, 2560, 2688>} {
    // The placement of a layer is found by its ordinal among those with experts.
    // CHECK: %[[ORDINAL:.*]] = arith.subi %[[L]], %{{.*}} : index
    // CHECK: %[[ALL:.*]] = rt.placement[%[[ORDINAL]]] experts 12 slots 12 held of world count 12
    // CHECK: %[[SUBTREES:.*]] = rt.placement[%{{.*}}] experts 12 slots 12 subtrees of rank count 12
    // CHECK: rt.launch @route_plan grid({{.*}}) args(%{{.*}}, %[[ALL]], %[[SUBTREES]], %{{.*}}, %{{.*}}, %{{.*}}) :
    %r:3 = kern.call @route_plan(%e, %l) at [2816, 3072, 3136] : (!e, index) -> (!routes, !counts, !counts)
    // CHECK: %[[TOKENS:.*]] = rt.rows token
    // CHECK: rt.grid %[[TOKENS]]
    // CHECK: rt.launch @pack grid(
    %m = kern.call @pack(%x, %w, %r#0) at [3200] : (!x, !w, !routes) -> !messages
    // What is counted when it comes has a place for the counts.
    // CHECK: %[[M:.*]] = rt.arena 3200
    // CHECK: %[[SENT:.*]] = rt.arena 3072
    // CHECK: %[[IN:.*]] = rt.arena 8640
    // CHECK: %[[CAME:.*]] = rt.arena 14080
    // CHECK: rt.collective_start @site0 layer %[[L]] source %[[M]] to %[[SENT]] result %[[IN]] from %[[CAME]]
    // CHECK-NEXT: rt.collective_wait @site0
    %in, %came = dist.all_to_all %m to %r#1 over ep site 0 quota 10 at [8640, 14080] : !messages, !counts -> !messages, !counts
    // The grid is that of the rows that came.
    // CHECK: %[[ARRIVED:.*]] = rt.arrived @site0
    // CHECK: %[[GRID:.*]] = rt.grid %[[ARRIVED]] slots 1
    // CHECK: rt.launch @unpack in @site0 grid(%[[GRID]])
    %y:3 = kern.call @unpack(%in, %came) at [14144, 19264, 19456] : (!messages, !counts) -> (tensor<?x64xf32, #recv>, !chosen, tensor<?x2xf32, #recv>)
    // A kernel without a grid of rows works on them, too.
    // CHECK: rt.launch nowait @permutation in @site0 grid(%c1_i64{{.*}})
    %p = kern.call nowait @permutation(%y#1) at [19648] : (!chosen) -> !permutation
    // CHECK: %[[HELD:.*]] = rt.placement[%{{.*}}] experts 12 slots 12 held of rank count 6
    // CHECK: %[[OF:.*]] = rt.placement[%{{.*}}] experts 12 slots 12 subtrees of rank count 12
    // CHECK: rt.launch @return_plan in @site0 grid({{.*}}) args(%{{.*}}, %{{.*}}, %[[HELD]], %[[OF]], %{{.*}}, %{{.*}}) :
    %q:2 = kern.call @return_plan(%y#1, %came, %l) at [30272, 30464] : (!chosen, !counts, index) -> (tensor<?x2xi32, #recv>, !counts)
    // CHECK: rt.launch @permute in @site0
    %s = kern.call @permute(%y#0, %p) at [20032] : (tensor<?x64xf32, #recv>, !permutation) -> !slots
    // Slots of what came are two a row.
    // CHECK: %[[AGAIN:.*]] = rt.arrived @site0
    // CHECK: rt.grid %[[AGAIN]] slots 2
    // CHECK: rt.launch @double in @site0
    %d = kern.call @double(%s) at [40768] : (!slots) -> !slots
    // CHECK: rt.launch @reduce_subtrees in @site0
    %u = kern.call @reduce_subtrees(%d, %p, %y#1, %q#0, %l) at [30528] : (!slots, !permutation, !chosen, tensor<?x2xi32, #recv>, index) -> !sums
    // Counts that the program knows are those that it wrote.
    // CHECK: %[[U:.*]] = rt.arena 30528
    // CHECK: %[[BACK:.*]] = rt.arena 30464
    // CHECK: %[[V:.*]] = rt.arena 40768
    // CHECK: %[[RETURNED:.*]] = rt.arena 3136
    // CHECK: rt.collective_start @site1 layer %[[L]] source %[[U]] to %[[BACK]] result %[[V]] from %[[RETURNED]]
    // CHECK-NEXT: rt.collective_wait @site1
    %v = dist.all_to_all %u to %q#1 from %r#2 over ep site 1 at [40768] : !sums, !counts, !counts -> !sums
    // Sums that came back are read by token rows: those of the step.
    // CHECK: rt.rows token
    // CHECK: rt.launch @combine grid(
    %z = kern.call @combine(%v, %r#0, %e) at [0] : (!sums, !routes, !e) -> !x
    nn.yield %z, %e, %w : !x, !e, !w
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}
