// RUN: k2c-opt %s --rt-to-llvm | FileCheck %s
// RUN: k2c-opt %s --rt-to-llvm | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=LLVM

// What ranks of a tensor-parallel group have: slices of a step, and parts of weights. Offsets of worker, api, step and
// rank are those of abi.def.
rt.weight_slots @norm.rows of @norm first 0 count 3 bytes 128 layout #rt.row_major<bf16, 64>
rt.weight_slots @o.panels of @o first 3 count 3 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> parts 2 share items 2 item_bytes 4096
rt.weight_slots @head.panels of @head first 9 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64> parts 2
rt.kernel @attention id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op gather_slices axis tp members 2 row_bytes 256
rt.collective @site1 site 1 op scatter_slices axis tp members 4 row_bytes 512
module @k2c_aa.code {
  llvm.func @k2c_aa(%w: !llvm.ptr, %a: !llvm.ptr) -> i32 {
    %0 = llvm.mlir.constant(0 : i32) : i32
    llvm.return %0 : i32
  }
}

// A start passes what is sent, then where slices lie: one for each of four members, for which there is room.
// CHECK: llvm.func internal @exchange.host(%[[W:.*]]: !llvm.ptr, %[[L:.*]]: i64) -> i32
func.func private @exchange(%l: index) {
  // CHECK: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i64)
  // CHECK: %[[BUFFERS:.*]] = llvm.alloca %[[EIGHT]] x !llvm.ptr
  %m = rt.arena 0 bytes 64
  %a = rt.arena 4096 bytes 64
  %b = rt.arena 8192 bytes 64
  %c = rt.arena 12288 bytes 64
  %d = rt.arena 16384 bytes 64
  // CHECK: %[[M:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  // CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[BUFFERS]][0]
  // CHECK-NEXT: llvm.store %[[M]], %[[PLACE]]
  // CHECK: llvm.getelementptr %[[BUFFERS]][8]
  // CHECK: llvm.getelementptr %[[BUFFERS]][16]
  // CHECK: llvm.getelementptr %[[BUFFERS]][24]
  // CHECK: llvm.getelementptr %[[BUFFERS]][32]
  // CHECK-NEXT: llvm.store
  // CHECK: llvm.getelementptr %{{.*}}[32] : (!llvm.ptr) -> !llvm.ptr, i8
  // CHECK: %[[START:.*]] = llvm.load
  // CHECK: %[[SITE:.*]] = llvm.mlir.constant(1 : i32)
  // CHECK: llvm.call %[[START]](%[[W]], %[[SITE]], %[[L]], %[[BUFFERS]])
  rt.collective_start @site1 layer %l source %m slices %a, %b, %c, %d
  rt.collective_wait @site1
  // One place for what is gathered.
  // CHECK: llvm.getelementptr %[[BUFFERS]][8]
  // CHECK-NOT: llvm.getelementptr %[[BUFFERS]]
  // CHECK: %[[NONE:.*]] = llvm.mlir.constant(-1 : i64)
  // CHECK: llvm.call %{{.*}}(%[[W]], %{{.*}}, %[[NONE]], %[[BUFFERS]])
  rt.collective_start @site0 source %m slices %a
  rt.collective_wait @site0
  return
}

// CHECK: llvm.func internal @launches.host(%[[W:.*]]: !llvm.ptr, %[[P:.*]]: !llvm.ptr) -> i32
func.func private @launches(%p: !rt.ptr) {
  // The rows of all are in the step that this step of the rank names.
  // CHECK: llvm.getelementptr %[[W]][8]
  // CHECK: %[[STEP:.*]] = llvm.load
  // CHECK: llvm.getelementptr %[[STEP]][216]
  // CHECK: %[[ALL:.*]] = llvm.load
  // CHECK: llvm.getelementptr %[[ALL]][0]
  // CHECK: %[[N:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
  %n = rt.rows gathered
  %g = rt.grid %n slots 1 rows_per_item 1 items 1
  // A kernel that takes the step takes this one.
  // CHECK: llvm.getelementptr %{{.*}}[216]
  // CHECK: %[[S:.*]] = llvm.load
  %s = rt.step gathered
  // CHECK: llvm.store %[[P]]
  // CHECK: llvm.store %[[S]]
  // The worker has it for one launch, and its own again before the status is looked at.
  // CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[W]][8]
  // CHECK: %[[KEPT:.*]] = llvm.load %[[PLACE]]
  // CHECK: llvm.getelementptr %{{.*}}[216]
  // CHECK: %[[GATHERED:.*]] = llvm.load
  // CHECK: llvm.store %[[GATHERED]], %[[PLACE]]
  // CHECK: %[[STATUS:.*]] = llvm.call %{{.*}}(%[[W]], %{{.*}}, %{{.*}}, %[[N]], %{{.*}})
  // CHECK-NEXT: llvm.store %[[KEPT]], %[[PLACE]]
  // CHECK: llvm.icmp "ne" %[[STATUS]]
  rt.launch @attention gathered grid(%g) args(%p, %s) : !rt.ptr, !rt.step
  // A launch of the rank's own rows changes nothing of the worker.
  // CHECK-NOT: llvm.getelementptr %{{.*}}[216]
  // CHECK: llvm.call
  // CHECK-NOT: llvm.store
  // CHECK: llvm.icmp "ne"
  %t = rt.rows token
  %s1 = rt.step
  rt.launch @attention grid(%t) args(%p, %s1) : !rt.ptr, !rt.step
  return
}

// CHECK: llvm.func internal @weights.host(%[[W:.*]]: !llvm.ptr, %[[L:.*]]: i64, %{{.*}}: i64) -> i32
func.func private @weights(%l: index, %g: i64) {
  // Of two parts a layer, the slot is 3 + 2 * layer + the part of this rank, its place modulo two.
  // CHECK: llvm.alloca
  // CHECK: %[[FIRST:.*]] = llvm.mlir.constant(3 : i64)
  // CHECK: %[[PARTS:.*]] = llvm.mlir.constant(2 : i64)
  // CHECK: %[[LAYER:.*]] = llvm.mul %[[L]], %[[PARTS]]
  // CHECK: %[[SLOT:.*]] = llvm.add %[[FIRST]], %[[LAYER]]
  // CHECK: llvm.getelementptr %[[W]][120]
  // CHECK: %[[RANK:.*]] = llvm.load
  // CHECK: llvm.getelementptr %[[RANK]][20]
  // CHECK: %[[PART:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i32
  // CHECK: %[[TWO:.*]] = llvm.mlir.constant(2 : i64)
  // CHECK: %[[PLACE:.*]] = llvm.sext %[[PART]] : i32 to i64
  // CHECK: %[[NUMBER:.*]] = llvm.urem %[[PLACE]], %[[TWO]]
  // CHECK: %[[OWN:.*]] = llvm.add %[[SLOT]], %[[NUMBER]]
  // CHECK: llvm.getelementptr %[[W]][24]
  // CHECK: llvm.getelementptr %{{.*}}[%[[OWN]]] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %w = rt.weight @o.panels[%l]
  // Without layers it is 9 + the part.
  // CHECK: %[[HEAD:.*]] = llvm.mlir.constant(9 : i64)
  // CHECK: llvm.getelementptr %{{.*}}[20]
  // CHECK: %[[HEADPLACE:.*]] = llvm.sext
  // CHECK: %[[HEADPART:.*]] = llvm.urem %[[HEADPLACE]]
  // CHECK: llvm.add %[[HEAD]], %[[HEADPART]]
  %h = rt.weight @head.panels
  // What all ranks have whole has no part.
  // CHECK-NOT: llvm.getelementptr %{{.*}}[20]
  // CHECK: llvm.add %{{.*}}, %[[L]]
  // CHECK-NOT: llvm.getelementptr %{{.*}}[20]
  // CHECK: llvm.call
  %n = rt.weight @norm.rows[%l]
  rt.launch @attention grid(%g) args(%w, %h, %n) : !rt.ptr, !rt.ptr, !rt.ptr
  return
}
func.func @step() {
  return
}
rt.program @program entries {serve = @step} arena 32768 scratch 512

// A slot for each part: of three layers, then of none. Ops 12 and 13 and axis 1 in one number each, bytes of a row, no
// quota, members, the site.
// LLVM: @slot_bytes = internal constant [11 x i64] [i64 128, i64 128, i64 128, i64 8192, i64 8192, i64 8192, i64 8192, i64 8192, i64 8192, i64 4096, i64 4096]
// LLVM: @collectives = internal constant [10 x i64] [i64 4294967308, i64 256, i64 0, i64 2, i64 0, i64 4294967309, i64 512, i64 0, i64 4, i64 1]
