// RUN: k2c-opt %s --certify-memory | FileCheck %s

// Eight experts of 3,072 bytes are a page each. A norm is a page, too.
// CHECK: mem.certificate = #mem.certificate<weights = 36864,
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 100>, mem.peak = 0 : i64} {
  nn.weights @norm "norm" : tensor<48xbf16>
  nn.weights @up "up.{expert}" over (expert = 0 to 8) : tensor<8x24x48xbf16>
  rt.weight_slots @norm.rows of @norm first 0 count 1 bytes 96 layout #rt.row_major<bf16, 48>
  rt.weight_slots @up.panels of @up first 1 count 1 bytes 24576
      layout #rt.panels<bf16, matrices = 8, n = 24, k = 48> experts 8 share items 1 item_bytes 3072
}
