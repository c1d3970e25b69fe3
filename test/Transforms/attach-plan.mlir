// RUN: k2c-opt %s --attach-plan="topology=box expanded-from=171 weight-bytes=4096 cache-bytes=1024 prefill-seconds=0.5 decode-seconds=0.25" | FileCheck %s
// RUN: k2c-opt %s --attach-plan | FileCheck %s --check-prefix=DEFAULT
// RUN: k2c-opt %s --attach-plan="weight-bytes=7" --attach-plan | FileCheck %s --check-prefix=DEFAULT
// RUN: k2c-opt %s --attach-plan="topology=box weight-bytes=4096 cache-bytes=1024" --remarks-filter=attach-plan 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK: module attributes {dist.plan = #dist.plan<layout = #dist.layout<dp = 1, ep = 1, pp = 1>, expanded_from = 171, memory = #dist.memory<weights = 4096, cache = 1024, arena = 0, reserve = 0>, prefill_ns = 500000000, decode_ns = 250000000>, dist.topology = #dist.topology<"box", ranks = 1>}
// The last plan counts, and without options a prompt never runs expanded.
// DEFAULT: module attributes {dist.plan = #dist.plan<{{.*}}expanded_from = -1, {{.*}}weights = 0, {{.*}}dist.topology = #dist.topology<"host", ranks = 1>}
// REMARK: layout{{.*}}one rank on topology 'box'{{.*}}ranks=1
// REMARK: memory{{.*}}4096 bytes of weights, 1024 bytes of cache
// REMARK: time{{.*}}predicted from the roofline of the topology
module {
  // CHECK: nn.weights @w "w" : tensor<4x4xf32>
  nn.weights @w "w" : tensor<4x4xf32>
}
