// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!a = tensor<?x48xf32, #tok>

nn.weights @ln "model.layers.{layer}.ln.weight" over (layer = 0 to 3) : tensor<64xf32>
nn.weights @qa "model.layers.{layer}.qa.weight" over (layer = 0 to 3) : tensor<48x64xbf16>
nn.weights @one "one.weight" : tensor<48x64xbf16>

// CHECK: kern.func @linear_qa(%[[X:.*]]: tensor<?x64xf32, #tok>, %[[LN:.*]]: tensor<64xf32>, %[[W:.*]]: tensor<48x64xbf16>) -> tensor<?x48xf32, #tok> tile<avx512, lanes = 16, mr = 14, nr = 2, prefetch = 16, rows_block = 256, head_tile = 1, value_parts = 1> {
kern.func @linear_qa(%x: !x, %ln: tensor<64xf32>, %w: tensor<48x64xbf16>) -> !a
    tile<avx512, lanes = 16, mr = 14, nr = 2, prefetch = 16, rows_block = 256, head_tile = 1, value_parts = 1> {
  // CHECK: nn.rms_norm %[[X]], %[[LN]] : tensor<64xf32> eps
  %h = nn.rms_norm %x, %ln : tensor<64xf32> eps 1.0e-05 : !x
  %a = nn.linear %h, %w : tensor<48x64xbf16> order tree<1> : !x -> !a
  // CHECK: kern.yield %{{.*}} : tensor<?x48xf32, #tok>
  kern.yield %a : !a
}

// A kernel without a tile, and without results. Its arguments are called by what they are.
// CHECK: kern.func @capture(%x: tensor<?x64xf32, #tok>, %b: !nn.batch) {
kern.func @capture(%rows: !x, %step: !nn.batch) {
  nn.capture %rows, %step embed : !x
  // CHECK: kern.yield{{$}}
  kern.yield
}

// CHECK-LABEL: func.func @calls
func.func @calls(%x: !x, %ln: tensor<64xf32>, %l: index, %b: !nn.batch) -> !a {
  // CHECK: kern.call @linear_qa(%{{.*}}, @ln[%{{.*}}], @qa[%{{.*}}]) at [4096] : (tensor<?x64xf32, #tok>) -> tensor<?x48xf32, #tok>
  %0 = kern.call @linear_qa(%x, @ln[%l], @qa[%l]) at [4096] : (!x) -> !a
  // CHECK: kern.call @linear_qa(%{{.*}}, %{{.*}}, @one) : (tensor<?x64xf32, #tok>, tensor<64xf32>) -> tensor<?x48xf32, #tok>
  %1 = kern.call @linear_qa(%x, %ln, @one) : (!x, tensor<64xf32>) -> !a
  // CHECK: kern.call nowait @capture(%{{.*}}, %{{.*}}) : (tensor<?x64xf32, #tok>, !nn.batch) -> ()
  kern.call nowait @capture(%x, %b) : (!x, !nn.batch) -> ()
  // CHECK: kern.call @capture(%{{.*}}, %{{.*}}) : (tensor<?x64xf32, #tok>, !nn.batch) -> ()
  kern.call @capture(%x, %b) : (!x, !nn.batch) -> ()
  return %0 : !a
}
