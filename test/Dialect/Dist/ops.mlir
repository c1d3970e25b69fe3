// RUN: k2c-opt %s --split-input-file | k2c-opt --split-input-file | FileCheck %s

// CHECK: dist.plan = #dist.plan<layout = "dp=1", expanded_from = 64>
// CHECK-SAME: dist.topology = #dist.topology<"host", ranks = 1>
module attributes {
  dist.topology = #dist.topology<"host", ranks = 1>,
  dist.plan = #dist.plan<layout = "dp=1", expanded_from = 64, tile_choice = 0>
} {}

// -----

// CHECK: dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1, without = ["fusion", "prefetch-weights"], tile_choice = 2>
// CHECK-SAME: dist.topology = #dist.topology<"two-nodes", ranks = 1, numa = [4, 4]>
module attributes {
  dist.topology = #dist.topology<"two-nodes", ranks = 1, numa = [4, 4]>,
  dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1, without = ["fusion", "prefetch-weights"], tile_choice = 2>
} {}
