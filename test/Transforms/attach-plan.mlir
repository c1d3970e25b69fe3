// RUN: k2c-opt %s --attach-plan="topology=box numa=4,4 cpu=x86-64-v4 features=avx2,avx512f cores=8 l1-bytes=49152 l2-bytes=2097152 expanded-from=171 without=fusion,prefetch-weights tile-choice=2" | FileCheck %s
// RUN: k2c-opt %s --attach-plan | FileCheck %s --check-prefix=DEFAULT
// RUN: k2c-opt %s --attach-plan="expanded-from=7 without=fusion" --attach-plan | FileCheck %s --check-prefix=DEFAULT
// RUN: k2c-opt %s --attach-plan="topology=box" --remarks-filter=attach-plan 2>&1 | FileCheck %s --check-prefix=REMARK

// RUN: k2c-opt %s --attach-plan="topology=cpu2x1 ranks=2 layout=ep=2,dp=2,redundant=1" | FileCheck %s --check-prefix=RANKS
// RUN: k2c-opt %s --attach-plan="topology=box ranks=2 layout=dp=2,ep=2" --remarks-filter=attach-plan 2>&1 | FileCheck %s --check-prefix=LAYOUT

// RUN: k2c-opt %s --attach-plan="topology=h200x1 gpu=sm_90a sms=132 threads=128 workers-of-cta=4 ctas=264" | FileCheck %s --check-prefix=GPU
// RUN: k2c-opt %s --attach-plan="gpu=sm_90a weights=rows" | FileCheck %s --check-prefix=GPUROWS
// RUN: k2c-opt %s --attach-plan="weights=rows" | FileCheck %s --check-prefix=ROWS

// GPU: kern.target = #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 4, ctas = 264, host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>>
// What runs kernels reads matrices in rows.
// GPUROWS: host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>, weights = rows>
// ROWS: kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"], weights = rows>
// CHECK: module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = 171, without = ["fusion", "prefetch-weights"], tile_choice = 2>, dist.topology = #dist.topology<"box", ranks = 1, numa = [4, 4]>, kern.target = #kern.cpu<"x86-64-v4", cores = 8, l1 = 49152, l2 = 2097152, features = ["avx2", "avx512f"]>} {
// The last plan counts, and without options a prompt never runs expanded.
// DEFAULT: dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>, dist.topology = #dist.topology<"host", ranks = 1>
// DEFAULT-SAME: kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>
// REMARK: layout{{.*}}one rank on topology 'box'{{.*}}ranks=1
// RANKS: dist.plan = #dist.plan<layout = "ep=2,dp=2,redundant=1", expanded_from = -1>, dist.topology = #dist.topology<"cpu2x1", ranks = 2>
// LAYOUT: layout{{.*}}2 ranks as dp=2,ep=2 on topology 'box'{{.*}}ranks=2
module {
  // CHECK: nn.weights @w "w" : tensor<4x4xf32>
  nn.weights @w "w" : tensor<4x4xf32>
}
