// RUN: k2c-opt %s --attach-plan="l2-bytes=16384" --prefetch-weights | FileCheck %s

rt.weight_slots @q of @w first 0 count 1 bytes 12288 layout #rt.panels<bf16, matrices = 1, n = 96, k = 64>
rt.weight_slots @head of @w first 1 count 1 bytes 65536 layout #rt.panels<bf16, matrices = 1, n = 512, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 1 items 6 bytes 2048
rt.kernel @linear_head id 1 hash "head" variants ["all"] streams 1 items 32 bytes 2048
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 272 quota 10

// How the head is shared out depends on rows that arrive behind @linear_q, so that nothing of it is fetched there.
// CHECK-LABEL: func.func @step
func.func @step() {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 4096 bytes 64
  %q = rt.weight @q
  %t = rt.rows token
  %g = rt.grid %t slots 1 rows_per_item 64 items 6
  // CHECK-NOT: rt.arrived
  // CHECK: rt.launch @linear_q
  rt.launch @linear_q grid(%g) args(%x, %q, %y) : !rt.ptr, !rt.ptr, !rt.ptr
  // CHECK: rt.collective_wait @site0
  rt.collective_start @site0 source %y to %y result %x from %y
  rt.collective_wait @site0
  %head = rt.weight @head
  // CHECK: rt.arrived @site0
  %n = rt.arrived @site0
  %h = rt.grid %n slots 1 rows_per_item 64 items 32
  // CHECK: rt.launch @linear_head
  rt.launch @linear_head in @site0 grid(%h) args(%x, %head, %y) : !rt.ptr, !rt.ptr, !rt.ptr
  return
}
rt.program @program entries {serve = @step} arena 8192 scratch 512
