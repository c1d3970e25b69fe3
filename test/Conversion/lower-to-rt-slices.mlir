// RUN: k2c-opt %s --assign-slots --certify-memory --emit-kernels --lower-to-rt --mlir-print-local-scope | FileCheck %s

// Slices of a step travel between ranks of a tensor-parallel group. What runs on rows that were gathered has the step
// of all of them.
#tok = #nn.rows<token>
#gathered = #nn.rows<gathered>
!x = tensor<?x64xf32, #tok>
!all = tensor<?x64xf32, #gathered>
!h = tensor<?x1x512xf32, #gathered>
!kv = !nn.kv_view<k = 1 x 512 x f32, v = 1 x 512 x f32>

module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>,
                   dist.topology = #dist.topology<"pair", ranks = 2>,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 64, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   nn.limits = #nn.limits<token = 8 of 16, seq = 4, context = 8192, output = 4>,
                   mem.peak = 612352 : i64} {
  nn.weights @norm "{layer}.norm" over (layer = 0 to 2) : tensor<64xbf16>
  nn.weights @q "{layer}.q" over (layer = 0 to 2) parts 2 along 0 : tensor<2x512x64xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) parts 2 along 1 : tensor<64x1024xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 1 x 512 x f32, v = 1 x 512 x f32) page 64 group 0

  // Each layer has a slot for each part, one behind the other, of the bytes and the layout of a part.
  // CHECK: rt.weight_slots @q.panels of @q first 0 count 2 bytes 65536 layout #rt.panels<bf16, matrices = 1, n = 512, k = 64> parts 2 share items 16 item_bytes 4096
  // CHECK-NEXT: rt.weight_slots @o.panels of @o first 4 count 2 bytes 65536 layout #rt.panels<bf16, matrices = 1, n = 64, k = 512> parts 2 share items 2 item_bytes 32768
  // CHECK-NEXT: rt.weight_slots @norm.rows of @norm first 8 count 2 bytes 128 layout #rt.row_major<bf16, 64>{{$}}

  // Members are those of a group; no site has a quota.
  // CHECK: rt.collective @site0 site 0 op gather_slices axis tp members 2 row_bytes 256{{$}}
  // CHECK-NEXT: rt.collective @site1 site 1 op scatter_slices axis tp members 2 row_bytes 256{{$}}
  kern.func @linear_q(%x: !all, %w: tensor<1x512x64xbf16>) -> !h tile<generic, lanes = 8, mr = 3, nr = 4, prefetch = 64, rows_block = 48, head_tile = 1, value_parts = 1> {
    %q = nn.linear %x, %w : tensor<1x512x64xbf16> order tree<1> : !all -> !h
    kern.yield %q : !h
  }
  kern.func @append(%l: index, %x: !h, %b: !nn.batch) -> !kv tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %kv = nn.append @cache[%l], %x, %x, %b : !h, !h -> !kv
    kern.yield %kv : !kv
  }
  kern.func @attention(%q: !h, %kv: !kv, %b: !nn.batch) -> !h tile<generic, lanes = 8, mr = 3, nr = 2, prefetch = 0, rows_block = 64, head_tile = 1, value_parts = 1, split_tokens = 16> {
    %o = nn.attention %q, %kv, %b scale 0.0625 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    kern.yield %o : !h
  }
  kern.func @whole_attention(%q: !h, %kv: !kv, %b: !nn.batch) -> !h tile<generic, lanes = 8, mr = 3, nr = 2, prefetch = 0, rows_block = 64, head_tile = 1, value_parts = 1> {
    %o = nn.attention %q, %kv, %b scale 0.0625 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    kern.yield %o : !h
  }
  kern.func @linear_o(%o: !h, %w: tensor<64x512xbf16>) -> !all tile<generic, lanes = 8, mr = 3, nr = 4, prefetch = 64, rows_block = 48, head_tile = 1, value_parts = 1> {
    %r = nn.reshape %o : !h -> tensor<?x512xf32, #gathered>
    %p = nn.linear %r, %w : tensor<64x512xbf16> order tree<1> : tensor<?x512xf32, #gathered> -> !all
    kern.yield %p : !all
  }
  kern.func @add_partials(%p0: !x, %p1: !x) -> !x tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %y = nn.add_partials %p0, %p1 : !x, !x -> !x
    kern.yield %y : !x
  }
  kern.func @rms_norm(%x: !x, %w: tensor<64xbf16>) -> !x tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %y = nn.rms_norm %x, %w : tensor<64xbf16> eps 1.0e-06 : !x
    kern.yield %y : !x
  }

  // CHECK: func.func private @layer(%[[L:.*]]: index) {
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    // A start takes what is sent and where the rows of all lie. There are no counts.
    // CHECK-NEXT: %[[X:.*]] = rt.arena 0
    // CHECK-NEXT: %[[ALL:.*]] = rt.arena 2048
    // CHECK-NEXT: rt.collective_start @site0 layer %[[L]] source %[[X]] slices %[[ALL]]
    // CHECK-NEXT: rt.collective_wait @site0
    %all = dist.gather_slices %x site 0 at [2048] : !x -> !all
    // The grid is that of the rows of all.
    // CHECK: %[[ROWS:.*]] = rt.rows gathered
    // CHECK-NEXT: %[[GRID:.*]] = rt.grid %[[ROWS]] slots 1 rows_per_item 48 items 16
    // CHECK-NEXT: rt.launch @linear_q gathered grid(%[[GRID]])
    %q = kern.call @linear_q(%all, @q[%l]) at [6144] : (!all) -> !h
    // So is the step.
    // CHECK: %[[STEP:.*]] = rt.step gathered
    // CHECK: rt.launch @append gathered grid({{.*}}) args({{.*}}, %[[STEP]])
    %kv = kern.call @append(%l, %q, %b) at [0] : (index, !h, !nn.batch) -> !kv
    // Both launches of a kernel that is split are of the rows of all, and how many of them are split depends on these.
    // CHECK: %[[STEP1:.*]] = rt.step gathered
    // CHECK: %[[PARTIALS:.*]] = rt.arena 71680
    // CHECK: rt.rows gathered
    // CHECK: rt.launch @attention gathered grid({{.*}}) args({{.*}}, %[[STEP1]], {{.*}}, %[[PARTIALS]], %{{.*}})
    // CHECK-NEXT: %[[TOKENS:.*]] = rt.rows gathered
    // CHECK: arith.subi %{{.*}}, %[[TOKENS]]
    // CHECK: %[[SPLIT:.*]] = arith.minsi %[[TOKENS]]
    // CHECK: %[[HEADS:.*]] = rt.grid %[[SPLIT]]
    // CHECK: rt.launch @attention gathered grid(%[[HEADS]]) args({{.*}}, %[[STEP1]], {{.*}}, %[[PARTIALS]], %{{.*}})
    %o = kern.call @attention(%q, %kv, %b) at [38912] : (!h, !kv, !nn.batch) -> !h partials 71680
    // CHECK: rt.launch nowait @whole_attention gathered grid(
    %o1 = kern.call nowait @whole_attention(%q, %kv, %b) at [71680] : (!h, !kv, !nn.batch) -> !h
    // CHECK: rt.launch @linear_o gathered grid(
    %p = kern.call @linear_o(%o, @o[%l]) at [2048] : (!h) -> !all
    // One place for what each rank has of this rank's rows.
    // CHECK: %[[P:.*]] = rt.arena 2048
    // CHECK-NEXT: %[[P0:.*]] = rt.arena 6144
    // CHECK-NEXT: %[[P1:.*]] = rt.arena 8192
    // CHECK-NEXT: rt.collective_start @site1 layer %[[L]] source %[[P]] slices %[[P0]], %[[P1]]
    // CHECK-NEXT: rt.collective_wait @site1
    %p0, %p1 = dist.scatter_slices %p site 1 at [6144, 8192] : !all -> !x, !x
    // From there on launches are of this rank's rows again.
    // CHECK: %[[OWN:.*]] = rt.rows token
    // CHECK-NEXT: %[[ITEMS:.*]] = rt.grid %[[OWN]]
    // CHECK-NEXT: rt.launch @add_partials grid(%[[ITEMS]]) args(%{{.*}}, %{{.*}}, %{{.*}}) :
    %y = kern.call @add_partials(%p0, %p1) at [2048] : (!x, !x) -> !x
    // CHECK: rt.launch @rms_norm grid(
    %z = kern.call @rms_norm(%y, @norm[%l]) at [0] : (!x) -> !x
    nn.yield %z : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}
