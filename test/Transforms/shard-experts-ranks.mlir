// RUN: k2c-opt %s --shard-experts --split-input-file | FileCheck %s
// RUN: k2c-opt %s --shard-experts --shard-experts --split-input-file | FileCheck %s
// RUN: k2c-opt %s --shard-experts --split-input-file --remarks-filter=shard-experts 2>&1 | FileCheck %s --check-prefix=REMARK

!x = tensor<?x64xf32, #nn.rows<token>>
!s = tensor<?x12xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>

// A token has at most two messages, one for each of its experts' ranks, so a rank sends 32 of 16 tokens, and 32 come;
// a row of 64 f32 and two choices are 272 bytes.
// CHECK-DAG: #message = #nn.rows<message, site = 0, max = 32>
// CHECK-DAG: #recv = #nn.rows<recv, site = 0, max = 32>
// CHECK-DAG: #slot = #nn.rows<slot, 2, site = 0, max = 32>
// CHECK-DAG: #subtree = #nn.rows<subtree, site = 1, max = 64>
// CHECK-DAG: #subtree1 = #nn.rows<subtree, site = 1, max = 32>
// CHECK-DAG: !permutation = !moe.permutation<experts = 6, top = 2, site = 0, max = 32>
// REMARK: divided{{.*}}12 experts on 2 ranks, 6 on each: a message has 272 bytes{{.*}}experts=12{{.*}}ranks=2{{.*}}top_k=2
module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  // References are to the six experts of a rank.
  // CHECK: nn.weights @gu {{.*}} held 6 : tensor<12x2x96x64xbf16>
  // CHECK: nn.weights @down {{.*}} held 6 : tensor<12x64x96xbf16>
  nn.weights @gu "{layer}.{expert}.{g|u}" over (layer = 1 to 3, expert = 0 to 12) : tensor<12x2x96x64xbf16>
  nn.weights @down "{layer}.{expert}" over (layer = 1 to 3, expert = 0 to 12) : tensor<12x64x96xbf16>

  // CHECK-LABEL: func.func @experts(
  // CHECK-SAME: %[[L:.*]]: index, %[[X:.*]]: tensor<?x64xf32, #tok>, %{{.*}}: tensor<?x12xf32, #tok>
  func.func @experts(%l: index, %x: !x, %s: !s, %b: !nn.batch) -> !x {
    // CHECK: %[[E:.*]], %[[W:.*]] = moe.routing
    %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    // The placement is that of the router's layer.
    // CHECK: %[[SLOTS:.*]] = moe.locate %[[E]] layer %[[L]] among 1 to 3 experts 12 slots 12 held 12
    // CHECK-NEXT: %[[ROUTES:.*]], %[[SENT:.*]], %[[RETURNED:.*]] = moe.route_plan %[[SLOTS]] layer %[[L]] among 1 to 3 experts 12 slots 12 within world to rank held 6 : tensor<?x2xi32, #tok> -> tensor<?x3x2xi32, #tok>, !dist.counts<members = 2>, !dist.counts<members = 2>
    // CHECK-NEXT: %[[M:.*]] = moe.pack %[[X]], %[[W]], %[[ROUTES]] : {{.*}} -> tensor<?x272xi8, #message>
    // CHECK-NEXT: %[[IN:.*]], %[[CAME:.*]] = dist.all_to_all %[[M]] to %[[SENT]] over ep site 0 quota 16 :
    // CHECK-NEXT: %[[Y:.*]], %[[C:.*]], %[[V:.*]] = moe.unpack %[[IN]], %[[CAME]] : {{.*}} -> tensor<?x64xf32, #recv>, tensor<?x2xi32, #recv>, tensor<?x2xf32, #recv>
    // The same ops as on one rank, on the rows that arrived.
    // CHECK-NEXT: %[[P:.*]] = moe.permutation %[[C]] : tensor<?x2xi32, #recv> -> !permutation
    // CHECK-NEXT: %[[S:.*]] = moe.permute %[[Y]], %[[P]]
    // CHECK-NEXT: %[[G:.*]] = moe.grouped_linear %[[S]], %[[P]], @gu[%[[L]]] order tree<1> : {{.*}} -> tensor<?x2x96xf32, #slot>
    // CHECK-NEXT: %[[A:.*]] = nn.gated_act %[[G]] act silu
    // CHECK-NEXT: %[[D:.*]] = moe.grouped_linear %[[A]], %[[P]], @down[%[[L]]] weighted %[[V]] : tensor<?x2xf32, #recv> order tree<1>
    // CHECK-NEXT: %[[SUMS:.*]], %[[BACK:.*]] = moe.return_plan %[[C]], %[[CAME]] layer %[[L]] among 1 to 3 experts 12 slots 12 by rank held 6 :
    // CHECK-NEXT: %[[U:.*]] = moe.reduce_subtrees %[[D]], %[[P]], %[[C]], %[[SUMS]] layer %[[L]] among 1 to 3 experts 12 slots 12 order tree<4> : {{.*}} -> tensor<?x64xf32, #subtree>
    // CHECK-NEXT: %[[B:.*]] = dist.all_to_all %[[U]] to %[[BACK]] from %[[RETURNED]] over ep site 1 : tensor<?x64xf32, #subtree>, {{.*}} -> tensor<?x64xf32, #subtree1>
    // CHECK-NEXT: %[[R:.*]] = moe.combine %[[B]], %[[ROUTES]], %[[E]] experts 12 order tree<4>
    // CHECK-NEXT: return %[[R]]
    %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 12 inner 96 act silu
        up_order tree<1> down_order tree<1> combine tree<4> : !x, !e, !w -> !x
    return %r : !x
  }
}

// -----

!x = tensor<?x64xbf16, #nn.rows<token>>
!s = tensor<?x11xf32, #nn.rows<token>>
!e = tensor<?x4xi32, #nn.rows<token>>
!w = tensor<?x4xf32, #nn.rows<token>>

// Eleven experts have twelve slots, three on each of four ranks, of which a row chooses three at most.
// CHECK-DAG: #message = #nn.rows<message, site = 0, max = 64>
// CHECK-DAG: #subtree = #nn.rows<subtree, site = 1, max = 192>
// CHECK-DAG: !permutation = !moe.permutation<experts = 3, top = 4, site = 0, max = 64>
// REMARK: 11 experts on 4 ranks, 3 on each: a message has 160 bytes{{.*}}experts=11{{.*}}ranks=4{{.*}}top_k=4
module attributes {dist.plan = #dist.plan<layout = "ep=4,dp=4,redundant=1", expanded_from = -1>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  // CHECK: nn.weights @gu {{.*}} held 3 :
  nn.weights @gu "{layer}.{expert}.{g|u}" over (layer = 1 to 3, expert = 0 to 11) : tensor<11x2x96x64xbf16>
  nn.weights @down "{layer}.{expert}" over (layer = 1 to 3, expert = 0 to 11) : tensor<11x64x96xbf16>
  // CHECK-LABEL: func.func @redundant(
  func.func @redundant(%l: index, %x: !x, %s: !s, %b: !nn.batch) -> !x {
    %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 4 groups 1 of 1 scale 1.0 : !s -> !e, !w
    // CHECK: experts 11 slots 12 within world to rank held 3 :
    // CHECK: tensor<?x64xbf16, #recv>, !permutation -> tensor<?x64xbf16, #slot>
    // CHECK: moe.reduce_subtrees {{.*}} experts 11 slots 12 :
    %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 11 inner 96 act silu : !x, !e, !w -> !x
    return %r : !x
  }
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!s = tensor<?x12xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>

// Layers of two kinds: each op has sites of its own, every layer of a kind the same.
module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @gu "{layer}.{expert}.{g|u}" over (layer = 0 to 4, expert = 0 to 12) : tensor<12x2x96x64xbf16>
  nn.weights @down "{layer}.{expert}" over (layer = 0 to 4, expert = 0 to 12) : tensor<12x64x96xbf16>
  // CHECK-LABEL: nn.layer @even(
  nn.layer @even(%l: index, %x: !x, %s: !s, %b: !nn.batch) -> !x {
    %e, %w = moe.routing %s, %b layer %l among 0 to 4 score sigmoid top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    // CHECK: over ep site 0 quota 16 :
    // CHECK: over ep site 1 :
    %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 12 inner 96 act silu : !x, !e, !w -> !x
    nn.yield %r : !x
  }
  // CHECK-LABEL: nn.layer @odd(
  nn.layer @odd(%l: index, %x: !x, %s: !s, %b: !nn.batch) -> !x {
    %e, %w = moe.routing %s, %b layer %l among 0 to 4 score softmax top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    // CHECK: over ep site 2 quota 16 :
    // CHECK: over ep site 3 :
    %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 12 inner 96 act silu : !x, !e, !w -> !x
    nn.yield %r : !x
  }
}
