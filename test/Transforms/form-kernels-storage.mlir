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
