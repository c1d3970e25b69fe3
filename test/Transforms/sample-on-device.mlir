// RUN: k2c-opt %s --split-input-file --sample-on-device | FileCheck %s
// RUN: k2c-opt %s --split-input-file --sample-on-device --sample-on-device | FileCheck %s
// RUN: k2c-opt %s --split-input-file --sample-on-device --remarks-filter=sample-on-device 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: the device takes greedy samples of 1000 logits in 2 blocks", blocks=2
// REMARK-NOT: the device takes

// A row of logits is shared by blocks, and the host keeps what it draws of.
!l = tensor<?x1000xf32, #nn.rows<output>>
module attributes {kern.target = #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 4, ctas = 264,
                                           host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = []>>} {
  // CHECK-LABEL: func.func @step(
  // CHECK-SAME: %[[L:[a-z0-9]+]]: tensor<?x1000xf32, #output>, %[[B:[a-z0-9]+]]: !nn.batch)
  func.func @step(%logits: !l, %b: !nn.batch) {
    // CHECK-NEXT: %[[BEST:.*]] = nn.block_argmax %[[L]] block 512 : tensor<?x1000xf32, #output> -> tensor<?x2xi32, #output>
    // CHECK-NEXT: nn.greedy_sample %[[BEST]] of %[[L]], %[[B]] : tensor<?x2xi32, #output>, tensor<?x1000xf32, #output>
    // CHECK-NEXT: nn.sample %[[L]], %[[B]] : tensor<?x1000xf32, #output>
    // CHECK-NEXT: return
    nn.sample %logits, %b : !l
    return
  }
}

// -----

// Processors sample with the runtime's sampler.
!l = tensor<?x1000xf32, #nn.rows<output>>
module attributes {kern.target = #kern.cpu<"znver4", cores = 8, l1 = 32768, l2 = 1048576, features = ["fma"]>} {
  // CHECK-LABEL: func.func @on_processors(
  func.func @on_processors(%logits: !l, %b: !nn.batch) {
    // CHECK-NEXT: nn.sample
    // CHECK-NEXT: return
    nn.sample %logits, %b : !l
    return
  }
}
