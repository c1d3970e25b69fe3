// RUN: k2c-opt %s --rt-to-llvm | FileCheck %s
// RUN: k2c-opt %s --rt-to-llvm | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=LLVM

// What ranks exchange. Offsets of worker, api, step and rank are those of abi.def.
rt.kernel @unpack id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 272 quota 10
rt.collective @site1 site 1 op all_to_all_rows axis ep members 2 row_bytes 256
rt.collective @site2 site 2 op all_to_all_rows axis ep members 2 row_bytes 288 quota 12
module @k2c_aa.code {
  llvm.func @k2c_aa(%w: !llvm.ptr, %a: !llvm.ptr) -> i32 {
    %0 = llvm.mlir.constant(0 : i32) : i32
    llvm.return %0 : i32
  }
}

// A start passes the site's number, the layer and four addresses, of which a function that launches nothing has room.
// CHECK: llvm.func internal @exchange.host(%[[W:.*]]: !llvm.ptr, %[[L:.*]]: i64) -> i32
func.func private @exchange(%l: index) {
  // CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i64)
  // CHECK: %[[BUFFERS:.*]] = llvm.alloca %[[FOUR]] x !llvm.ptr
  %m = rt.arena 0 bytes 64
  %sent = rt.arena 64 bytes 64
  %in = rt.arena 128 bytes 64
  %came = rt.arena 192 bytes 64
  // CHECK: llvm.getelementptr %[[BUFFERS]][0]
  // CHECK: llvm.getelementptr %[[BUFFERS]][8]
  // CHECK: llvm.getelementptr %[[BUFFERS]][16]
  // CHECK: llvm.getelementptr %[[BUFFERS]][24]
  // CHECK: llvm.getelementptr %{{.*}}[32] : (!llvm.ptr) -> !llvm.ptr, i8
  // CHECK: %[[START:.*]] = llvm.load
  // CHECK: %[[SITE:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK: %[[STATUS:.*]] = llvm.call %[[START]](%[[W]], %[[SITE]], %[[L]], %[[BUFFERS]]) : !llvm.ptr, (!llvm.ptr, i32, i64, !llvm.ptr) -> i32
  // CHECK: llvm.icmp "ne" %[[STATUS]]
  rt.collective_start @site2 layer %l source %m to %sent result %in from %came
  // A failure of the exchange ends the function at the wait.
  // CHECK: llvm.getelementptr %{{.*}}[40] : (!llvm.ptr) -> !llvm.ptr, i8
  // CHECK: %[[WAIT:.*]] = llvm.load
  // CHECK: %[[WAITED:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK: %[[DONE:.*]] = llvm.call %[[WAIT]](%[[W]], %[[WAITED]]) : !llvm.ptr, (!llvm.ptr, i32) -> i32
  // CHECK: llvm.icmp "ne" %[[DONE]]
  // CHECK: llvm.cond_br
  rt.collective_wait @site2
  // Without a layer it is -1.
  // CHECK: %[[NONE:.*]] = llvm.mlir.constant(-1 : i64)
  // CHECK: llvm.call %{{.*}}(%[[W]], %{{.*}}, %[[NONE]], %[[BUFFERS]])
  rt.collective_start @site1 source %m to %sent result %in from %came
  rt.collective_wait @site1
  return
}

// The rows that came are in the step of their site: 2 * 248 bytes behind the first.
// CHECK: llvm.func internal @arrived.host(%[[W:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
func.func private @arrived(%p: !rt.ptr) {
  // CHECK: llvm.getelementptr %[[W]][8]
  // CHECK: %[[STEP:.*]] = llvm.load
  // CHECK: llvm.getelementptr %[[STEP]][184]
  // CHECK: %[[STEPS:.*]] = llvm.load
  // CHECK: %[[OWN:.*]] = llvm.getelementptr %[[STEPS]][496]
  // CHECK: llvm.getelementptr %[[OWN]][0]
  // CHECK: %[[N:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
  %n = rt.arrived @site2
  %g = rt.grid %n slots 1 rows_per_item 1 items 1
  // The worker has this step for one launch, and its own again before the status is looked at.
  // CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[W]][8]
  // CHECK: %[[KEPT:.*]] = llvm.load %[[PLACE]]
  // CHECK: %[[ARRIVED:.*]] = llvm.getelementptr %{{.*}}[496]
  // CHECK: llvm.store %[[ARRIVED]], %[[PLACE]]
  // CHECK: %[[STATUS:.*]] = llvm.call %{{.*}}(%[[W]], %{{.*}}, %{{.*}}, %[[N]], %{{.*}})
  // CHECK-NEXT: llvm.store %[[KEPT]], %[[PLACE]]
  // CHECK: llvm.icmp "ne" %[[STATUS]]
  rt.launch @unpack in @site2 grid(%g) args(%p) : !rt.ptr
  return
}

// CHECK: llvm.func internal @nowait.host(%[[W:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64) -> i32
func.func private @nowait(%p: !rt.ptr, %g: i64) {
  // CHECK: %[[KEPT:.*]] = llvm.load %[[PLACE:.*]] : !llvm.ptr -> !llvm.ptr
  // CHECK: llvm.store %{{.*}}, %[[PLACE]]
  // CHECK: llvm.call
  // CHECK-NEXT: llvm.store %[[KEPT]], %[[PLACE]]
  rt.launch nowait @unpack in @site0 grid(%g) args(%p) : !rt.ptr
  // A launch of the step's own rows changes nothing of the worker.
  // CHECK: llvm.call
  // CHECK-NOT: llvm.store
  // CHECK: llvm.icmp "ne"
  rt.launch @unpack grid(%g) args(%p) : !rt.ptr
  return
}

// A layer's table has 16 slots, three lists of 12 subtrees, and 29 numbers of places. What this rank holds begins behind
// that of ranks before it, eight slots each; what its node holds, likewise; the subtrees of parts come first, those of
// ranks next.
// CHECK: llvm.func internal @placement.host(%[[W:.*]]: !llvm.ptr, %[[L:.*]]: i64) -> i32
func.func private @placement(%l: index) {
  // CHECK: llvm.getelementptr %[[W]][120]
  // CHECK: %[[RANK:.*]] = llvm.load
  // CHECK: llvm.getelementptr %[[RANK]][40]
  // CHECK: %[[TABLES:.*]] = llvm.load
  // CHECK: llvm.mlir.constant(81 : i64)
  // CHECK: %[[ENTRY:.*]] = llvm.mul %[[L]]
  // CHECK: llvm.mlir.constant(52 : i64)
  // CHECK: %[[PLACES:.*]] = llvm.add %[[ENTRY]]
  // CHECK: llvm.getelementptr %[[TABLES]][%[[PLACES]]] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %t = rt.placement[%l] experts 12 slots 16 places of rank count 29
  // CHECK: %[[ENTRY:.*]] = llvm.mul %[[L]]
  // CHECK: llvm.getelementptr %{{.*}}[8] : (!llvm.ptr) -> !llvm.ptr, i8
  // CHECK: %[[OWN:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i32
  // CHECK: llvm.mlir.constant(8 : i64)
  // CHECK: %[[FIRST:.*]] = llvm.mul
  // CHECK: llvm.add %[[ENTRY]], %[[FIRST]]
  %h = rt.placement[%l] experts 12 slots 16 held of rank count 8
  // CHECK: llvm.getelementptr %{{.*}}[16] : (!llvm.ptr) -> !llvm.ptr, i8
  // CHECK: llvm.load %{{.*}} : !llvm.ptr -> i32
  %n = rt.placement[%l] experts 12 slots 16 held of node count 8
  // CHECK: %[[ENTRY:.*]] = llvm.mul %[[L]]
  // CHECK: llvm.mlir.constant(40 : i64)
  // CHECK: llvm.add %[[ENTRY]]
  %s = rt.placement[%l] experts 12 slots 16 subtrees of node count 12
  // CHECK: llvm.mlir.constant(28 : i64)
  %r = rt.placement[%l] experts 12 slots 16 subtrees of rank count 12
  // CHECK: llvm.mlir.constant(16 : i64)
  %o = rt.placement[%l] experts 12 slots 16 subtrees of part count 12
  %g = arith.constant 1 : i64
  rt.launch @unpack grid(%g) args(%t, %h, %n, %s, %r, %o) : !rt.ptr, !rt.ptr, !rt.ptr, !rt.ptr, !rt.ptr, !rt.ptr
  return
}
func.func @step() {
  return
}
rt.program @program entries {serve = @step} arena 8192 scratch 512

// Op 9 and axis 4 in one number, bytes of a row, quota, members, where it is received; three sites.
// LLVM: @collectives = internal constant [15 x i64] [i64 17179869193, i64 272, i64 10, i64 2, i64 0, i64 17179869193, i64 256, i64 0, i64 2, i64 1, i64 17179869193, i64 288, i64 12, i64 2, i64 2]
// LLVM: @k2c_program = internal constant { {{.*}} } { {{.*}}, i32 1, i32 1, i32 3, ptr @kernel_names, {{.*}}, ptr @collectives,
