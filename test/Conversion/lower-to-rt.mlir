// RUN: k2c-opt %s --attach-plan --assign-slots --certify-memory --emit-kernels --lower-to-rt --mlir-print-local-scope | FileCheck %s

// What is decided is written out: values are offsets, weights are slots, cache views are planes, the batch is the step.
!x = tensor<?x64xf32, #nn.rows<token>>
!v = tensor<?x64xf32, #nn.rows<output>>
!kv = !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
!h = tensor<?x2x16xf32, #nn.rows<token>>

// The peak is a number now; what identifies the program and its plan stays.
// CHECK: module attributes {dist.plan = {{.*}}kern.target = {{.*}}mem.certificate = {{.*}}, nn.limits = {{[^,]*, [^,]*, [^,]*}}} {
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 100>, mem.peak = 8192 : i64} {
  nn.weights @unread "unread" : tensor<8x8xf32>
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @head "head" : tensor<100x64xbf16>
  nn.weights @kw "{layer}.k" over (layer = 0 to 3) : tensor<2x16x64xbf16>
  nn.pool @cache over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0

  // Slots are numbered in the order kernels are called; a family that nothing reads has none.
  // CHECK-NOT: @unread
  // CHECK: nn.weights @kw
  // CHECK: rt.weight_slots @kw.panels of @kw first 0 count 3 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64> share items 1 item_bytes 4096
  // CHECK: rt.weight_slots @embed.rows of @embed first 3 count 1 bytes 12800 layout #rt.row_major<bf16, 6400>{{$}}
  // CHECK: rt.weight_slots @head.panels of @head first 4 count 1 bytes 16384 layout #rt.panels<bf16, matrices = 1, n = 100, k = 64>
  // 3 sequences of 2 pages of 64 tokens, 2 x 16 f32 each.
  // CHECK: rt.plane_table @cache.k index 0 count 3 plane "k" width 32 x f32 pages 6 group 0 layer_bytes 49152
  // CHECK: rt.plane_table @cache.v index 1 count 3 plane "v" width 32 x f32 pages 6 group 0 layer_bytes 49152

  // A kernel is a number, and named by what it computes.
  // CHECK: rt.kernel @linear_kw id 0 hash "[[KW:k2c_[0-9a-f]+]]" variants ["m1", "tail", "full"] streams 1 items 1 bytes 4096
  kern.func @linear_kw(%x: !x, %w: tensor<2x16x64xbf16>) -> !h tile<generic, lanes = 8, mr = 4, nr = 2, prefetch = 0, rows_block = 8, head_tile = 1, value_parts = 1> {
    %k = nn.linear %x, %w : tensor<2x16x64xbf16> order tree<1> : !x -> !h
    kern.yield %k : !h
  }
  // CHECK: rt.kernel @append id 1
  kern.func @append(%l: index, %k: !h, %v: !h, %b: !nn.batch) -> !kv tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %kv = nn.append @cache[%l], %k, %v, %b : !h, !h -> !kv
    kern.yield %kv : !kv
  }
  kern.func @add(%x: !x, %y: !x) -> !x tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // Kernels of one description share their code.
  // CHECK: rt.kernel @add id 2 hash "[[ADD:k2c_[0-9a-f]+]]"
  // CHECK: rt.kernel @sum id 3 hash "[[ADD]]"
  // CHECK: rt.kernel @embedding id 4
  kern.func @sum(%x: !x, %y: !x) -> !x tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> !x tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : !x
    kern.yield %x : !x
  }
  kern.func @output_rows(%x: !x, %b: !nn.batch) -> !v tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %w = nn.output_rows %x, %b : !x -> !v
    kern.yield %w : !v
  }
  kern.func @linear_head(%x: !v, %w: tensor<100x64xbf16>) -> tensor<?x100xf32, #nn.rows<output>> tile<generic, lanes = 8, mr = 4, nr = 2, prefetch = 0, rows_block = 8, head_tile = 1, value_parts = 1> {
    %l = nn.linear %x, %w : tensor<100x64xbf16> order tree<1> : !v -> tensor<?x100xf32, #nn.rows<output>>
    kern.yield %l : tensor<?x100xf32, #nn.rows<output>>
  }

  // A layer function keeps its layer index; rows and batch became addresses.
  // CHECK: func.func private @layer(%[[L:.*]]: index) {
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    // CHECK: %[[P0:.*]] = rt.arena 0
    // CHECK: %[[KW0:.*]] = rt.weight @kw.panels[%[[L]]]
    // CHECK: %[[P1:.*]] = rt.arena 2560
    // CHECK: %[[T:.*]] = rt.rows token
    // CHECK: %[[G:.*]] = rt.grid %[[T]] slots 1 rows_per_item 8 items
    // CHECK: rt.launch @linear_kw grid(%[[G]]) args(%[[P0]], %[[KW0]], %[[P1]]) : !rt.ptr, !rt.ptr, !rt.ptr
    %k = kern.call @linear_kw(%x, @kw[%l]) at [2560] : (!x) -> !h
    // CHECK: %[[PK:.*]] = rt.plane @cache.k[%[[L]]]
    // CHECK: %[[PV:.*]] = rt.plane @cache.v[%[[L]]]
    // CHECK: %[[S:.*]] = rt.step
    // A nowait call is a nowait launch.
    // CHECK: rt.launch nowait @append grid({{.*}}) args({{.*}}, {{.*}}, %[[PK]], %[[PV]], %[[S]])
    %kv = kern.call nowait @append(%l, %k, %k, %b) at [0] : (index, !h, !h, !nn.batch) -> !kv
    // CHECK: rt.launch @add
    %y = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    nn.yield %y : !x
  }
  // CHECK: func.func @step() {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK: rt.weight @embed.rows{{$}}
    // CHECK: rt.launch @embedding
    %x = kern.call @embedding(%b, @embed) at [0] : (!nn.batch) -> !x
    // CHECK: scf.for %[[I:.*]] = %c0 to %c3 step %c1 {
    // CHECK-NEXT: func.call @layer(%[[I]]) : (index) -> ()
    %y = nn.layers %x, %b [@layer[0 to 3]] : !x
    // CHECK: rt.launch @sum
    %z = kern.call @sum(%y, %y) at [2560] : (!x, !x) -> !x
    // CHECK: rt.launch @output_rows
    %w = kern.call @output_rows(%z, %b) at [5120] : (!x, !nn.batch) -> !v
    // Logits are written where the step wants them, for each output row.
    // CHECK: %[[LOGITS:.*]] = rt.logits
    // CHECK: %[[W:.*]] = rt.rows output
    // CHECK: rt.grid %[[W]] slots 1
    // CHECK: rt.launch @linear_head grid({{.*}}) args({{.*}}, {{.*}}, %[[LOGITS]])
    %l = kern.call @linear_head(%w, @head) at [0] : (!v) -> tensor<?x100xf32, #nn.rows<output>>
    // CHECK: rt.sample
    nn.sample %l, %b : tensor<?x100xf32, #nn.rows<output>>
    return
  }
  // CHECK: rt.program @program entries {serve = @step} arena 8192 scratch {{[0-9]+}}
  // Code comes behind the host program, a module for each description.
  // CHECK: module @[[KW]].code {
  // CHECK: llvm.func @[[KW]](%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
  // CHECK: module @[[ADD]].code
  // CHECK-NOT: module @[[ADD]].code
}
