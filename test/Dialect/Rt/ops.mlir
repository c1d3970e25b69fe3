// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

// CHECK: rt.program @kimi entries {serve = @step} arena 671088640 scratch 1048576 expanded_from 64
rt.program @kimi entries {serve = @step} arena 671088640 scratch 1048576 expanded_from 64
// CHECK: rt.weight_slots @qa.panels of @qa first 12 count 3 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> share items 2 item_bytes 4096
rt.weight_slots @qa.panels of @qa first 12 count 3 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 48, k = 64, parts = 1, block_columns = 0, block_rows = 0>
    share items 2 item_bytes 4096
// CHECK: rt.weight_slots @head.panels of @head first 17 count 1 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> on last share items 2 item_bytes 4096
rt.weight_slots @head.panels of @head first 17 count 1 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> on last share items 2 item_bytes 4096
// CHECK: rt.weight_slots @gu.panels of @gu first 15 count 1 bytes 10240 layout #rt.panels<f8E4M3FN, matrices = 8, n = 64, k = 128, parts = 2, block_columns = 128, block_rows = 128>
rt.weight_slots @gu.panels of @gu first 15 count 1 bytes 10240 layout #rt.panels<f8E4M3FN, matrices = 8, n = 64, k = 128, parts = 2, block_columns = 128, block_rows = 128>
// CHECK: rt.weight_slots @kv.rows of @kv first 16 count 1 bytes 10240 layout #rt.rows<bf16, matrices = 1, n = 80, k = 64>
rt.weight_slots @kv.rows of @kv first 16 count 1 bytes 10240 layout #rt.rows<bf16, matrices = 1, n = 80, k = 64>
rt.weight_slots @embed.rows of @embed first 17 count 1 bytes 65536 layout #rt.row_major<bf16, 32768>
// CHECK: rt.weight_slots @up.panels of @up first 18 count 1 bytes 24576 layout #rt.panels<bf16, matrices = 8, n = 24, k = 48> experts 8 share items 1 item_bytes 3072
rt.weight_slots @up.panels of @up first 18 count 1 bytes 24576
    layout #rt.panels<bf16, matrices = 8, n = 24, k = 48> experts 8 share items 1 item_bytes 3072
// CHECK: rt.weight_slots @o.panels of @o first 19 count 3 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> parts 2 share items 2 item_bytes 4096
rt.weight_slots @o.panels of @o first 19 count 3 bytes 8192
    layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> parts 2 share items 2 item_bytes 4096
// CHECK: rt.weight_slots @end.panels of @end first 25 count 1 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> parts 4 on last{{$}}
rt.weight_slots @end.panels of @end first 25 count 1 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> parts 4 on last
// CHECK: rt.plane_table @cache.latent index 0 count 3 plane "latent" width 512 x f32 pages 64 group 0 layer_bytes 8388608
rt.plane_table @cache.latent index 0 count 3 plane "latent" width 512 x f32 pages 64 group 0 layer_bytes 8388608
// CHECK: rt.kernel @linear_qa id 3 hash "9a3f" variants ["gemv", "tail", "large"]
rt.kernel @linear_qa id 3 hash "9a3f" variants ["gemv", "tail", "large"]
// CHECK: rt.kernel @linear_qb id 4 hash "9a40" variants ["gemv"] streams 1 items 24 bytes 6144 cost {rows = "token"}
rt.kernel @linear_qb id 4 hash "9a40" variants ["gemv"] streams 1 items 24 bytes 6144 cost {rows = "token"}

rt.kernel @unpack id 7 hash "9a41" variants ["gemv"]
// CHECK: rt.kernel @add id 5 hash "77c1" variants ["all"] touches ["reads|by_row", "reads|by_row", "writes|by_row"]
rt.kernel @add id 5 hash "77c1" variants ["all"] touches ["reads|by_row", "reads|by_row", "writes|by_row"]
rt.kernel @attention id 6 hash "9a42" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 14464 quota 256

// CHECK-LABEL: func.func @step
func.func @step() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  // CHECK: rt.arena 4096 bytes 6144
  %x = rt.arena 4096 bytes 6144
  // CHECK: rt.arena 4096 bytes 6144 skip 64
  %k = rt.arena 4096 bytes 6144 skip 64
  // CHECK: rt.step
  %s = rt.step
  // CHECK: rt.logits
  %o = rt.logits
  // CHECK: rt.weight @embed.rows
  %e = rt.weight @embed.rows
  // CHECK: rt.rows token
  %t = rt.rows token
  // CHECK: rt.grid %{{.*}} slots 8 rows_per_item 64 items 24
  %g = rt.grid %t slots 8 rows_per_item 64 items 24
  // CHECK: %[[FROM:.*]], %[[END:.*]] = rt.share %{{.*}} grid(%{{.*}}) items 24 bytes 6144 max 262144
  %from, %end = rt.share %e grid(%g) items 24 bytes 6144 max 262144
  // CHECK: rt.prefetch %[[FROM]], %[[END]]
  rt.prefetch %from, %end
  scf.for %l = %c0 to %c3 step %c1 {
    // CHECK: rt.weight @qa.panels[%{{.*}}]
    %w = rt.weight @qa.panels[%l]
    // CHECK: rt.plane @cache.latent[%{{.*}}]
    %p = rt.plane @cache.latent[%l]
    // CHECK: rt.launch nowait @linear_qb grid(%{{.*}}) args(%{{.*}}, %{{.*}}) : !rt.ptr, !rt.ptr
    rt.launch nowait @linear_qb grid(%g) args(%x, %w) : !rt.ptr, !rt.ptr
    // CHECK: rt.launch @unpack in @site0 grid(%{{.*}}) args(%{{.*}}, %{{.*}}) : !rt.ptr, !rt.ptr
    rt.launch @unpack in @site0 grid(%g) args(%x, %w) : !rt.ptr, !rt.ptr
    // CHECK: rt.launch @attention gathered grid(%{{.*}}) args(%{{.*}}, %{{.*}}) : !rt.ptr, !rt.ptr
    rt.launch @attention gathered grid(%g) args(%x, %w) : !rt.ptr, !rt.ptr
    // CHECK: rt.launch @linear_qa grid(%{{.*}}) args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : !rt.ptr, !rt.ptr, !rt.ptr, !rt.step, index, !rt.ptr
    rt.launch @linear_qa grid(%g) args(%x, %w, %p, %s, %l, %o) : !rt.ptr, !rt.ptr, !rt.ptr, !rt.step, index, !rt.ptr
  }
  // CHECK: rt.sample
  rt.sample
  return
}
