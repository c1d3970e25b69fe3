// RUN: k2c-opt %s --form-kernels --attach-plan --choose-tiles | FileCheck %s

// What a kernel reads of a family in scaled blocks says which elements share a scale.

!x = tensor<?x64xf32, #nn.rows<token>>
!h = tensor<?x3x88xf32, #nn.rows<token>>

nn.weights @plain "{layer}.plain" over (layer = 0 to 2) : tensor<64x64xf32>
nn.weights @w "{layer}.w" over (layer = 0 to 2) stored blocks<f8E4M3FN, [128, 128], f32> : tensor<64x64xf32>
nn.weights @heads "{layer}.h" over (layer = 0 to 2) stored blocks<f8E4M3FN, [128, 128], f32> : tensor<3x88x64xf32>
nn.weights @part "{layer}.p" over (layer = 0 to 2) stored blocks<f8E4M3FN, [128, 128], f32> view slice<dims = [64, 256], dim = 1, from = 96, to = 160> : tensor<64x64xf32>

func.func @layer(%l: index, %x: !x) -> (!x, !h, !x, !x) {
  %p = nn.linear %x, @plain[%l] order tree<1> : !x -> !x
  %w = nn.linear %x, @w[%l] order tree<1> : !x -> !x
  %h = nn.linear %x, @heads[%l] order tree<1> : !x -> !h
  %s = nn.linear %x, @part[%l] order tree<1> : !x -> !x
  return %w, %h, %s, %p : !x, !h, !x, !x
}

// CHECK: kern.func @linear_plain({{.*}}: tensor<64x64xf32>)
// Kernels that differ in how their weight is stored are two.
// CHECK: kern.func @linear_w({{.*}}: tensor<64x64xf32, #nn.blocks<f8E4M3FN, [128, 128], f32>>)
// Head h begins at row 88 h: eight rows share a scale whatever h is.
// CHECK: kern.func @linear_heads({{.*}}: tensor<3x88x64xf32, #nn.blocks<f8E4M3FN, [8, 128], f32>>)
// The slice begins 32 columns before a block does.
// CHECK: kern.func @linear_part({{.*}}: tensor<64x64xf32, #nn.blocks<f8E4M3FN, [128, 32], f32>>)

// Of a part, so many elements share a scale as divide a block and the part: parts begin with it, at a block or in one.
nn.weights @even "{layer}.e" over (layer = 0 to 2) stored blocks<f8E4M3FN, [128, 128], f32> parts 2 along 1 : tensor<64x512xf32>
nn.weights @columns "{layer}.c" over (layer = 0 to 2) stored blocks<f8E4M3FN, [128, 128], f32> parts 2 along 1 : tensor<64x192xf32>
nn.weights @rows "{layer}.r" over (layer = 0 to 2) stored blocks<f8E4M3FN, [128, 128], f32> parts 2 along 0 : tensor<192x64xf32>
nn.weights @half "{layer}.f" over (layer = 0 to 2) stored blocks<f8E4M3FN, [128, 128], f32> parts 2 along 0 : tensor<6x88x64xf32>
nn.weights @both "{layer}.{g|u}" over (layer = 0 to 2) stored blocks<f8E4M3FN, [128, 128], f32> parts 2 along 1 : tensor<2x160x64xf32>
nn.weights @turned "{layer}.t" over (layer = 0 to 2) stored blocks<f8E4M3FN, [128, 128], f32> view slice<dims = [4, 96, 64], dim = 1, from = 0, to = 32, transpose> parts 2 along 0 : tensor<4x64x32xf32>

!all = tensor<?x64xf32, #nn.rows<gathered>>
func.func @parts(%l: index, %e: tensor<?x256xf32, #nn.rows<gathered>>, %c: tensor<?x96xf32, #nn.rows<gathered>>, %x: !all, %q: tensor<?x2x32xf32, #nn.rows<gathered>>, %b: !nn.batch)
    -> (!all, !all, tensor<?x96xf32, #nn.rows<gathered>>, tensor<?x3x88xf32, #nn.rows<gathered>>, tensor<?x2x80xf32, #nn.rows<gathered>>, tensor<?x2x64xf32, #nn.rows<gathered>>) {
  %0 = nn.linear %e, @even[%l] order tree<1> : tensor<?x256xf32, #nn.rows<gathered>> -> !all
  %1 = nn.linear %c, @columns[%l] order tree<1> : tensor<?x96xf32, #nn.rows<gathered>> -> !all
  %2 = nn.linear %x, @rows[%l] order tree<1> : !all -> tensor<?x96xf32, #nn.rows<gathered>>
  %3 = nn.linear %x, @half[%l] order tree<1> : !all -> tensor<?x3x88xf32, #nn.rows<gathered>>
  %4 = nn.linear %x, @both[%l] order tree<1> : !all -> tensor<?x2x80xf32, #nn.rows<gathered>>
  %5 = mla.absorb_query %q, @turned[%l], %b order tree<1> : tensor<?x2x32xf32, #nn.rows<gathered>> -> tensor<?x2x64xf32, #nn.rows<gathered>>
  return %0, %1, %2, %3, %4, %5 : !all, !all, tensor<?x96xf32, #nn.rows<gathered>>, tensor<?x3x88xf32, #nn.rows<gathered>>, tensor<?x2x80xf32, #nn.rows<gathered>>, tensor<?x2x64xf32, #nn.rows<gathered>>
}

// CHECK: kern.func @linear_even({{.*}}: tensor<64x256xf32, #nn.blocks<f8E4M3FN, [128, 128], f32>>)
// The second part begins 96 columns, or rows, behind the first.
// CHECK: kern.func @linear_columns({{.*}}: tensor<64x96xf32, #nn.blocks<f8E4M3FN, [128, 32], f32>>)
// CHECK: kern.func @linear_rows({{.*}}: tensor<96x64xf32, #nn.blocks<f8E4M3FN, [32, 128], f32>>)
// Parts are of heads, which begin at any eight rows.
// CHECK: kern.func @linear_half({{.*}}: tensor<3x88x64xf32, #nn.blocks<f8E4M3FN, [8, 128], f32>>)
// Each of two matrices is in two parts of 80 rows, five times 16.
// CHECK: kern.func @linear_both({{.*}}: tensor<2x80x64xf32, #nn.blocks<f8E4M3FN, [16, 128], f32>>)
// Heads have 96 rows in the matrix, of which this slice has 32; it is read by columns.
// CHECK: kern.func @absorb_query({{.*}}: tensor<2x64x32xf32, #nn.blocks<f8E4M3FN, [128, 32], f32>>)
