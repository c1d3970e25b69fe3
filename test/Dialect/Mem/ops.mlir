// RUN: k2c-opt %s | k2c-opt | FileCheck %s

// CHECK: module attributes {mem.certificate = #mem.certificate<weights = 1048576, cache = 65536, arena = 32768, scratch = 4096, logits = 1536>, mem.peak = 32768 : i64}
module attributes {mem.certificate = #mem.certificate<weights = 1048576, cache = 65536, arena = 32768, scratch = 4096, logits = 1536>, mem.peak = 32768 : i64} {
  // CHECK: attributes {mem.argument = 64 : i64, mem.peak = 128 : i64}
  func.func private @layer() attributes {mem.argument = 64 : i64, mem.peak = 128 : i64}
}
