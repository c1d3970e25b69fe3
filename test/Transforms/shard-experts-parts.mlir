// RUN: k2c-opt %s --shard-experts | FileCheck %s
// RUN: k2c-opt %s --shard-experts --verify-form=form=distributed -o /dev/null
// RUN: k2c-opt %s --shard-experts --remarks-filter=shard-experts 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: sed 's/ep=2,etp=2,dp=4/ep=4,etp=2,dp=8/;s/ranks = 4/ranks = 8/' %s | k2c-opt --shard-experts --verify-form=form=distributed | FileCheck %s --check-prefix=TWO

!x = tensor<?x64xbf16, #nn.rows<token>>
!s = tensor<?x12xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>

// Two nodes of two ranks, which have half of each of six experts. A rank sends 16 tokens to the other node at most, so
// that 32 come to a rank, and 64 to both of a node, each of which gets them all. Of a choice two parts come back.
// CHECK-DAG: #recv = #nn.rows<recv, site = 0, max = 32>
// CHECK-DAG: #recv1 = #nn.rows<recv, site = 1, max = 64>
// CHECK-DAG: #subtree = #nn.rows<subtree, site = 2, max = 128>
// CHECK-DAG: #subtree1 = #nn.rows<subtree, site = 2, max = 64>
// CHECK-DAG: !permutation = !moe.permutation<experts = 6, top = 2, site = 1, max = 64>
// REMARK: divided{{.*}}12 experts on 2 ranks, 6 on each in 2 parts: a message has 144 bytes
module attributes {dist.plan = #dist.plan<layout = "ep=2,etp=2,dp=4", expanded_from = -1>,
                   dist.topology = #dist.topology<"two-nodes", ranks = 4 on 2 nodes>,
                   nn.limits = #nn.limits<token = 16, seq = 4, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = bf16, mla = phased, class = "avx512-bf16">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @router "{layer}.router" over (layer = 1 to 3) : tensor<12x64xbf16>
  // CHECK: nn.weights @gu {{.*}} held 6 parts 2 along 2 : tensor<12x2x1024x64xbf16>
  nn.weights @gu "{layer}.{expert}.{g|u}" over (layer = 1 to 3, expert = 0 to 12) : tensor<12x2x1024x64xbf16>
  // CHECK: nn.weights @down {{.*}} held 6 parts 2 along 2 : tensor<12x64x1024xbf16>
  nn.weights @down "{layer}.{expert}" over (layer = 1 to 3, expert = 0 to 12) : tensor<12x64x1024xbf16>

  // CHECK-LABEL: nn.layer @experts(
  // TWO-LABEL: nn.layer @experts(
  nn.layer @experts(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %s = nn.linear %x, @router[%l] order tree<1> : !x -> !s
    // CHECK: %[[E:.*]], %[[W:.*]] = moe.routing
    %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    // To a rank with the same part of the experts.
    // CHECK: %[[IN:.*]], %[[CAME:.*]] = dist.all_to_all %{{.*}} over ep site 0 quota 16 :
    // CHECK-NEXT: %[[Y:.*]], %[[C:.*]], %[[V:.*]] = moe.unpack %[[IN]], %[[CAME]]
    // From there to all parts.
    // CHECK-NEXT: %[[ROUTES:.*]], %[[SENT:.*]], %[[RETURNED:.*]] = moe.route_plan %[[C]] {{.*}} within rank to part held 6 :
    // CHECK-NEXT: %[[M1:.*]] = moe.pack %[[Y]], %[[V]], %[[ROUTES]]
    // CHECK-NEXT: %[[IN1:.*]], %[[CAME1:.*]] = dist.all_to_all %[[M1]] to %[[SENT]] over etp site 1 quota 32 :
    // CHECK-NEXT: %{{.*}}, %[[C1:.*]], %{{.*}} = moe.unpack %[[IN1]], %[[CAME1]]
    // CHECK-NEXT: %[[P:.*]] = moe.permutation %[[C1]]
    // CHECK: moe.grouped_linear {{.*}} @gu[%{{.*}}] order tree<1> : {{.*}} -> tensor<?x2x512xbf16, #slot>
    // Half of the leaves, neither weighted nor rounded.
    // CHECK: %[[D:.*]] = moe.grouped_linear {{.*}} @down[%{{.*}}] order tree<1> : {{.*}} -> tensor<?x64xf32, #slot>
    // CHECK-NEXT: %[[SUMS1:.*]], %[[BACK1:.*]] = moe.return_plan %[[C1]], %[[CAME1]] {{.*}} by part held 6 :
    // CHECK-NEXT: %[[U1:.*]] = moe.reduce_subtrees %[[D]], %[[P]], %[[C1]], %[[SUMS1]] {{.*}} by part order tree<4>
    // CHECK-NEXT: %[[B1:.*]] = dist.all_to_all %[[U1]] to %[[BACK1]] from %[[RETURNED]] over etp site 2 : {{.*}} -> tensor<?x64xf32, #subtree>
    // CHECK-NEXT: %[[D1:.*]] = moe.add_parts %[[B1]], %[[RETURNED]], %[[ROUTES]] weighted %[[V]] order tree<2> : {{.*}} -> tensor<?x64xbf16, #subtree1>
    // From here on it is as if one rank had the experts.
    // CHECK-NEXT: %[[SUMS:.*]], %[[BACK:.*]] = moe.return_plan %[[C]], %[[CAME]] {{.*}} by rank held 6 :
    // CHECK-NEXT: %[[U:.*]] = moe.merge_subtrees %[[D1]], %[[ROUTES]], %[[C]], %[[SUMS]] {{.*}} by rank held 6 order tree<4>
    // CHECK-NEXT: %[[B:.*]] = dist.all_to_all %[[U]] to %[[BACK]] from %{{.*}} over ep site 3 :
    // CHECK-NEXT: moe.combine %[[B]], %{{.*}}, %[[E]] experts 12 order tree<4>
    // In two hops it is a third one.
    // TWO: over rail site 0 quota 16
    // TWO: over node site 1 quota 32
    // TWO: over etp site 2 quota 64
    // TWO: over etp site 3
    // TWO: merge_subtrees {{.*}} by rank held 3
    // TWO: over node site 4
    // TWO: merge_subtrees {{.*}} slots 12 held 6
    // TWO: over rail site 5
    %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 12 inner 1024 act silu
        up_order tree<1> down_order tree<2> combine tree<4> : !x, !e, !w -> !x
    nn.yield %r : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = nn.embed @embed, %b : !x
    %1 = nn.layers %0, %b [@experts[1 to 3]] : !x
    return
  }
}
