// RUN: k2c-opt %s --shard-experts | FileCheck %s
// RUN: k2c-opt %s --shard-experts --verify-form=form=distributed -o /dev/null
// RUN: sed 's/ep=2,tp=2/tp=2/' %s | k2c-opt --shard-experts | FileCheck %s --check-prefix=GROUP
// RUN: sed 's/ep=2,tp=2/tp=2/' %s | k2c-opt --shard-experts --verify-form=form=distributed -o /dev/null

// Experts are over all ranks of a stage, those of a tensor-parallel group as well, each of which routes the rows of its
// slice: eight of 16 at most. Sites are numbered behind those of the slices.
!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
!s = tensor<?x12xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "ep=2,tp=2", expanded_from = -1>,
                   dist.topology = #dist.topology<"pair", ranks = 2>,
                   nn.limits = #nn.limits<token = 8 of 16, seq = 4, context = 64, output = 4>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @o "{layer}.o" over (layer = 1 to 3) parts 2 along 1 : tensor<64x128xbf16>
  nn.weights @router "{layer}.router" over (layer = 1 to 3) : tensor<12x64xbf16>
  // CHECK: nn.weights @gu {{.*}} held 6 : tensor
  // GROUP: nn.weights @gu {{.*}}expert = 0 to 12) : tensor
  nn.weights @gu "{layer}.{expert}.{g|u}" over (layer = 1 to 3, expert = 0 to 12) : tensor<12x2x96x64xbf16>
  nn.weights @down "{layer}.{expert}" over (layer = 1 to 3, expert = 0 to 12) : tensor<12x64x96xbf16>

  // CHECK-LABEL: nn.layer @experts(
  // GROUP-LABEL: nn.layer @experts(
  nn.layer @experts(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %all = dist.gather_slices %x site 0 : !x -> !all
    %p = nn.linear %all, @o[%l] order tree<1> : !all -> !all
    %p0, %p1 = dist.scatter_slices %p site 1 : !all -> !x, !x
    // CHECK: %[[Y:.*]] = nn.add_partials
    %y = nn.add_partials %p0, %p1 : !x, !x -> !x
    // CHECK: %[[E:.*]], %[[W:.*]] = moe.routing
    %s = nn.linear %y, @router[%l] order tree<1> : !x -> !s
    %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    // CHECK: moe.pack %[[Y]], %[[W]]
    // CHECK: dist.all_to_all {{.*}} over ep site 2 quota 8 :
    // CHECK: dist.all_to_all {{.*}} over ep site 3 :
    // Where all ranks have all experts, they exchange no rows for them.
    // GROUP: moe.permute
    // GROUP-NOT: all_to_all
    %r = moe.experts %y, %e, %w, @gu[%l], @down[%l] experts 12 inner 96 act silu
        up_order tree<1> down_order tree<1> combine tree<4> : !x, !e, !w -> !x
    nn.yield %r : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = nn.embed @embed, %b : !x
    %1 = nn.layers %0, %b [@experts[1 to 3]] : !x
    return
  }
}
