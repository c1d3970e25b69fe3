// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

// What the ranks of a tensor-parallel group have: slices of a step, parts of weights, and partial sums.
// CHECK-DAG: #gathered = #nn.rows<gathered>
#tok = #nn.rows<token>
#gathered = #nn.rows<gathered>
!x = tensor<?x64xf32, #tok>
!h = tensor<?x2x16xf32, #gathered>
!kvh = tensor<?x1x16xf32, #gathered>
!kv = !nn.kv_view<k = 1 x 16 x f32, v = 1 x 16 x f32>

// A rank alone carries all rows of a step, one of four 512 of 2,048.
// CHECK: module @whole attributes {nn.limits = #nn.limits<token = 2048, seq = 16, context = 8192, output = 64>}
module @whole attributes {nn.limits = #nn.limits<token = 2048, seq = 16, context = 8192, output = 64>} {}

// CHECK: module @few attributes {nn.limits = #nn.limits<token = 512 of 2048, seq = 16, context = 8192>}
module @few attributes {nn.limits = #nn.limits<token = 512 of 2048, seq = 16, context = 8192>} {}

// CHECK: module @slices attributes {nn.limits = #nn.limits<token = 512 of 2048, seq = 16, context = 8192, output = 64>}
module @slices attributes {nn.limits = #nn.limits<token = 512 of 2048, seq = 16, context = 8192, output = 64>} {
  // CHECK: nn.weights @o "model.layers.{layer}.self_attn.o_proj.weight" over (layer = 0 to 3) parts 2 along 1 : tensor<64x2048xbf16>
  nn.weights @o "model.layers.{layer}.self_attn.o_proj.weight" over (layer = 0 to 3)
      parts 2 along 1 : tensor<64x2048xbf16>
  // CHECK: nn.weights @up "{layer}.{gate|up}" over (layer = 0 to 3) parts 4 along 1 : tensor<2x96x64xbf16>
  nn.weights @up "{layer}.{gate|up}" over (layer = 0 to 3) parts 4 along 1 : tensor<2x96x64xbf16>
  // CHECK: nn.weights @experts "{layer}.{expert}" over (layer = 0 to 3, expert = 0 to 8) held 4 parts 2 along 2 : tensor<8x64x96xbf16>
  nn.weights @experts "{layer}.{expert}" over (layer = 0 to 3, expert = 0 to 8) held 4 parts 2 along 2 : tensor<8x64x96xbf16>
  // CHECK: nn.weights @bias "{layer}.bias" over (layer = 0 to 3) parts 2 along 0 : tensor<32xbf16>
  nn.weights @bias "{layer}.bias" over (layer = 0 to 3) parts 2 along 0 : tensor<32xbf16>
  nn.constant_table @rope rope<theta = 1.0e4, dims = 16> : tensor<8192x2x8xf32>
  nn.pool @cache over (layer = 0 to 3) planes (k = 1 x 16 x f32, v = 1 x 16 x f32) page 64 group 0

  // References are of a part: of 2,048 columns a rank contracts 1,024.
  // CHECK-LABEL: func.func @part(
  func.func @part(%l: index, %x: tensor<?x1024xf32, #gathered>) -> tensor<?x64xf32, #gathered> {
    // CHECK: nn.linear %{{.*}}, @o[%{{.*}}] order tree<4> : tensor<?x1024xf32, #gathered> -> tensor<?x64xf32, #gathered>
    %p = nn.linear %x, @o[%l] order tree<4> : tensor<?x1024xf32, #gathered> -> tensor<?x64xf32, #gathered>
    return %p : tensor<?x64xf32, #gathered>
  }

  // Attention is over the rows of all slices.
  // CHECK-LABEL: func.func @heads(
  func.func @heads(%l: index, %q: !h, %k: !kvh, %b: !nn.batch) -> !h {
    // CHECK: nn.rotary %{{.*}}, @rope, %{{.*}} first 0 count 16 half : tensor<?x2x16xf32, #gathered>
    %q1 = nn.rotary %q, @rope, %b first 0 count 16 half : !h
    // CHECK: nn.append @cache[%{{.*}}], %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x1x16xf32, #gathered>, tensor<?x1x16xf32, #gathered> -> !kv
    %kv = nn.append @cache[%l], %k, %k, %b : !kvh, !kvh -> !kv
    // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 0.25 : tensor<?x2x16xf32, #gathered>, !kv -> tensor<?x2x16xf32, #gathered>
    %o = nn.attention %q1, %kv, %b scale 2.5e-1 : !h, !kv -> !h
    return %o : !h
  }

  // CHECK-LABEL: func.func @sums(
  func.func @sums(%p0: !x, %p1: !x) -> tensor<?x64xbf16, #tok> {
    // CHECK: %[[FOUR:sum]] = nn.add_partials %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok> -> tensor<?x64xf32, #tok>
    %four = nn.add_partials %p0, %p1, %p0, %p1 : !x, !x, !x, !x -> !x
    // CHECK: nn.add_partials %{{.*}}, %[[FOUR]] : tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok> -> tensor<?x64xbf16, #tok>
    %z = nn.add_partials %p0, %four : !x, !x -> tensor<?x64xbf16, #tok>
    %y = nn.add_partials %p0, %p1 : tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok> -> tensor<?x64xbf16, #tok>
    return %y : tensor<?x64xbf16, #tok>
  }
}
