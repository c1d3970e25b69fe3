// RUN: k2c-opt %s --shard-attention | FileCheck %s
// RUN: k2c-opt %s --shard-attention --verify-form=form=distributed -o /dev/null
// RUN: k2c-opt %s --shard-attention --remarks-filter=shard-attention 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A second run changes nothing, and neither does the pass where each rank has a step of its own.
// RUN: k2c-opt %s --shard-attention -o %t.once
// RUN: k2c-opt %t.once --shard-attention | diff %t.once -
// RUN: sed 's/layout = "tp=2"/layout = "dp=2"/' %s | k2c-opt -o %t.dp
// RUN: k2c-opt %t.dp --shard-attention | diff %t.dp -
// RUN: sed 's/layout = "tp=2"/layout = "dp=1"/; s/ranks = 2/ranks = 1/' %s | k2c-opt -o %t.one
// RUN: k2c-opt %t.one --shard-attention | diff %t.one -

// Of two stages, each has such groups: sites of stages are numbered behind those of slices.
// RUN: sed 's/layout = "tp=2", expanded_from = -1/layout = "tp=2,pp=2", expanded_from = -1, stages = [0, 1, 2]/; s/ranks = 2/ranks = 4/' %s | k2c-opt --shard-attention --partition-stages --verify-form=form=distributed | FileCheck %s --check-prefix=STAGES
// STAGES: nn.limits = #nn.limits<token = 8 of 16, seq = 4, context = 64, output = 4>
// STAGES: dist.receive %{{.*}} site 6 : tensor<?x64xf32, #entering> -> tensor<?x64xf32, #tok>
// STAGES: dist.send %{{.*}} site 7 to 6 :

!x = tensor<?x64xf32, #nn.rows<token>>
!q = tensor<?x8x256xf32, #nn.rows<token>>
!k = tensor<?x2x256xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 2 x 256 x f32, v = 2 x 256 x f32>
!o = tensor<?x2048xf32, #nn.rows<token>>
!gu = tensor<?x2x1024xf32, #nn.rows<token>>
!a = tensor<?x1024xf32, #nn.rows<token>>

// Ranks have half of the 16 rows of a step each, and those of all for what is divided.
// CHECK-DAG: #gathered = #nn.rows<gathered>
// CHECK-DAG: nn.limits = #nn.limits<token = 8 of 16, seq = 4, context = 64, output = 4>
// REMARK: parts{{.*}}"2 of attention and MLPs in parts on 2 ranks", divided=2, ranks=2, whole=0
// REMARK: parts{{.*}}"1 of attention and MLPs in parts on 2 ranks, 2 whole on each, as leaves do not come out even, or have a bias", divided=1, ranks=2, whole=2
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>,
                   dist.topology = #dist.topology<"pair", ranks = 2>,
                   nn.limits = #nn.limits<token = 16, seq = 4, context = 64, output = 4>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>} {
  // Heads are rows of what is before attention, with its biases, and columns of what is behind it. All heads have the
  // norm that one has, and all ranks what is outside of layers.
  // CHECK: nn.weights @embed "embed" : tensor
  nn.weights @embed "embed" : tensor<100x64xbf16>
  // CHECK: nn.weights @norm {{.*}}(layer = 0 to 2) : tensor
  nn.weights @norm "{layer}.norm" over (layer = 0 to 2) : tensor<64xbf16>
  // CHECK: nn.weights @q {{.*}}(layer = 0 to 2) parts 2 along 0 : tensor<8x256x64xbf16>
  nn.weights @q "{layer}.q" over (layer = 0 to 2) : tensor<8x256x64xbf16>
  // CHECK: nn.weights @q_bias {{.*}}(layer = 0 to 2) parts 2 along 0 : tensor<8x256xbf16>
  nn.weights @q_bias "{layer}.q_bias" over (layer = 0 to 2) : tensor<8x256xbf16>
  // CHECK: nn.weights @q_norm {{.*}}(layer = 0 to 2) : tensor
  nn.weights @q_norm "{layer}.q_norm" over (layer = 0 to 2) : tensor<256xbf16>
  // CHECK: nn.weights @k {{.*}}(layer = 0 to 2) parts 2 along 0 : tensor<2x256x64xbf16>
  nn.weights @k "{layer}.k" over (layer = 0 to 2) : tensor<2x256x64xbf16>
  // CHECK: nn.weights @v {{.*}}(layer = 0 to 2) parts 2 along 0 : tensor<2x256x64xbf16>
  nn.weights @v "{layer}.v" over (layer = 0 to 2) : tensor<2x256x64xbf16>
  // CHECK: nn.weights @o {{.*}}(layer = 0 to 2) parts 2 along 1 : tensor<64x2048xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x2048xbf16>
  // Columns of an MLP are rows of both alternatives.
  // CHECK: nn.weights @gate_up {{.*}}(layer = 0 to 1) parts 2 along 1 : tensor<2x1024x64xbf16>
  nn.weights @gate_up "{layer}.{gate|up}" over (layer = 0 to 1) : tensor<2x1024x64xbf16>
  // CHECK: nn.weights @down {{.*}}(layer = 0 to 1) parts 2 along 1 : tensor<64x1024xbf16>
  nn.weights @down "{layer}.down" over (layer = 0 to 1) : tensor<64x1024xbf16>
  // CHECK: nn.weights @narrow_gate_up {{.*}}(layer = 1 to 2) : tensor
  nn.weights @narrow_gate_up "{layer}.{gate|up}" over (layer = 1 to 2) : tensor<2x1000x64xbf16>
  // CHECK: nn.weights @narrow_down {{.*}}(layer = 1 to 2) : tensor
  nn.weights @narrow_down "{layer}.down" over (layer = 1 to 2) : tensor<64x1000xbf16>
  // CHECK: nn.weights @small_gate_up {{.*}}(layer = 1 to 2) : tensor
  nn.weights @small_gate_up "{layer}.shared.{gate|up}" over (layer = 1 to 2) : tensor<2x256x64xbf16>
  // CHECK: nn.weights @small_down {{.*}}(layer = 1 to 2) : tensor
  nn.weights @small_down "{layer}.shared.down" over (layer = 1 to 2) : tensor<64x256xbf16>
  nn.constant_table @rope rope<theta = 1.0e4, dims = 256> : tensor<64x2x128xf32>
  // A rank caches its own heads, of layers that share the pool alike.
  // CHECK: nn.pool @cache over (layer = 0 to 2) planes (k = 1 x 256 x f32, v = 1 x 256 x f32)
  nn.pool @cache over (layer = 0 to 2) planes (k = 2 x 256 x f32, v = 2 x 256 x f32) page 64 group 0

  // CHECK-LABEL: nn.layer @grouped(
  // CHECK-SAME: %[[L:.*]]: index, %[[X:.*]]: tensor<?x64xf32, #tok>, %[[B:.*]]: !nn.batch) -> tensor<?x64xf32, #tok> {
  nn.layer @grouped(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // The norm is of a slice, and its rows are gathered once, for queries, keys and values.
    // CHECK-NEXT: %[[N:.*]] = nn.rms_norm %[[X]], @norm[%[[L]]] eps 1.0e-06 : tensor<?x64xf32, #tok>
    // CHECK-NEXT: %[[ALL:.*]] = dist.gather_slices %[[N]] site 0 : tensor<?x64xf32, #tok> -> tensor<?x64xf32, #gathered>
    %n = nn.rms_norm %x, @norm[%l] eps 1.0e-06 : !x
    // Four of eight heads, and one of two that are cached.
    // CHECK-NEXT: %[[Q:.*]] = nn.linear %[[ALL]], @q[%[[L]]] bias @q_bias[%[[L]]] order tree<1> : tensor<?x64xf32, #gathered> -> tensor<?x4x256xf32, #gathered>
    %q0 = nn.linear %n, @q[%l] bias @q_bias[%l] order tree<1> : !x -> !q
    // CHECK-NEXT: %[[QN:.*]] = nn.rms_norm %[[Q]], @q_norm[%[[L]]] eps 1.0e-06 : tensor<?x4x256xf32, #gathered>
    %q1 = nn.rms_norm %q0, @q_norm[%l] eps 1.0e-06 : !q
    // CHECK-NEXT: %[[QR:.*]] = nn.rotary %[[QN]], @rope, %[[B]] first 0 count 256 half : tensor<?x4x256xf32, #gathered>
    %q = nn.rotary %q1, @rope, %b first 0 count 256 half : !q
    // CHECK-NEXT: %[[K:.*]] = nn.linear %[[ALL]], @k[%[[L]]] order tree<1> : tensor<?x64xf32, #gathered> -> tensor<?x1x256xf32, #gathered>
    %k0 = nn.linear %n, @k[%l] order tree<1> : !x -> !k
    // CHECK-NEXT: %[[KR:.*]] = nn.rotary %[[K]], @rope, %[[B]]
    %k = nn.rotary %k0, @rope, %b first 0 count 256 half : !k
    // CHECK-NEXT: %[[V:.*]] = nn.linear %[[ALL]], @v[%[[L]]]
    %v0 = nn.linear %n, @v[%l] order tree<1> : !x -> !k
    // CHECK-NEXT: %[[VC:.*]] = nn.clip %[[V]] limit 8.0{{.*}} : tensor<?x1x256xf32, #gathered>
    %v = nn.clip %v0 limit 8.0 : !k
    // CHECK-NEXT: %[[KV:.*]] = nn.append @cache[%[[L]]], %[[KR]], %[[VC]], %[[B]]
    %kv = nn.append @cache[%l], %k, %v, %b : !k, !k -> !kv
    // CHECK-NEXT: %[[A:.*]] = nn.attention %[[QR]], %[[KV]], %[[B]] scale 0.0625 order softmax<block = 64, split = by_position> : tensor<?x4x256xf32, #gathered>, !kv -> tensor<?x4x256xf32, #gathered>
    %a = nn.attention %q, %kv, %b scale 6.25e-2 order softmax<block = 64, split = by_position> : !q, !kv -> !q
    // CHECK-NEXT: %[[PART:.*]] = nn.reshape %[[A]] : tensor<?x4x256xf32, #gathered> -> tensor<?x1024xf32, #gathered>
    %o = nn.reshape %a : !q -> !o
    // The leaves of a rank are four of eight. What it has of the sum goes where the row is carried.
    // CHECK-NEXT: %[[P:.*]] = nn.linear %[[PART]], @o[%[[L]]] order tree<4> : tensor<?x1024xf32, #gathered> -> tensor<?x64xf32, #gathered>
    // CHECK-NEXT: %[[P0:.*]], %[[P1:.*]] = dist.scatter_slices %[[P]] site 1 : tensor<?x64xf32, #gathered> -> tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok>
    // CHECK-NEXT: %[[Y:.*]] = nn.add_partials %[[P0]], %[[P1]] : tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok> -> tensor<?x64xf32, #tok>
    %y = nn.linear %o, @o[%l] order tree<8> : !o -> !x
    // CHECK-NEXT: %[[Z:.*]] = nn.add %[[X]], %[[Y]] : tensor<?x64xf32, #tok>
    %z = nn.add %x, %y : !x
    // CHECK-NEXT: nn.capture %[[Z]]
    nn.capture %z, %b hidden layer %l : !x
    // CHECK-NEXT: %[[M:.*]] = nn.rms_norm %[[Z]]
    // CHECK-NEXT: %[[ALLM:.*]] = dist.gather_slices %[[M]] site 2 :
    %m = nn.rms_norm %z, @norm[%l] eps 1.0e-06 : !x
    // CHECK-NEXT: %[[GU:.*]] = nn.linear %[[ALLM]], @gate_up[%[[L]]] order tree<1> : tensor<?x64xf32, #gathered> -> tensor<?x2x512xf32, #gathered>
    %gu = nn.linear %m, @gate_up[%l] order tree<1> : !x -> !gu
    // CHECK-NEXT: %[[ACT:.*]] = nn.gated_act %[[GU]] act silu : tensor<?x2x512xf32, #gathered> -> tensor<?x512xf32, #gathered>
    %act = nn.gated_act %gu act silu : !gu -> !a
    // CHECK-NEXT: %[[D:.*]] = nn.linear %[[ACT]], @down[%[[L]]] order tree<1> : tensor<?x512xf32, #gathered> -> tensor<?x64xf32, #gathered>
    // CHECK-NEXT: %[[D0:.*]], %[[D1:.*]] = dist.scatter_slices %[[D]] site 3 :
    // CHECK-NEXT: %[[S:.*]] = nn.add_partials %[[D0]], %[[D1]]
    %down = nn.linear %act, @down[%l] order tree<2> : !a -> !x
    // CHECK-NEXT: %[[R:.*]] = nn.add %[[Z]], %[[S]]
    // CHECK-NEXT: nn.yield %[[R]]
    %r = nn.add %z, %down : !x
    nn.yield %r : !x
  }

  // Of 1,000 columns the second leaf is shorter than the first, and 256 are one leaf: these MLPs are of slices.
  // CHECK-LABEL: nn.layer @uneven(
  nn.layer @uneven(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // CHECK: dist.gather_slices %{{.*}} site 4 :
    %q = nn.linear %x, @q[%l] order tree<1> : !x -> !q
    %k = nn.linear %x, @k[%l] order tree<1> : !x -> !k
    %v = nn.linear %x, @v[%l] order tree<1> : !x -> !k
    %kv = nn.append @cache[%l], %k, %v, %b : !k, !k -> !kv
    %a = nn.attention %q, %kv, %b scale 6.25e-2 order softmax<block = 64, split = by_position> : !q, !kv -> !q
    %o = nn.reshape %a : !q -> !o
    // CHECK: dist.scatter_slices %{{.*}} site 5 :
    // CHECK-NEXT: nn.add_partials
    %y = nn.linear %o, @o[%l] order tree<8> : !o -> !x
    // CHECK-NEXT: nn.linear %{{.*}}, @narrow_gate_up[%{{.*}}] order tree<1> : tensor<?x64xf32, #tok> -> tensor<?x2x1000xf32, #tok>
    %gu = nn.linear %y, @narrow_gate_up[%l] order tree<1> : !x -> tensor<?x2x1000xf32, #nn.rows<token>>
    // CHECK-NEXT: nn.gated_act
    %act = nn.gated_act %gu act silu : tensor<?x2x1000xf32, #nn.rows<token>> -> tensor<?x1000xf32, #nn.rows<token>>
    // CHECK-NEXT: nn.linear %{{.*}}, @narrow_down[%{{.*}}] order tree<2> : tensor<?x1000xf32, #tok> -> tensor<?x64xf32, #tok>
    %down = nn.linear %act, @narrow_down[%l] order tree<2> : tensor<?x1000xf32, #nn.rows<token>> -> !x
    // CHECK-NEXT: nn.linear %{{.*}}, @small_gate_up[
    %sgu = nn.linear %y, @small_gate_up[%l] order tree<1> : !x -> tensor<?x2x256xf32, #nn.rows<token>>
    // CHECK-NEXT: nn.gated_act
    %sact = nn.gated_act %sgu act silu : tensor<?x2x256xf32, #nn.rows<token>> -> tensor<?x256xf32, #nn.rows<token>>
    // CHECK-NEXT: nn.linear %{{.*}}, @small_down[%{{.*}}] order tree<1> : tensor<?x256xf32, #tok> -> tensor<?x64xf32, #tok>
    %sdown = nn.linear %sact, @small_down[%l] order tree<1> : tensor<?x256xf32, #nn.rows<token>> -> !x
    // CHECK-NEXT: nn.add
    // CHECK-NEXT: nn.yield
    %r = nn.add %down, %sdown : !x
    nn.yield %r : !x
  }

  // What is outside of layers is of slices.
  // CHECK-LABEL: func.func @step
  // CHECK-NOT: gather_slices
  // CHECK: nn.layers %{{.*}}, %{{.*}} [@grouped[0 to 1], @uneven[1 to 2]] : tensor<?x64xf32, #tok>
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = nn.embed @embed, %b : !x
    %1 = nn.layers %0, %b [@grouped[0 to 1], @uneven[1 to 2]] : !x
    return
  }
}
