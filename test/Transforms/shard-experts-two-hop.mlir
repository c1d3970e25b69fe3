// RUN: k2c-opt %s --shard-experts | FileCheck %s
// RUN: k2c-opt %s --shard-experts --verify-form=form=distributed -o /dev/null
// RUN: k2c-opt %s --shard-experts --remarks-filter=shard-experts 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: sed 's/expanded_from = -1>/expanded_from = -1, without = ["two-hop"]>/' %s | k2c-opt --shard-experts | FileCheck %s --check-prefix=ONE
// RUN: sed 's/on 2 nodes/on 4 nodes/' %s | k2c-opt --shard-experts | FileCheck %s --check-prefix=ONE
// RUN: sed 's/ on 2 nodes//' %s | k2c-opt --shard-experts | FileCheck %s --check-prefix=ONE

!x = tensor<?x64xf32, #nn.rows<token>>
!s = tensor<?x12xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>

// Two nodes of two ranks, which hold three experts each. A rank sends 16 tokens to a node at most, so 32 come along the
// rail, and all of those may go on to one rank of the node, from both of its ranks.
// CHECK-DAG: #recv = #nn.rows<recv, site = 0, max = 32>
// CHECK-DAG: #recv1 = #nn.rows<recv, site = 1, max = 64>
// CHECK-DAG: !permutation = !moe.permutation<experts = 3, top = 2, site = 1, max = 64>
// REMARK: two-hop{{.*}}12 experts on 4 ranks, 3 on each, by way of 2 nodes: a message has 272 bytes
module attributes {dist.plan = #dist.plan<layout = "ep=4,dp=4", expanded_from = -1>,
                   dist.topology = #dist.topology<"two-nodes", ranks = 4 on 2 nodes>,
                   nn.limits = #nn.limits<token = 16, seq = 4, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @router "{layer}.router" over (layer = 1 to 3) : tensor<12x64xbf16>
  nn.weights @gu "{layer}.{expert}.{g|u}" over (layer = 1 to 3, expert = 0 to 12) : tensor<12x2x96x64xbf16>
  nn.weights @down "{layer}.{expert}" over (layer = 1 to 3, expert = 0 to 12) : tensor<12x64x96xbf16>

  // CHECK-LABEL: nn.layer @experts(
  // ONE-LABEL: nn.layer @experts(
  // ONE-NOT: over rail
  // ONE-COUNT-2: over ep
  // ONE-NOT: merge_subtrees
  nn.layer @experts(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %s = nn.linear %x, @router[%l] order tree<1> : !x -> !s
    // CHECK: %[[E:.*]], %[[W:.*]] = moe.routing
    %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    // To nodes, along the rail.
    // CHECK: %[[SLOTS:.*]] = moe.locate %[[E]] {{.*}} experts 12 slots 12 held 6
    // CHECK-NEXT: %[[ROUTES:.*]], %[[SENT:.*]], %[[RETURNED:.*]] = moe.route_plan %[[SLOTS]] {{.*}} within world to node held 6 :
    // CHECK-NEXT: %[[M:.*]] = moe.pack %{{.*}}, %[[W]], %[[ROUTES]]
    // CHECK-NEXT: %[[IN:.*]], %[[CAME:.*]] = dist.all_to_all %[[M]] to %[[SENT]] over rail site 0 quota 16 :
    // CHECK-NEXT: %[[Y:.*]], %[[C:.*]], %[[V:.*]] = moe.unpack %[[IN]], %[[CAME]]
    // From there to the ranks of the node.
    // CHECK-NEXT: %[[ROUTES1:.*]], %[[SENT1:.*]], %[[RETURNED1:.*]] = moe.route_plan %[[C]] {{.*}} within node to rank held 3 : tensor<?x2xi32, #recv> -> tensor<?x3x2xi32, #recv>
    // CHECK-NEXT: %[[M1:.*]] = moe.pack %[[Y]], %[[V]], %[[ROUTES1]]
    // CHECK-NEXT: %[[IN1:.*]], %[[CAME1:.*]] = dist.all_to_all %[[M1]] to %[[SENT1]] over node site 1 quota 32 :
    // CHECK-NEXT: %{{.*}}, %[[C1:.*]], %{{.*}} = moe.unpack %[[IN1]], %[[CAME1]]
    // CHECK-NEXT: moe.permutation %[[C1]]
    // Sums of a rank go back to where its rows came from, and those of the node from there.
    // CHECK: %[[SUMS1:.*]], %[[BACK1:.*]] = moe.return_plan %[[C1]], %[[CAME1]] {{.*}} by rank held 3 :
    // CHECK-NEXT: %[[U1:.*]] = moe.reduce_subtrees {{.*}}, %[[C1]], %[[SUMS1]]
    // CHECK-NEXT: %[[B1:.*]] = dist.all_to_all %[[U1]] to %[[BACK1]] from %[[RETURNED1]] over node site 2 :
    // CHECK-NEXT: %[[SUMS:.*]], %[[BACK:.*]] = moe.return_plan %[[C]], %[[CAME]] {{.*}} by node held 6 :
    // CHECK-NEXT: %[[U:.*]] = moe.merge_subtrees %[[B1]], %[[ROUTES1]], %[[C]], %[[SUMS]] {{.*}} held 6 order tree<4>
    // CHECK-NEXT: %[[B:.*]] = dist.all_to_all %[[U]] to %[[BACK]] from %[[RETURNED]] over rail site 3 :
    // CHECK-NEXT: moe.combine %[[B]], %[[ROUTES]], %[[E]] experts 12 order tree<4>
    %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 12 inner 96 act silu
        up_order tree<1> down_order tree<1> combine tree<4> : !x, !e, !w -> !x
    nn.yield %r : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = nn.embed @embed, %b : !x
    %1 = nn.layers %0, %b [@experts[1 to 3]] : !x
    return
  }
}
