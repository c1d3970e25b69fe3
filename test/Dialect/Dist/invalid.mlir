// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'#dist.topology' [C1] expects at least one rank of 'host', got 0}}
module attributes {dist.x = #dist.topology<"host", ranks = 0>} {}

// -----

// expected-error @below {{'#dist.layout' [C1] expects positive sizes, got 0}}
module attributes {dist.x = #dist.layout<dp = 1, ep = 0, pp = 1>} {}

// -----

// expected-error @below {{'#dist.memory' [C1] expects no negative size, got -1}}
module attributes {dist.x = #dist.memory<weights = 0, cache = -1, arena = 0, reserve = 0>} {}

// -----

// expected-error @below {{'#dist.plan' [C1] expects expanded_from >= -1, got -2}}
module attributes {dist.x = #dist.plan<layout = #dist.layout<dp = 1, ep = 1, pp = 1>, expanded_from = -2, memory = #dist.memory<weights = 0, cache = 0, arena = 0, reserve = 0>, prefill_ns = 0, decode_ns = 0>} {}

// -----

// expected-error @below {{'#dist.plan' [C2] expects no negative time, got -1}}
module attributes {dist.x = #dist.plan<layout = #dist.layout<dp = 1, ep = 1, pp = 1>, expanded_from = 0, memory = #dist.memory<weights = 0, cache = 0, arena = 0, reserve = 0>, prefill_ns = -1, decode_ns = 0>} {}
