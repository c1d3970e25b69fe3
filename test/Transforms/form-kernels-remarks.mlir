// RUN: k2c-opt %s --form-kernels --remarks-filter=form-kernels 2>&1 | FileCheck %s
// RUN: k2c-opt %s --attach-plan="without=fusion" --form-kernels --remarks-filter=form-kernels 2>&1 | FileCheck %s --check-prefix=ONE

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @ln "ln" : tensor<64xf32>
nn.weights @w "w" : tensor<64x64xbf16>

// CHECK: fused{{.*}}3 ops are one kernel 'linear_w'{{.*}}ops=3
// CHECK: kernels{{.*}}1 kernels{{.*}}kernels=1
// ONE-NOT: ops are one kernel
// ONE: kernels{{.*}}3 kernels
func.func @residual(%x: !x) -> !x {
  %h = nn.rms_norm %x, @ln eps 1.0e-06 : !x
  %d = nn.linear %h, @w order tree<1> : !x -> !x
  %y = nn.add %x, %d : !x
  return %y : !x
}
