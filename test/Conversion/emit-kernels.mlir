// RUN: k2c-opt %s --emit-kernels --mlir-print-local-scope | FileCheck %s
// RUN: k2c-opt %s --emit-kernels --emit-kernels --mlir-print-local-scope | FileCheck %s

!x = tensor<?x64xf32, #nn.rows<token>>

// Code stands behind the first kernel that it is for; a kernel of the same description has none of its own.
// CHECK: kern.func @add(
// CHECK: module @[[ADD:k2c_[0-9a-f]+]].code {
// CHECK-NEXT: llvm.func @[[ADD]](%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// CHECK: kern.func @sum(
// CHECK-NOT: module @
kern.func @add(%x: !x, %y: !x) -> !x tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
  %s = nn.add %x, %y : !x
  kern.yield %s : !x
}
kern.func @sum(%x: !x, %y: !x) -> !x tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
  %s = nn.add %x, %y : !x
  kern.yield %s : !x
}
