// RUN: k2c-opt %s --shard-experts --verify-diagnostics

// expected-error @below {{shard-experts: the plan divides experts among 2 ranks; this build exchanges no rows, so plan for ep = 1}}
module attributes {dist.plan = #dist.plan<layout = #dist.layout<dp = 1, ep = 2, pp = 1>, expanded_from = -1,
                   memory = #dist.memory<weights = 0, cache = 0, arena = 0, reserve = 0>, prefill_ns = 0, decode_ns = 0>} {}
