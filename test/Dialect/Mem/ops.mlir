// RUN: k2c-opt %s | k2c-opt | FileCheck %s

// CHECK: module attributes {mem.certificate = #mem.certificate<weights = 1048576, cache = 65536, arena = 32768, scratch = 4096, logits = 1536>, mem.peak = 32768 : i64}
module attributes {mem.certificate = #mem.certificate<weights = 1048576, cache = 65536, arena = 32768, scratch = 4096, logits = 1536>, mem.peak = 32768 : i64} {
  // CHECK: attributes {mem.arguments = array<i64: 64, 0>, mem.peak = 128 : i64}
  func.func private @layer(index, tensor<4xf32>, tensor<2xf32>) attributes {mem.arguments = array<i64: 64, 0>, mem.peak = 128 : i64}
}
