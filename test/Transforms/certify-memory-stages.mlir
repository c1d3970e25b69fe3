// RUN: k2c-opt %s --certify-memory | FileCheck %s
// RUN: sed 's/, stages = .0, 3, 4.//' %s | k2c-opt --certify-memory | FileCheck %s --check-prefix=ONE

// A rank has the weights and the cache of its stage. The first one has three layers of 8,192 bytes, three of the cache
// (2 pages of 64 tokens of 4 numbers of 4 bytes each) and the embedding, the last one a layer and the head; what is of
// no end, the rotary table, is on both.
// CHECK: mem.certificate = #mem.certificate<weights = 45056, cache = 6144,
// ONE: mem.certificate = #mem.certificate<weights = 69632, cache = 8192,
module attributes {nn.limits = #nn.limits<token = 10, seq = 1, context = 100>, mem.peak = 0 : i64,
                   dist.plan = #dist.plan<layout = "pp=2", expanded_from = -1, stages = [0, 3, 4]>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @deep "{layer}.deep" over (layer = 0 to 4) : tensor<64x64xbf16>
  nn.weights @head "head" : tensor<100x64xbf16>
  nn.weights @rope "rope" : tensor<64xbf16>
  nn.pool @cache over (layer = 0 to 4) planes (k = 4 x f32) page 64 group 0
  rt.weight_slots @embed.rows of @embed first 0 count 1 bytes 12800 layout #rt.row_major<bf16, 6400> on first
  rt.weight_slots @deep.panels of @deep first 1 count 4 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 64, k = 64>
  rt.weight_slots @head.rows of @head first 5 count 1 bytes 12800 layout #rt.row_major<bf16, 6400> on last
  rt.weight_slots @rope.rows of @rope first 6 count 1 bytes 128 layout #rt.row_major<bf16, 64>
}
