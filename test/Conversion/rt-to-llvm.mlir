// RUN: k2c-opt %s --rt-to-llvm | FileCheck %s
// RUN: k2c-opt %s --rt-to-llvm | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=LLVM

// Offsets of the worker and the step are those of abi.def; the host exports one function.
rt.weight_slots @embed of @e first 0 count 1 bytes 4096 layout #rt.row_major<f32, 1024>
rt.weight_slots @w of @e first 1 count 3 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.weight_slots @up of @u first 4 count 2 bytes 24576
    layout #rt.panels<bf16, matrices = 8, n = 24, k = 48> experts 8 share items 1 item_bytes 3072
rt.plane_table @cache.k index 1 count 8 plane "k" width 32 x f32 pages 6 group 2 layer_bytes 49152
rt.kernel @linear_a id 0 hash "k2c_aa" variants ["m1", "full"]
rt.kernel @linear_b id 1 hash "k2c_aa" variants ["all"]

// Nothing of the runtime form is left.
// CHECK-NOT: rt.
// CHECK-NOT: func.func

// Code of kernels stays beside the host.
// CHECK: module @k2c_aa.code
module @k2c_aa.code {
  llvm.func @k2c_aa(%w: !llvm.ptr, %a: !llvm.ptr) -> i32 {
    %0 = llvm.mlir.constant(0 : i32) : i32
    llvm.return %0 : i32
  }
}

// CHECK: llvm.func internal @layer.host(%[[W:.*]]: !llvm.ptr, %[[L:.*]]: i64) -> i32
func.func private @layer(%l: index) {
  // An ordinal, clamp((layer - 2) / 2, 0, 2), is the arithmetic it is written as.
  // CHECK: %[[SHIFTED:.*]] = llvm.sub %[[L]], %{{.*}} : i64
  // CHECK: %[[DIVIDED:.*]] = llvm.sdiv %[[SHIFTED]]
  // CHECK: %[[LARGER:.*]] = llvm.intr.smax(%[[DIVIDED]]
  // CHECK: %[[ORDINAL:.*]] = llvm.intr.smin(%[[LARGER]]
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %shifted = arith.subi %l, %two : index
  %divided = arith.divsi %shifted, %two : index
  %larger = arith.maxsi %divided, %zero : index
  %ordinal = arith.minsi %larger, %two : index
  // Slot 1 + ordinal.
  // CHECK: llvm.add %{{.*}}, %[[ORDINAL]]
  %w = rt.weight @w[%ordinal]
  // A page array of the layer: plane base + layer * 49152.
  // CHECK: llvm.mlir.constant(49152 : i64)
  // CHECK: llvm.mul %[[L]]
  %p = rt.plane @cache.k[%l]
  // ceil(rows * 2 / 8) * 3
  // CHECK: llvm.mlir.constant(2 : i64)
  // CHECK: llvm.mul
  // CHECK: llvm.mlir.constant(7 : i64)
  // CHECK: llvm.add
  // CHECK: llvm.udiv
  // CHECK: llvm.mlir.constant(3 : i64)
  // CHECK: llvm.mul
  %t = rt.rows token
  %g = rt.grid %t slots 2 rows_per_item 8 items 3
  // A nowait launch is another entry, and its status says nothing yet.
  // CHECK: llvm.getelementptr %{{.*}}[24]
  // CHECK: %[[OPEN:.*]] = llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i64, !llvm.ptr) -> i32
  // CHECK-NOT: llvm.icmp "ne" %[[OPEN]]
  rt.launch nowait @linear_b grid(%g) args(%w, %p, %l) : !rt.ptr, !rt.ptr, index
  // A launch passes kernel 0 and its code, and a failure of it ends the function.
  // CHECK: llvm.mlir.addressof @k2c_aa
  // CHECK: %[[STATUS:.*]] = llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i64, !llvm.ptr) -> i32
  // CHECK: llvm.icmp "ne" %[[STATUS]]
  // CHECK: llvm.cond_br
  rt.launch @linear_a grid(%g) args(%w, %p, %l) : !rt.ptr, !rt.ptr, index
  return
}

// Numbers become what they are called.
// CHECK: llvm.func internal @numbers.host(%{{.*}}: !llvm.ptr, %[[N:.*]]: i64) -> i32
func.func private @numbers(%n: i64) {
  // CHECK: %[[TWO:.*]] = llvm.mlir.constant(2 : i64) : i64
  // CHECK: %[[FEW:.*]] = llvm.icmp "slt" %[[N]], %[[TWO]] : i64
  // CHECK: %[[CHOSEN:.*]] = llvm.select %[[FEW]], %[[N]], %[[TWO]] : i1, i64
  // CHECK: %[[PRODUCT:.*]] = llvm.mul %[[CHOSEN]], %[[N]] : i64
  // CHECK: llvm.srem %[[PRODUCT]], %[[TWO]] : i64
  %two = arith.constant 2 : i64
  %few = arith.cmpi slt, %n, %two : i64
  %chosen = arith.select %few, %n, %two : i64
  %product = arith.muli %chosen, %n : i64
  %rest = arith.remsi %product, %two : i64
  return
}

// A worker's part of a streamed argument: its items, those of one pass, at most so many bytes; the worker keeps it.
// CHECK: llvm.func internal @prefetch.host(%[[W:.*]]: !llvm.ptr, %[[P:.*]]: !llvm.ptr, %[[GRID:.*]]: i64) -> i32
func.func private @prefetch(%p: !rt.ptr, %grid: i64) {
  // CHECK: %[[BEGINS:.*]] = llvm.mul %[[GRID]], %[[INDEX:.*]] : i64
  // CHECK: %[[BEGIN:.*]] = llvm.udiv %[[BEGINS]], %[[COUNT:.*]] : i64
  // CHECK: %[[NEXT:.*]] = llvm.add %[[INDEX]]
  // CHECK: %[[ENDS:.*]] = llvm.mul %[[GRID]], %[[NEXT]] : i64
  // CHECK: %[[LAST:.*]] = llvm.udiv %[[ENDS]], %[[COUNT]] : i64
  // CHECK: %[[FIRST:.*]] = llvm.urem %[[BEGIN]]
  // CHECK: %[[MINE:.*]] = llvm.sub %[[LAST]], %[[BEGIN]] : i64
  // CHECK: %[[PASS:.*]] = llvm.sub %{{.*}}, %[[FIRST]] : i64
  // CHECK: llvm.intr.smin(%[[MINE]], %[[PASS]])
  // CHECK: %[[FROM:.*]] = llvm.getelementptr %[[P]]
  // CHECK: %[[END:.*]] = llvm.getelementptr %[[FROM]]
  %from, %end = rt.share %p grid(%grid) items 6 bytes 2048 max 4096
  // CHECK: llvm.store %[[FROM]]
  // CHECK: llvm.store %[[END]]
  rt.prefetch %from, %end
  return
}

// CHECK: llvm.func internal @step.host(%{{.*}}: !llvm.ptr) -> i32
func.func @step() {
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c1 = arith.constant 1 : index
  // CHECK: llvm.icmp "slt"
  // CHECK: llvm.call @layer.host(
  scf.for %i = %c2 to %c8 step %c1 {
    func.call @layer(%i) : (index) -> ()
  }
  %s = rt.step
  %e = rt.weight @embed
  %l = rt.logits
  %n = rt.rows output
  %g = rt.grid %n slots 1 rows_per_item 1 items 1
  rt.launch @linear_b grid(%g) args(%s, %e, %l) : !rt.step, !rt.ptr, !rt.ptr
  rt.sample
  return
}
rt.program @program entries {serve = @step} arena 8192 scratch 512

// Kernels of one code are declared once.
// CHECK: llvm.func @k2c_aa(!llvm.ptr, !llvm.ptr) -> i32
// CHECK-NOT: llvm.func @k2c_aa(!llvm.ptr
// CHECK: llvm.mlir.global internal constant @variant_names.0("m1|full\00")
// CHECK: llvm.func @k2c_program_query(%{{.*}}: i32) -> !llvm.ptr

// Slots 0 to 5, planes 0 and 1, groups 0 to 2, 2 kernels, an entry; nothing but the query is visible.
// LLVM: @entry_names.0 = internal constant [6 x i8] c"serve\00"
// LLVM: @entry_names = internal constant [1 x ptr] [ptr @entry_names.0]
// LLVM: @entries = internal constant [1 x ptr] [ptr @step.host]
// LLVM: @slot_bytes = internal constant [6 x i64] [i64 4096, i64 4096, i64 4096, i64 4096, i64 24576, i64 24576]
// LLVM: @slot_experts = internal constant [6 x i64] [i64 0, i64 0, i64 0, i64 0, i64 8, i64 8]
// LLVM: @slot_parts = internal constant [6 x i64] {{.*}}i64 1, i64 1, i64 1, i64 1, i64 1, i64 1]
// LLVM: @k2c_program = internal constant { {{.*}} } { i32 {{[0-9]+}}, i32 0, i64 8192, i64 512, i32 6, i32 2, i32 3, i32 2, i32 1, i32 0, ptr @kernel_names, ptr @variant_names, ptr @entry_names, ptr @entries, ptr @slot_bytes, ptr @slot_experts,
// LLVM: define internal i32 @layer.host(
// LLVM: define internal i32 @step.host(
// LLVM: define ptr @k2c_program_query(i32
