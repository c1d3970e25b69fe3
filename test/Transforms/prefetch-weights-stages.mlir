// RUN: k2c-opt %s --prefetch-weights | FileCheck %s

// In the loop over a stage's layers the next layer's weights follow, of the run's last layer its own: no address is
// behind the slots of the family. So it is where a stage has no layer of the run, which then begins with its end.
// CHECK: func.func private @layer(%{{.*}}: index, %[[F:.*]]: !rt.ptr, %[[E:.*]]: !rt.ptr)
// CHECK: rt.prefetch %[[F]], %[[E]]
// CHECK: func.func @step
// CHECK: %[[BEGIN:.*]], %{{.*}} = rt.stage_layers 0 to 61
// CHECK: %[[FIRST:.*]] = arith.minsi %[[BEGIN]], %{{.*}} : index
// CHECK: rt.weight @w.panels[%[[FIRST]]]
// CHECK: rt.prefetch
// CHECK: scf.for %[[L:.*]] = %{{.*}} to
// CHECK: %[[NEXT:.*]] = arith.addi %[[L]], %{{.*}} : index
// CHECK: %[[LAST:.*]] = arith.constant 60 : index
// CHECK: %[[INDEX:.*]] = arith.minsi %[[NEXT]], %[[LAST]] : index
// CHECK: %[[W:.*]] = rt.weight @w.panels[%[[INDEX]]]
// CHECK: %[[FROM:.*]], %[[END:.*]] = rt.share %[[W]]
// CHECK: call @layer(%[[L]], %[[FROM]], %[[END]])
module attributes {kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>} {
  nn.weights @w "{layer}.w" over (layer = 0 to 61) : tensor<64x64xbf16>
  rt.weight_slots @w.panels of @w first 0 count 61 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 64, k = 64> share items 2 item_bytes 4096
  rt.kernel @linear id 0 hash "k2c_aa" variants ["all"] streams 1 items 2 bytes 4096
  func.func private @layer(%l: index) {
    %x = rt.arena 0 bytes 64
    %w = rt.weight @w.panels[%l]
    %rows = rt.rows token
    %g = rt.grid %rows slots 1 rows_per_item 64 items 2
    rt.launch @linear grid(%g) args(%x, %w) : !rt.ptr, !rt.ptr
    return
  }
  func.func @step() {
    %from, %end = rt.stage_layers 0 to 61
    %one = arith.constant 1 : index
    scf.for %l = %from to %end step %one {
      func.call @layer(%l) : (index) -> ()
    }
    return
  }
  rt.program @program entries {serve = @step} arena 8192 scratch 512
}
