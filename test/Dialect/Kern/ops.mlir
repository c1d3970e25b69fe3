// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

// CHECK: kern.func @k_qa(%{{.*}}: tensor
// CHECK: kern.call @k_qa(
#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!a = tensor<?x48xf32, #tok>
nn.weights @ln1 "model.layers.{layer}.ln" over (layer = 0 to 3) : tensor<64xf32>
nn.weights @qa "model.layers.{layer}.qa" over (layer = 0 to 3) : tensor<48x64xbf16>
kern.func @k_qa(%x: !x, %ln: tensor<64xf32>, %w: tensor<48x64xbf16>) -> !a tile<avx512, mr = 14, nr = 2, prefetch = 16, rows_block = 256, key_tile = 64, head_tile = 1> {
  %h = nn.rms_norm %x, %ln : tensor<64xf32> eps 1.0e-06 : !x
  %a = nn.linear %h, %w : tensor<48x64xbf16> order tree<1> : !x -> !a
  kern.yield %a : !a
}
func.func @f(%x: !x, %l: index) -> !a {
  %a = kern.call @k_qa(%x, @ln1[%l], @qa[%l]) at [4096] : (!x) -> !a
  return %a : !a
}
