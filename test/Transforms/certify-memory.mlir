// RUN: k2c-opt %s --assign-slots --certify-memory | FileCheck %s
// RUN: k2c-opt %s --assign-slots --certify-memory --remarks-filter=certify-memory 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: sed 's/attributes {nn.limits/attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1, halves_from = 4>, nn.limits/; s/mem.peak = 8192/mem.peak = 8193/' %s | k2c-opt --assign-slots --certify-memory | FileCheck %s --check-prefix=HALVES

!x = tensor<?x64xf32, #nn.rows<token>>
!v = tensor<?x64xf32, #nn.rows<output>>
!l = tensor<?x100xf32, #nn.rows<output>>

// The head: 4 panels of 32 x 64 bf16 are 16,384 bytes, 4 pages. The cache: 3 layers of 6 pages of 64 tokens of 32 f32.
// Logits: 3 sequences of 100 f32. The arena is what assign-memory found.
// CHECK: module attributes {mem.certificate = #mem.certificate<weights = 16384, cache = 147456, arena = 8192, scratch = {{[0-9]+}}, logits = 1200>, {{.*}}} {
// An arena for each half of a step, from a page on.
// HALVES: cache = 147456, arena = 24576,
// REMARK: bytes{{.*}}16.00 KiB (16.38 KB) of weights, 144.00 KiB (147.46 KB) of cache, 8.00 KiB (8.19 KB) of arena, {{[0-9.]+ .*B.*}} of scratch a worker, 1.17 KiB (1.20 KB) of logits
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 100>, mem.peak = 8192 : i64} {
  nn.weights @head "head" : tensor<100x64xbf16>
  nn.pool @cache over (layer = 0 to 3) planes (k = 2 x 16 x f32) page 64 group 0
  kern.func @linear_head(%x: !v, %w: tensor<100x64xbf16>) -> !l tile<generic, lanes = 8, mr = 4, nr = 2, prefetch = 0, rows_block = 8, head_tile = 1, value_parts = 1> {
    %l = nn.linear %x, %w : tensor<100x64xbf16> order tree<1> : !v -> !l
    kern.yield %l : !l
  }
  func.func @step(%x: !v, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %l = kern.call @linear_head(%x, @head) at [0] : (!v) -> !l
    nn.sample %l, %b : !l
    return
  }
}
