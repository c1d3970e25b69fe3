// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

// CHECK: rt.launch @k_qa
rt.program @kimi serve @step arena 671088640 scratch 1048576
rt.weight_slots @qa first 12 layers 0 to 3 step 1 bytes 147456 layout "panels<bf16, n = 48, k = 64>"
rt.plane_table @cache.latent index 0 layers 0 to 3 step 1 layer_bytes 8388608
rt.kernel @k_qa id 3 hash "9a3f" variants ["gemv", "tail", "large"]
func.func @step() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %x = rt.arena 4096
  %y = rt.arena 8192
  %s = rt.step
  %lg = rt.logits
  %t = rt.rows token
  %g = rt.grid %t slots 8 rows_per_item 64 items 24
  scf.for %l = %c0 to %c3 step %c1 {
    %w = rt.weight @qa[%l]
    %p = rt.plane @cache.latent[%l]
    rt.launch @k_qa grid(%g) args(%x, %w, %p, %s, %l, %y) : !rt.ptr, !rt.ptr, !rt.ptr, !rt.step, index, !rt.ptr
  }
  rt.sample
  return
}
