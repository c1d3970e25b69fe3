// RUN: k2c-opt %s | k2c-opt | FileCheck %s

// A GPU as target: what runs kernels, and the processor that starts them.
// CHECK: module attributes {kern.target = #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 4, ctas = 264, host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>>}
module attributes {kern.target =
    #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 4, ctas = 264,
              host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>>} {}
// With matrices in rows:
// CHECK: module attributes {kern.target = #kern.gpu<{{.*}}features = ["avx2", "fma"]>, weights = rows>}
module attributes {kern.target =
    #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 4, ctas = 264,
              host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
              weights = rows>} {}
