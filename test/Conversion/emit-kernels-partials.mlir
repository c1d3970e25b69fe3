// RUN: k2c-opt %s --emit-kernels --mlir-print-local-scope | FileCheck %s

// Partial sums of four ranks are added as a balanced tree in f32, in the order of the ranks: what one rank would have
// made of its leaves. The last sum alone is rounded.
!p = tensor<?x64xf32, #nn.rows<token>>
!y = tensor<?x64xbf16, #nn.rows<token>>
// CHECK: module @{{k2c_[0-9a-f]+}}.code {
// CHECK: %[[PLACE0:.*]] = llvm.getelementptr %{{.*}}[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK-NEXT: %[[P0:.*]] = llvm.load %[[PLACE0]]
// CHECK: %[[PLACE1:.*]] = llvm.getelementptr %{{.*}}[1] :
// CHECK-NEXT: %[[P1:.*]] = llvm.load %[[PLACE1]]
// CHECK: %[[PLACE2:.*]] = llvm.getelementptr %{{.*}}[2] :
// CHECK-NEXT: %[[P2:.*]] = llvm.load %[[PLACE2]]
// CHECK: %[[PLACE3:.*]] = llvm.getelementptr %{{.*}}[3] :
// CHECK-NEXT: %[[P3:.*]] = llvm.load %[[PLACE3]]
// CHECK: %[[ROW0:.*]] = llvm.getelementptr %[[P0]][
// CHECK: %[[ROW1:.*]] = llvm.getelementptr %[[P1]][
// CHECK: %[[ROW2:.*]] = llvm.getelementptr %[[P2]][
// CHECK: %[[ROW3:.*]] = llvm.getelementptr %[[P3]][
// CHECK: %[[AT0:.*]] = llvm.getelementptr %[[ROW0]][
// CHECK-NEXT: %[[V0:.*]] = llvm.load %[[AT0]] {{.*}} -> vector<8xf32>
// CHECK: %[[AT1:.*]] = llvm.getelementptr %[[ROW1]][
// CHECK-NEXT: %[[V1:.*]] = llvm.load %[[AT1]] {{.*}} -> vector<8xf32>
// CHECK: %[[S01:.*]] = arith.addf %[[V0]], %[[V1]] : vector<8xf32>
// CHECK: %[[AT2:.*]] = llvm.getelementptr %[[ROW2]][
// CHECK-NEXT: %[[V2:.*]] = llvm.load %[[AT2]] {{.*}} -> vector<8xf32>
// CHECK: %[[AT3:.*]] = llvm.getelementptr %[[ROW3]][
// CHECK-NEXT: %[[V3:.*]] = llvm.load %[[AT3]] {{.*}} -> vector<8xf32>
// CHECK: %[[S23:.*]] = arith.addf %[[V2]], %[[V3]] : vector<8xf32>
// CHECK: arith.addf %[[S01]], %[[S23]] : vector<8xf32>
// CHECK-NOT: arith.addf {{.*}}f32
// CHECK: llvm.store {{.*}} : vector<8xi16>
kern.func @add_partials(%p0: !p, %p1: !p, %p2: !p, %p3: !p) -> !y tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
  %y = nn.add_partials %p0, %p1, %p2, %p3 : !p, !p, !p, !p -> !y
  kern.yield %y : !y
}
