// RUN: k2c-opt %s --rt-to-llvm | FileCheck %s
// RUN: k2c-opt %s --rt-to-llvm | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=LLVM

// A program of a GPU launches by number and by the description of a grid; it reads no count of the step, and names no
// function of a kernel.
// CHECK-NOT: llvm.func @k2c_aa
// CHECK-LABEL: llvm.func internal @step.host
// CHECK-NOT: llvm.func @k2c_aa
module attributes {kern.target = #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 4, ctas = 264,
                                           host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = []>>} {
rt.kernel @linear_a id 3 hash "k2c_aa" variants ["m1", "full"]

func.func private @step() {
  %at = rt.arena 256 bytes 4096
  %step = rt.step
  // k2rt_ir_grid: token_rows is the first field of k2rt_ir_step, output_rows the second.
  // CHECK: %[[GRID:.*]] = llvm.alloca %{{.*}} x i64
  // CHECK: %[[ROWS:.*]] = llvm.mlir.constant(8 : i64)
  // CHECK: %[[SLOTS:.*]] = llvm.mlir.constant(2 : i64)
  // CHECK: %[[BLOCK:.*]] = llvm.mlir.constant(16 : i64)
  // CHECK: %[[ITEMS:.*]] = llvm.mlir.constant(3 : i64)
  // CHECK: %[[P:.*]] = llvm.getelementptr %[[GRID]][0]
  // CHECK: llvm.store %[[ROWS]], %[[P]]
  // CHECK: %[[P:.*]] = llvm.getelementptr %[[GRID]][8]
  // CHECK: llvm.store %[[SLOTS]], %[[P]]
  // CHECK: %[[P:.*]] = llvm.getelementptr %[[GRID]][16]
  // CHECK: llvm.store %[[BLOCK]], %[[P]]
  // CHECK: %[[P:.*]] = llvm.getelementptr %[[GRID]][24]
  // CHECK: llvm.store %[[ITEMS]], %[[P]]
  // Two arguments, no barrier behind it; what it returns is a failure to record.
  // CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}, %[[GRID]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i64, !llvm.ptr, i32, i32) -> i32
  // CHECK: llvm.icmp "ne"
  %rows = rt.rows output
  %grid = rt.grid %rows slots 2 rows_per_item 16 items 3
  rt.launch nowait @linear_a grid(%grid) args(%at, %step) : !rt.ptr, !rt.step
  // A grid of no rows.
  // CHECK: %[[NONE:.*]] = llvm.mlir.constant(-1 : i64)
  // CHECK: llvm.store %[[NONE]]
  %one = arith.constant 1 : i64
  rt.launch @linear_a grid(%one) args(%at, %step) : !rt.ptr, !rt.step
  return
}

// Launches of a layer say which it is, others -1.
// CHECK-LABEL: llvm.func internal @layer.host
// CHECK-SAME: (%[[WORKER:.*]]: !llvm.ptr, %[[LAYER:.*]]: i64)
// CHECK: llvm.call %{{.*}}(%[[WORKER]], %{{.*}}, %{{.*}}, %[[LAYER]], %{{.*}}, %{{.*}}, %{{.*}})
func.func private @layer(%l: i64) {
  %at = rt.arena 256 bytes 4096
  %step = rt.step
  %one = arith.constant 1 : i64
  rt.launch @linear_a grid(%one) args(%at, %step) : !rt.ptr, !rt.step
  return
}
// LLVM: define internal i32 @step.host(ptr %0)
rt.program @program entries {serve = @step} arena 4352 scratch 0
}
