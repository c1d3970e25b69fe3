// RUN: k2c-opt %s --shard-experts --split-input-file --verify-diagnostics

// Experts are not over a part of the ranks.
// expected-error @below {{shard-experts: the plan's layout is 'dp=2,tp=2' of 4 ranks; this build compiles for one, 'dp=1', or for as many expert ranks as a stage has, 'ep=2,dp=2', under nn.limits}}
module attributes {dist.plan = #dist.plan<layout = "dp=2,tp=2", expanded_from = -1>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {}

// -----

// expected-error @below {{shard-experts: the plan's layout is 'ep=2,dp=4' of 4 ranks; this build compiles for one, 'dp=1', or for as many expert ranks as a stage has, 'ep=2,dp=2', under nn.limits}}
module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=4", expanded_from = -1>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {}

// -----

// expected-error @below {{shard-experts: the plan's layout is 'ep=2,etp=4,dp=4' of 4 ranks; this build compiles for one, 'dp=1', or for as many expert ranks as a stage has, 'ep=2,dp=2', under nn.limits}}
module attributes {dist.plan = #dist.plan<layout = "ep=2,etp=4,dp=4", expanded_from = -1>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {}

// -----

// One rank has one spelling, also where several would be compiled.
// expected-error @below {{shard-experts: the plan's layout is 'pp=1,dp=1' of 1 ranks; this build compiles for one, 'dp=1', or for as many expert ranks as a stage has, 'ep=2,dp=2', under nn.limits}}
module attributes {dist.plan = #dist.plan<layout = "pp=1,dp=1", expanded_from = -1>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {}

// -----

// How many rows may arrive is a matter of the limits.
// expected-error @below {{shard-experts: the plan's layout is 'ep=2,dp=2' of 2 ranks; this build compiles for one, 'dp=1', or for as many expert ranks as a stage has, 'ep=2,dp=2', under nn.limits}}
module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1>} {}

// -----

// Which layer it is, and of how many with experts, is what the router says.
!x = tensor<?x64xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @gu "{layer}.{expert}.{g|u}" over (layer = 0 to 2, expert = 0 to 12) : tensor<12x2x96x64xbf16>
  nn.weights @down "{layer}.{expert}" over (layer = 0 to 2, expert = 0 to 12) : tensor<12x64x96xbf16>
  func.func @no_router(%l: index, %x: !x, %e: !e, %w: !w) {
    // expected-error @below {{'moe.experts' op is divided by layers with experts, which the moe.routing of its experts names, and by families of weights; let its experts come from a router}}
    %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 12 inner 96 act silu : !x, !e, !w -> !x
    return
  }
}

// -----

// All ranks have the values of a program, none a part of one.
!x = tensor<?x64xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>
!s = tensor<?x12xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  func.func @no_family(%l: index, %x: !x, %s: !s, %b: !nn.batch, %gu: tensor<12x2x96x64xf32>, %down: tensor<12x64x96xf32>) {
    %e, %w = moe.routing %s, %b layer %l among 0 to 2 score sigmoid top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    // expected-error @below {{'moe.experts' op is divided by layers with experts, which the moe.routing of its experts names, and by families of weights; let its experts come from a router}}
    %r = moe.experts %x, %e, %w, %gu : tensor<12x2x96x64xf32>, %down : tensor<12x64x96xf32> experts 12 inner 96 act silu : !x, !e, !w -> !x
    return
  }
}

// -----

// Parts of experts end where leaves do, and gate and up are divided apart.
!x = tensor<?x64xf32, #nn.rows<token>>
!s = tensor<?x12xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "ep=2,etp=2,dp=4", expanded_from = -1>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @router "{layer}.router" over (layer = 0 to 2) : tensor<12x64xbf16>
  nn.weights @gu "{layer}.{expert}.{g|u}" over (layer = 0 to 2, expert = 0 to 12) : tensor<12x2x96x64xbf16>
  nn.weights @down "{layer}.{expert}" over (layer = 0 to 2, expert = 0 to 12) : tensor<12x64x96xbf16>
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %s = nn.linear %x, @router[%l] order tree<1> : !x -> !s
    %e, %w = moe.routing %s, %b layer %l among 0 to 2 score sigmoid top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    // expected-error @below {{shard-experts: etp is 2, and @gu of 'tensor<12x2x96x64xbf16>' is of experts whose down projection has 1 leaf of 96 columns; plan an etp that divides these evenly, and gate and up apart}}
    %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 12 inner 96 act silu
        up_order tree<1> down_order tree<1> combine tree<4> : !x, !e, !w -> !x
    nn.yield %r : !x
  }
}
