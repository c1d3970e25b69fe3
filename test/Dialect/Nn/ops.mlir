// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

// Row spaces are printed by a short name.
// CHECK-DAG: #tok = #nn.rows<token>
// CHECK-DAG: #slot = #nn.rows<slot, 8>
// CHECK-DAG: #recv = #nn.rows<recv, site = 12, max = 8192>
// CHECK-DAG: #subtree = #nn.rows<subtree, site = 13, max = 65536>
// CHECK-DAG: #message = #nn.rows<message, site = 12, max = 8192>

#tok = #nn.rows<token>
#soft = #nn.softmax<block = 64, split = by_position>
!x = tensor<?x64xf32, #tok>
!y = tensor<?x48xf32, #tok>
!w = tensor<?x16xf32, #nn.rows<output>>
!h = tensor<?x4x16xf32, #tok>
!kvh = tensor<?x2x16xf32, #tok>
!kv = !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
!kv1 = !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32, group = 1>

// CHECK: module @model attributes {nn.limits = #nn.limits<token = 2048, seq = 16, context = 8192, output = 64>, nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">}
module @model attributes {
  nn.limits = #nn.limits<token = 2048, seq = 16, context = 8192, output = 64>,
  nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">
} {
  // CHECK: nn.weights @embed "model.embed_tokens.weight" : tensor<512x64xbf16>
  nn.weights @embed "model.embed_tokens.weight" : tensor<512x64xbf16>
  // CHECK: nn.weights @ln "model.layers.{layer}.input_layernorm.weight" over (layer = 0 to 3) : tensor<64xbf16>
  nn.weights @ln "model.layers.{layer}.input_layernorm.weight" over (layer = 0 to 3) : tensor<64xbf16>
  // CHECK: stored blocks<f8E4M3FN, [128, 128], f32> : tensor<64x64xbf16>
  nn.weights @q "model.layers.{layer}.self_attn.q_proj.weight" over (layer = 0 to 3) stored blocks<f8E4M3FN, [128, 128], f32> : tensor<64x64xbf16>
  nn.weights @qb "model.layers.{layer}.self_attn.q_proj.bias" over (layer = 0 to 3) : tensor<64xbf16>
  nn.weights @k "model.layers.{layer}.self_attn.k_proj.weight" over (layer = 0 to 3) : tensor<2x16x64xbf16>
  // CHECK: over (layer = 0 to 4 step 2)
  nn.weights @even "model.layers.{layer}.extra.weight" over (layer = 0 to 4 step 2) : tensor<64xbf16>
  // CHECK: over (layer = 0 to 2 and 3 to 10 step 2) : tensor<64xbf16>
  nn.weights @dense "model.layers.{layer}.other.weight" over (layer = 0 to 2 and 3 to 10 step 2) : tensor<64xbf16>
  // CHECK: nn.weights @gu "model.layers.{layer}.mlp.{gate_proj|up_proj}.weight" over (layer = 0 to 3) : tensor<2x96x64xbf16>
  nn.weights @gu "model.layers.{layer}.mlp.{gate_proj|up_proj}.weight" over (layer = 0 to 3) : tensor<2x96x64xbf16>
  // CHECK: nn.weights @experts "model.layers.{layer}.mlp.experts.{expert}.{gate_proj|up_proj}.weight" over (layer = 1 to 3, expert = 0 to 384) : tensor<384x2x96x64xbf16>
  nn.weights @experts "model.layers.{layer}.mlp.experts.{expert}.{gate_proj|up_proj}.weight" over (layer = 1 to 3, expert = 0 to 384) : tensor<384x2x96x64xbf16>
  // CHECK: over (layer = 1 to 3, expert = 0 to 384) held 48 : tensor<384x96x64xbf16>
  nn.weights @divided "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight" over (layer = 1 to 3, expert = 0 to 384) held 48 : tensor<384x96x64xbf16>
  nn.weights @down "model.layers.{layer}.mlp.down_proj.weight" over (layer = 0 to 3) : tensor<64x96xbf16>
  // CHECK: view slice<dims = [4, 48, 64], dim = 1, from = 0, to = 32, transpose> : tensor<4x64x32xbf16>
  nn.weights @uk "model.layers.{layer}.self_attn.kv_b_proj.weight" over (layer = 0 to 3) view slice<dims = [4, 48, 64], dim = 1, from = 0, to = 32, transpose> : tensor<4x64x32xbf16>
  // CHECK: nn.constant_table @rope rope<theta = 50000.0, dims = 16, scaling = #nn.yarn<factor = 32.0, original = 4096, beta_fast = 1.0, beta_slow = 1.0, magnitude = 1.0, truncate = true>> : tensor<8192x2x8xf32>
  nn.constant_table @rope rope<theta = 5.0e4, dims = 16, scaling = #nn.yarn<factor = 32.0, original = 4096, beta_fast = 1.0, beta_slow = 1.0, magnitude = 1.0, truncate = true>> : tensor<8192x2x8xf32>
  // CHECK: scaling = #nn.frequencies<[1.000000e+00, 2.500000e-01]>
  nn.constant_table @rope5 rope<theta = 1.0e4, dims = 4, scaling = #nn.frequencies<[1.0, 0.25]>> : tensor<8192x2x2xf32>
  // CHECK: scaling = #nn.llama3<factor = 8.0, low = 1.0, high = 4.0, original = 8192>
  nn.constant_table @rope3 rope<theta = 5.0e5, dims = 16, scaling = #nn.llama3<factor = 8.0, low = 1.0, high = 4.0, original = 8192>> : tensor<8192x2x8xf32>
  // CHECK: scaling = #nn.linear_scaling<factor = 4.0>
  nn.constant_table @rope4 rope<theta = 1.0e4, dims = 16, scaling = #nn.linear_scaling<factor = 4.0>> : tensor<8192x2x8xf32>
  // CHECK: rope<theta = 10000.0, dims = 16> : tensor
  nn.constant_table @plain rope<theta = 1.0e4, dims = 16> : tensor<8192x2x8xf32>
  // CHECK: nn.pool @cache over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
  nn.pool @cache over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
  // CHECK: nn.pool @recent {{.*}} page 64 group 1
  nn.pool @recent over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 1

  // CHECK-LABEL: nn.layer @dense_layer(%layer: index, %x: tensor<?x64xf32, #tok>, %b: !nn.batch) -> tensor<?x64xf32, #tok> {
  nn.layer @dense_layer(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // CHECK: nn.rms_norm %x, @ln[%layer] eps 1.0e-05 : tensor<?x64xf32, #tok>
    %n = nn.rms_norm %x, @ln[%l] eps 1.0e-5 : !x
    // CHECK: nn.linear %{{.*}}, @q[%{{.*}}] bias @qb[%{{.*}}] order tree<8> : tensor<?x64xf32, #tok> -> tensor<?x64xf32, #tok>
    %q0 = nn.linear %n, @q[%l] bias @qb[%l] order tree<8> : !x -> !x
    // CHECK: nn.linear %{{.*}}, @k[%{{.*}}] : tensor
    %k = nn.linear %n, @k[%l] : !x -> !kvh
    // CHECK: nn.reshape %{{.*}} : tensor<?x64xf32, #tok> -> tensor<?x4x16xf32, #tok>
    %q1 = nn.reshape %q0 : !x -> !h
    // CHECK: nn.rotary %{{.*}}, @rope, %{{.*}} first 0 count 16 interleaved : tensor<?x4x16xf32, #tok>
    %q = nn.rotary %q1, @rope, %b first 0 count 16 interleaved : !h
    // CHECK: count 16 half : tensor
    %k1 = nn.rotary %k, @rope, %b first 0 count 16 half : !kvh
    // CHECK: nn.append @cache[%{{.*}}], %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x2x16xf32, #tok>, tensor<?x2x16xf32, #tok> -> !kv
    %kv = nn.append @cache[%l], %k1, %k, %b : !kvh, !kvh -> !kv
    // CHECK: nn.append @recent[%{{.*}}], {{.*}} -> !kv1
    %kv1 = nn.append @recent[%l], %k1, %k, %b : !kvh, !kvh -> !kv1
    // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 0.25 order softmax<block = 64, split = by_position> : tensor
    %o0 = nn.attention %q, %kv, %b scale 2.5e-1 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    // CHECK: scale 0.25 window 128 : tensor
    %o1 = nn.attention %q, %kv, %b scale 2.5e-1 window 128 : !h, !kv -> !h
    // CHECK: nn.attention {{.*}}, !kv1 -> tensor
    %o3 = nn.attention %q, %kv1, %b scale 2.5e-1 : !h, !kv1 -> !h
    %o2 = nn.reshape %o0 : !h -> !x
    // CHECK: nn.add %{{.*}}, %{{.*}} : tensor<?x64xf32, #tok>
    %y = nn.add %x, %o2 : !x
    // CHECK: nn.clip %{{.*}} limit {{8.*}} : tensor<?x64xf32, #tok>
    %y8 = nn.clip %y limit 8.0 : !x
    %g = nn.linear %y8, @gu[%l] order tree<1> : !x -> tensor<?x2x96xf32, #tok>
    // CHECK: nn.gated_act %{{.*}} act silu : tensor<?x2x96xf32, #tok> -> tensor<?x96xf32, #tok>
    %a = nn.gated_act %g act silu : tensor<?x2x96xf32, #tok> -> tensor<?x96xf32, #tok>
    %d = nn.linear %a, @down[%l] order tree<1> : tensor<?x96xf32, #tok> -> !x
    // CHECK: nn.split %{{.*}} : tensor<?x64xf32, #tok> -> tensor<?x48xf32, #tok>, tensor<?x16xf32, #tok>
    %c, %r = nn.split %d : !x -> tensor<?x48xf32, #tok>, tensor<?x16xf32, #tok>
    // CHECK: nn.capture %{{.*}}, %{{.*}} hidden layer %{{.*}} : tensor
    nn.capture %d, %b hidden layer %l : !x
    // CHECK: nn.yield %{{.*}} : tensor<?x64xf32, #tok>
    nn.yield %d : !x
  }

  // The first rows are carried, the others are read.
  // CHECK-LABEL: nn.layer @two(%layer: index, %x: tensor<?x64xf32, #tok>, %x_0: tensor<?x48xf32, #tok>, %read: tensor<?x16xf32, #output>, %b: !nn.batch) -> (tensor<?x64xf32, #tok>, tensor<?x48xf32, #tok>) attributes {mem.peak = 64 : i64} {
  nn.layer @two(%l: index, %x: !x, %y: !y, %w: !w, %b: !nn.batch) -> (!x, !y) attributes {mem.peak = 64 : i64} {
    // CHECK: nn.yield %x, %x_0 : tensor<?x64xf32, #tok>, tensor<?x48xf32, #tok>
    nn.yield %x, %y : !x, !y
  }

  nn.layer @moe_layer(%layer: index, %x: !x, %b: !nn.batch) -> !x {
    %n = nn.rms_norm %x, @ln[%layer] eps 1.0e-05 : !x
    %y = nn.add %x, %n : !x
    nn.yield %y : !x
  }

  // CHECK-LABEL: func.func @step
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK: nn.embed @embed, %{{.*}} : tensor<?x64xf32, #tok>
    %0 = nn.embed @embed, %b : !x
    // CHECK: %[[IDS:.*]] = nn.token_ids %{{.*}} : tensor<?x1xi32, #tok>
    %ids = nn.token_ids %b : tensor<?x1xi32, #nn.rows<token>>
    // CHECK: nn.lookup %[[IDS]], @embed : tensor<?x1xi32, #tok> -> tensor<?x64xf32, #tok>
    %looked_up = nn.lookup %ids, @embed : tensor<?x1xi32, #nn.rows<token>> -> !x
    // CHECK: nn.capture %{{.*}}, %{{.*}} embed : tensor
    nn.capture %0, %b embed : !x
    // CHECK: nn.layers %{{.*}}, %{{.*}} [@dense_layer[0 to 1], @moe_layer[1 to 3]] : tensor
    %1 = nn.layers %0, %b [@dense_layer[0 to 1], @moe_layer[1 to 3]] : !x
    // CHECK: nn.layers %{{.*}}, %{{.*}} [@dense_layer[0 to 1], @moe_layer[1 to 9]] of_stage : tensor
    %own = nn.layers %1, %b [@dense_layer[0 to 1], @moe_layer[1 to 9]] of_stage : !x
    // CHECK: nn.layers %{{.*}}, %{{.*}} [@dense_layer[0 to 1], (@moe_layer, @moe_layer, @dense_layer)[1 to 9]] : tensor
    %t = nn.layers %1, %b [@dense_layer[0 to 1], (@moe_layer, @moe_layer, @dense_layer)[1 to 9]] : !x
    // CHECK: nn.output_rows %{{.*}}, %{{.*}} : tensor<?x64xf32, #tok> -> tensor<?x64xf32, #output>
    %2 = nn.output_rows %t, %b : !x -> tensor<?x64xf32, #nn.rows<output>>
    %3 = nn.linear %2, @embed : tensor<?x64xf32, #nn.rows<output>> -> tensor<?x512xf32, #nn.rows<output>>
    // CHECK: %[[BEST:.*]] = nn.block_argmax %[[LOGITS:.*]] block 96 : tensor<?x512xf32, #output> -> tensor<?x6xi32, #output>
    %best = nn.block_argmax %3 block 96 : tensor<?x512xf32, #nn.rows<output>> -> tensor<?x6xi32, #nn.rows<output>>
    // CHECK: nn.greedy_sample %[[BEST]] of %[[LOGITS]], %{{.*}} : tensor<?x6xi32, #output>, tensor<?x512xf32, #output>
    nn.greedy_sample %best of %3, %b : tensor<?x6xi32, #nn.rows<output>>, tensor<?x512xf32, #nn.rows<output>>
    // CHECK: nn.sample %{{.*}}, %{{.*}} : tensor<?x512xf32, #output>
    nn.sample %3, %b : tensor<?x512xf32, #nn.rows<output>>
    return
  }

  // CHECK-LABEL: func.func @carry
  func.func @carry(%t: !x, %y: !y, %w: !w, %b: !nn.batch) -> (!x, !y) {
    // CHECK: %[[X:.*]]:2 = nn.layers %{{.*}}, %{{.*}} reads %{{.*}}, %b [@two[0 to 4]] : tensor<?x64xf32, #tok>, tensor<?x48xf32, #tok> reads tensor<?x16xf32, #output>
    %2:2 = nn.layers %t, %y reads %w, %b [@two[0 to 4]] : !x, !y reads !w
    // CHECK: return %[[X]]#0, %[[X]]#1
    return %2#0, %2#1 : !x, !y
  }

  // In a kernel a weight is a value. An alias of an order is accepted.
  // CHECK-LABEL: func.func @weight_value
  func.func @weight_value(%x: !x, %w: tensor<48x64xbf16>, %wb: tensor<48xbf16>, %q: !h, %kv: !kv, %b: !nn.batch) {
    // CHECK: nn.linear %{{.*}}, %{{.*}} : tensor<48x64xbf16> bias %{{.*}} : tensor<48xbf16> order tree<2> : tensor
    %0 = nn.linear %x, %w : tensor<48x64xbf16> bias %wb : tensor<48xbf16> order tree<2> : !x -> tensor<?x48xf32, #tok>
    // CHECK: order softmax<block = 64, split = by_position> : tensor
    %1 = nn.attention %q, %kv, %b scale 2.5e-1 order #soft : !h, !kv -> !h
    return
  }

  // CHECK-LABEL: func.func @row_spaces
  // CHECK-SAME: #slot
  // CHECK-SAME: #recv
  // CHECK-SAME: #subtree
  // CHECK-SAME: #message
  // CHECK-SAME: #slot1
  func.func @row_spaces(%0: tensor<?x8xf32, #nn.rows<slot, 8>>, %1: tensor<?x8xf32, #nn.rows<recv, site = 12, max = 8192>>,
                        %2: tensor<?x8xf32, #nn.rows<subtree, site = 13, max = 65536>>, %3: tensor<?x8xf32, #nn.rows<seq>>,
                        %4: tensor<?x320xi8, #nn.rows<message, site = 12, max = 8192>>,
                        %5: tensor<?x8xf32, #nn.rows<slot, 8, site = 12, max = 8192>>) {
    return
  }
}
