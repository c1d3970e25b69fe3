// RUN: k2c-opt %s --bound-dispersion --split-input-file --verify-diagnostics

// expected-error @below {{bound-dispersion: the plan binds tokens to nodes, and the topology has 1; leave route_limit and locality_penalty out}}
module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1, locality_penalty = 0.5>,
                   dist.topology = #dist.topology<"box", ranks = 2>} {}

// -----

// A limit of all nodes is none.
// expected-error @below {{bound-dispersion: the plan's route_limit is 4, the topology has 4 nodes; have it below, or leave it out}}
module attributes {dist.plan = #dist.plan<layout = "ep=8,dp=8", expanded_from = -1, route_limit = 4>,
                   dist.topology = #dist.topology<"cpu4x2", ranks = 8 on 4 nodes>} {}

// -----

// How many slots there are is known where experts are divided.
!s = tensor<?x12xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "ep=8,dp=8", expanded_from = -1, route_limit = 2>,
                   dist.topology = #dist.topology<"cpu4x2", ranks = 8 on 4 nodes>} {
  func.func @nowhere(%l: index, %s: !s, %b: !nn.batch) -> (!e, !w) {
    // expected-error @below {{'moe.routing' op is bound to nodes by the slots of its moe.locate, and has none; let several ranks share the experts that it chooses}}
    %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    return %e, %w : !e, !w
  }
}

// -----

// Each node has slots.
!s = tensor<?x3xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!w = tensor<?x2xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "ep=8,dp=8", expanded_from = -1, route_limit = 2>,
                   dist.topology = #dist.topology<"cpu4x2", ranks = 8 on 4 nodes>} {
  func.func @few(%l: index, %s: !s, %b: !nn.batch) -> !e {
    // expected-error @below {{'#moe.bound' [C1] expects several nodes that have slots, got 4 of 0 slots}}
    %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1 scale 1.0 : !s -> !e, !w
    %p = moe.locate %e layer %l among 1 to 3 experts 3 slots 3 held 3 : !e -> !e
    return %p : !e
  }
}
