// RUN: k2c-opt %s | k2c-opt | FileCheck %s

// CHECK: dist.plan = #dist.plan<layout = #dist.layout<dp = 1, ep = 1, pp = 1>, expanded_from = 64, memory = #dist.memory<weights = 1048576, cache = 65536, arena = 32768, reserve = 0>, prefill_ns = 1000000, decode_ns = 20000>
// CHECK-SAME: dist.topology = #dist.topology<"host", ranks = 1>
module attributes {
  dist.topology = #dist.topology<"host", ranks = 1>,
  dist.plan = #dist.plan<layout = #dist.layout<dp = 1, ep = 1, pp = 1>, expanded_from = 64,
                         memory = #dist.memory<weights = 1048576, cache = 65536, arena = 32768, reserve = 0>,
                         prefill_ns = 1000000, decode_ns = 20000>
} {}
