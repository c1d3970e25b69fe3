// RUN: k2c-opt %s --shard-experts --split-input-file --verify-diagnostics

// expected-error @below {{shard-experts: the plan's layout is 'ep=2' of 2 ranks; this build compiles for one, 'dp=1', or for as many expert ranks as a stage has, 'ep=2,dp=2', under nn.limits}}
module attributes {dist.plan = #dist.plan<layout = "ep=2", expanded_from = -1>} {}

// -----

// A layout has one spelling in the IR.
// expected-error @below {{shard-experts: the plan's layout is 'ep=1' of 1 ranks; this build compiles for one, 'dp=1', or for as many expert ranks as a stage has, 'ep=2,dp=2', under nn.limits}}
module attributes {dist.plan = #dist.plan<layout = "ep=1", expanded_from = -1>} {}

// -----

// expected-error @below {{shard-experts: --layout: 'experts' is not a key of a serving layout; use tp, ep, etp, pp, dp, cp, replicas, vocab, redundant, step, overlap, these with prefill. before them, layers or phase}}
module attributes {dist.plan = #dist.plan<layout = "experts=2", expanded_from = -1>} {}
