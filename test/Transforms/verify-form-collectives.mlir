// RUN: k2c-opt %s --verify-form=form=distributed -o /dev/null
// RUN: sed '/scf[.]for/,/^    }/d' %s | k2c-opt --verify-form=form=distributed --scheduled-form | k2c-opt --runtime-form -o /dev/null
// RUN: sed 's/experts 12 slots 12/experts 12 slots 16/; s/experts = 6/experts = 8/; s/held 6/held 8/; s/held 12/held 16/' %s | k2c-opt --verify-form=form=distributed -o /dev/null
// RUN: sed 's/ max = 32/ max = 33/; s/max = 64/max = 70/' %s | k2c-opt --verify-form=form=distributed -o /dev/null

// What shard-experts makes of experts on two ranks, in two kinds of layers, is proven in each form. So are buffers that
// hold more than a step may bring, slots that stay empty, and exchanges that depend on nothing but the layer.
// verify-form-collectives-invalid.test breaks this program, a rule at a time.
#tok = #nn.rows<token>
#recv = #nn.rows<recv, site = 0, max = 32>
#slot = #nn.rows<slot, 2, site = 0, max = 32>
#recv2 = #nn.rows<recv, site = 2, max = 32>
#slot2 = #nn.rows<slot, 2, site = 2, max = 32>
!x = tensor<?x64xf32, #tok>
!e = tensor<?x2xi32, #tok>
!w = tensor<?x2xf32, #tok>
!scores = tensor<?x12xf32, #tok>
!routes = tensor<?x3x2xi32, #tok>
!counts = !dist.counts<members = 2>
!messages = tensor<?x272xi8, #nn.rows<message, site = 0, max = 32>>
!messages2 = tensor<?x272xi8, #nn.rows<message, site = 2, max = 32>>
!permutation = !moe.permutation<experts = 6, top = 2, site = 0, max = 32>
!permutation2 = !moe.permutation<experts = 6, top = 2, site = 2, max = 32>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 64>>
!returned = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 32>>
!sums2 = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 64>>
!returned2 = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 32>>

module attributes {nn.limits = #nn.limits<token = 16, seq = 4, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1>,
                   dist.topology = #dist.topology<"pair", ranks = 2>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @router "{layer}.router" over (layer = 0 to 4) : tensor<12x64xbf16>
  nn.weights @down "{layer}.{expert}" over (layer = 0 to 4, expert = 0 to 12) held 6 : tensor<12x64x64xbf16>
  nn.layer @even(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %s = nn.linear %x, @router[%l] order tree<1> : !x -> !scores
    %e, %w = moe.routing %s, %b layer %l among 0 to 4 score sigmoid top 2 groups 1 of 1 scale 1.0 : !scores -> !e, !w
    %a = moe.locate %e layer %l among 0 to 4 experts 12 slots 12 held 12 : !e -> !e
    %r, %sent, %expected = moe.route_plan %a layer %l among 0 to 4 experts 12 slots 12 within world to rank held 6 : !e -> !routes, !counts, !counts
    %m = moe.pack %x, %w, %r : !x, !w, !routes -> !messages
    %in, %came = dist.all_to_all %m to %sent over ep site 0 quota 16 : !messages, !counts -> !messages, !counts
    %y, %c, %v = moe.unpack %in, %came : !messages, !counts -> tensor<?x64xf32, #recv>, tensor<?x2xi32, #recv>, tensor<?x2xf32, #recv>
    %p = moe.permutation %c : tensor<?x2xi32, #recv> -> !permutation
    %t = moe.permute %y, %p : tensor<?x64xf32, #recv>, !permutation -> tensor<?x64xf32, #slot>
    %d = moe.grouped_linear %t, %p, @down[%l] weighted %v : tensor<?x2xf32, #recv> order tree<1> : tensor<?x64xf32, #slot>, !permutation -> tensor<?x64xf32, #slot>
    %q, %back = moe.return_plan %c, %came layer %l among 0 to 4 experts 12 slots 12 by rank held 6 : tensor<?x2xi32, #recv>, !counts -> tensor<?x2xi32, #recv>, !counts
    %u = moe.reduce_subtrees %d, %p, %c, %q layer %l among 0 to 4 experts 12 slots 12 order tree<4> : tensor<?x64xf32, #slot>, !permutation, tensor<?x2xi32, #recv>, tensor<?x2xi32, #recv> -> !sums
    %f = dist.all_to_all %u to %back from %expected over ep site 1 : !sums, !counts, !counts -> !returned
    %z = moe.combine %f, %r, %e experts 12 order tree<4> : !returned, !routes, !e -> !x
    nn.yield %z : !x
  }
  nn.layer @odd(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %s = nn.linear %x, @router[%l] order tree<1> : !x -> !scores
    %e, %w = moe.routing %s, %b layer %l among 0 to 4 score softmax top 2 groups 1 of 1 scale 1.0 : !scores -> !e, !w
    %a = moe.locate %e layer %l among 0 to 4 experts 12 slots 12 held 12 : !e -> !e
    %r, %sent, %expected = moe.route_plan %a layer %l among 0 to 4 experts 12 slots 12 within world to rank held 6 : !e -> !routes, !counts, !counts
    %m = moe.pack %x, %w, %r : !x, !w, !routes -> !messages2
    %in, %came = dist.all_to_all %m to %sent over ep site 2 quota 16 : !messages2, !counts -> !messages2, !counts
    %y, %c, %v = moe.unpack %in, %came : !messages2, !counts -> tensor<?x64xf32, #recv2>, tensor<?x2xi32, #recv2>, tensor<?x2xf32, #recv2>
    %p = moe.permutation %c : tensor<?x2xi32, #recv2> -> !permutation2
    %t = moe.permute %y, %p : tensor<?x64xf32, #recv2>, !permutation2 -> tensor<?x64xf32, #slot2>
    %d = moe.grouped_linear %t, %p, @down[%l] weighted %v : tensor<?x2xf32, #recv2> order tree<1> : tensor<?x64xf32, #slot2>, !permutation2 -> tensor<?x64xf32, #slot2>
    %q, %back = moe.return_plan %c, %came layer %l among 0 to 4 experts 12 slots 12 by rank held 6 : tensor<?x2xi32, #recv2>, !counts -> tensor<?x2xi32, #recv2>, !counts
    %u = moe.reduce_subtrees %d, %p, %c, %q layer %l among 0 to 4 experts 12 slots 12 order tree<4> : tensor<?x64xf32, #slot2>, !permutation2, tensor<?x2xi32, #recv2>, tensor<?x2xi32, #recv2> -> !sums2
    %f = dist.all_to_all %u to %back from %expected over ep site 3 : !sums2, !counts, !counts -> !returned2
    %z = moe.combine %f, %r, %e experts 12 order tree<4> : !returned2, !routes, !e -> !x
    nn.yield %z : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = nn.embed @embed, %b : !x
    // The same layers twice in a step, and in a loop and a branch that are equal on all ranks.
    %1 = nn.layers %0, %b [@even[0 to 1], (@odd, @even)[1 to 4]] : !x
    %none = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.addi %one, %one : index
    scf.for %i = %none to %two step %one {
      %never = arith.cmpi slt, %i, %none : index
      scf.if %never {
        %2 = nn.embed @embed, %b : !x
        %3 = nn.layers %2, %b [@odd[0 to 4]] : !x
      } else {
        %4 = nn.embed @embed, %b : !x
        %5 = nn.layers %4, %b [@even[0 to 2]] : !x
      }
    }
    return
  }
}
