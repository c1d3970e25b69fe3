// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

// CHECK: rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 14464 quota 256
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 14464 quota 256
// CHECK: rt.collective @site1 site 1 op all_to_all_rows axis ep members 2 row_bytes 14336{{$}}
rt.collective @site1 site 1 op all_to_all_rows axis ep members 2 row_bytes 14336
// CHECK: rt.collective @site2 site 2 op receive axis pp members 2 row_bytes 28672{{$}}
rt.collective @site2 site 2 op receive axis pp members 2 row_bytes 28672
// CHECK: rt.collective @site3 site 3 op send axis pp members 2 row_bytes 28672 to 2
rt.collective @site3 site 3 op send axis pp members 2 row_bytes 28672 to 2
// CHECK: rt.collective @site4 site 4 op gather_slices axis tp members 2 row_bytes 28672{{$}}
rt.collective @site4 site 4 op gather_slices axis tp members 2 row_bytes 28672
// CHECK: rt.collective @site5 site 5 op scatter_slices axis tp members 2 row_bytes 28672{{$}}
rt.collective @site5 site 5 op scatter_slices axis tp members 2 row_bytes 28672
rt.kernel @attention id 1 hash "9a40" variants ["all"]
rt.kernel @unpack id 0 hash "9a3f" variants ["all"]

// CHECK-LABEL: func.func @layer(
// CHECK-SAME: %[[L:.*]]: index
func.func @layer(%l: index) {
  %m = rt.arena 0 bytes 64
  %sent = rt.arena 4096 bytes 64
  %in = rt.arena 8192 bytes 64
  %came = rt.arena 12288 bytes 64
  // CHECK: %[[PLACES:places]] = rt.placement[%[[L]]] experts 384 slots 384 places of rank count 769
  %p = rt.placement[%l] experts 384 slots 384 places of rank count 769
  // CHECK: %[[HELD:held]] = rt.placement[%[[L]]] experts 384 slots 384 held of rank count 48
  %h = rt.placement[%l] experts 384 slots 384 held of rank count 48
  // CHECK: %[[SUBTREES:subtrees]] = rt.placement[%[[L]]] experts 384 slots 384 subtrees of node count 384
  %s = rt.placement[%l] experts 384 slots 384 subtrees of node count 384
  // CHECK: rt.collective_start @site0 layer %[[L]] source %{{.*}} to %{{.*}} result %{{.*}} from %{{.*}}
  rt.collective_start @site0 layer %l source %m to %sent result %in from %came
  // CHECK: rt.collective_wait @site0 layer %[[L]]
  rt.collective_wait @site0 layer %l
  // CHECK: %[[N:arrived]] = rt.arrived @site0
  %n = rt.arrived @site0
  // CHECK: rt.grid %[[N]]
  %g = rt.grid %n slots 1 rows_per_item 1 items 1
  // CHECK: rt.launch @unpack in @site0 grid(%{{.*}}) args(%{{.*}}, %{{.*}}) : !rt.ptr, !rt.ptr
  %x = rt.arena 16384 bytes 64
  %w = rt.arena 20480 bytes 64
  rt.launch @unpack in @site0 grid(%g) args(%x, %w) : !rt.ptr, !rt.ptr
  // CHECK: rt.launch nowait @unpack in @site0 grid(
  rt.launch nowait @unpack in @site0 grid(%g) args(%x, %w) : !rt.ptr, !rt.ptr
  rt.launch @unpack grid(%g) args(%p, %h, %s) : !rt.ptr, !rt.ptr, !rt.ptr
  // An exchange of no layer.
  // CHECK: rt.collective_start @site1 source
  rt.collective_start @site1 source %x to %sent result %in from %came
  rt.collective_wait @site1
  return
}

// CHECK-LABEL: func.func @stage(
func.func @stage() {
  // CHECK: %[[FROM:from]], %[[END:end]] = rt.stage_layers 1 to 61
  %from, %end = rt.stage_layers 1 to 61
  %x = rt.arena 0 bytes 64
  // CHECK: rt.collective_start @site2 rows %{{.*}}
  rt.collective_start @site2 rows %x
  rt.collective_wait @site2
  return
}

// Ranks of a tensor-parallel group know how many rows of a step are in each slice: they have no counts.
// CHECK-LABEL: func.func @slices(
// CHECK-SAME: %[[L:.*]]: index
func.func @slices(%l: index) {
  %m = rt.arena 0 bytes 64
  %in = rt.arena 4096 bytes 64
  %own = rt.arena 8192 bytes 64
  // CHECK: rt.collective_start @site4 layer %[[L]] source %[[M:.*]] slices %[[IN:.*]]
  rt.collective_start @site4 layer %l source %m slices %in
  rt.collective_wait @site4
  // CHECK: rt.rows gathered
  %n = rt.rows gathered
  %g = rt.grid %n slots 1 rows_per_item 1 items 1
  // CHECK: rt.step{{$}}
  %s = rt.step
  // CHECK: %[[S:.*]] = rt.step gathered
  %s1 = rt.step gathered
  // CHECK: rt.launch @attention gathered grid(%{{.*}}) args(%[[IN]], %[[S]]) : !rt.ptr, !rt.step
  rt.launch @attention gathered grid(%g) args(%in, %s1) : !rt.ptr, !rt.step
  // CHECK: rt.launch nowait @attention gathered grid(
  rt.launch nowait @attention gathered grid(%g) args(%in, %s) : !rt.ptr, !rt.step
  rt.launch @attention grid(%g) args(%m) : !rt.ptr
  // One result for each member.
  // CHECK: rt.collective_start @site5 source %[[M]] slices %[[IN]], %{{.*}}
  rt.collective_start @site5 source %m slices %in, %own
  rt.collective_wait @site5
  return
}

func.func @moe_layer(%l: index) {
  return
}
func.func @halves(%l: index) {
  func.call @moe_layer(%l) : (index) -> ()
  // CHECK: rt.second_half {
  // CHECK-NEXT: func.call @moe_layer(
  // CHECK-NEXT: }
  rt.second_half {
    func.call @moe_layer(%l) : (index) -> ()
  }
  return
}
func.func @step() {
  return
}
// CHECK: rt.program @kimi entries {serve = @step} arena 671088640 second 335544320 scratch 1048576 expanded_from 64
rt.program @kimi entries {serve = @step} arena 671088640 second 335544320 scratch 1048576 expanded_from 64
