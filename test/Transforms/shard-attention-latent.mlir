// RUN: k2c-opt %s --shard-attention | FileCheck %s
// RUN: k2c-opt %s --shard-attention --verify-form=form=distributed -o /dev/null
// RUN: k2c-opt %s --shard-attention -o %t.once
// RUN: k2c-opt %t.once --shard-attention | diff %t.once -

// Latents are of no head: each rank caches those of all rows, and has a part of the heads that read them.
!x = tensor<?x64xf32, #nn.rows<token>>
!qa = tensor<?x24xf32, #nn.rows<token>>
!q = tensor<?x8x48xf32, #nn.rows<token>>
!qn = tensor<?x8x32xf32, #nn.rows<token>>
!qr = tensor<?x8x16xf32, #nn.rows<token>>
!ql = tensor<?x8x40xf32, #nn.rows<token>>
!v = tensor<?x8x128xf32, #nn.rows<token>>
!c = tensor<?x40xf32, #nn.rows<token>>
!r = tensor<?x16xf32, #nn.rows<token>>
!kv = !mla.view<latent = 40 x f32, rope = 16 x f32>
!o = tensor<?x1024xf32, #nn.rows<token>>
// Of 15 rows a rank carries 8 at most.
// CHECK: nn.limits = #nn.limits<token = 8 of 15, seq = 4, context = 64, output = 4>
module attributes {dist.plan = #dist.plan<layout = "ep=2,tp=2", expanded_from = 171>,
                   dist.topology = #dist.topology<"pair", ranks = 2>,
                   nn.limits = #nn.limits<token = 15, seq = 4, context = 64, output = 4>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  // What makes queries and latents from rows, and the norms there, are whole.
  // CHECK: nn.weights @q_a {{.*}}(layer = 0 to 2) : tensor
  nn.weights @q_a "{layer}.q_a" over (layer = 0 to 2) : tensor<24x64xbf16>
  // CHECK: nn.weights @q_a_norm {{.*}}(layer = 0 to 2) : tensor
  nn.weights @q_a_norm "{layer}.q_a_norm" over (layer = 0 to 2) : tensor<24xbf16>
  // CHECK: nn.weights @q_b {{.*}}(layer = 0 to 2) parts 2 along 0 : tensor<8x48x24xbf16>
  nn.weights @q_b "{layer}.q_b" over (layer = 0 to 2) : tensor<8x48x24xbf16>
  // CHECK: nn.weights @kv_a {{.*}}(layer = 0 to 2) : tensor
  nn.weights @kv_a "{layer}.kv_a" over (layer = 0 to 2) : tensor<56x64xbf16>
  // CHECK: nn.weights @kv_a_norm {{.*}}(layer = 0 to 2) : tensor
  nn.weights @kv_a_norm "{layer}.kv_a_norm" over (layer = 0 to 2) : tensor<40xbf16>
  // Slices of kv_b are divided by heads, each in the order that its form reads.
  // CHECK: nn.weights @uk {{.*}}to = 32> parts 2 along 0 : tensor<8x32x40xbf16>
  nn.weights @uk "{layer}.kv_b" over (layer = 0 to 2) view slice<dims = [8, 160, 40], dim = 1, from = 0, to = 32> : tensor<8x32x40xbf16>
  // CHECK: nn.weights @uk_t {{.*}}to = 32, transpose> parts 2 along 0 : tensor<8x40x32xbf16>
  nn.weights @uk_t "{layer}.kv_b" over (layer = 0 to 2) view slice<dims = [8, 160, 40], dim = 1, from = 0, to = 32, transpose> : tensor<8x40x32xbf16>
  // CHECK: nn.weights @uv {{.*}}to = 160> parts 2 along 0 : tensor<8x128x40xbf16>
  nn.weights @uv "{layer}.kv_b" over (layer = 0 to 2) view slice<dims = [8, 160, 40], dim = 1, from = 32, to = 160> : tensor<8x128x40xbf16>
  // CHECK: nn.weights @o {{.*}}(layer = 0 to 2) parts 2 along 1 : tensor<64x1024xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x1024xbf16>
  nn.constant_table @rope rope<theta = 1.0e4, dims = 16> : tensor<64x2x8xf32>
  // CHECK: nn.pool @cache over (layer = 0 to 2) planes (latent = 40 x f32, rope = 16 x f32)
  nn.pool @cache over (layer = 0 to 2) planes (latent = 40 x f32, rope = 16 x f32) page 64 group 0

  // CHECK-LABEL: nn.layer @latent(
  // CHECK-SAME: %[[L:.*]]: index, %[[X:.*]]: tensor<?x64xf32, #tok>, %[[B:.*]]: !nn.batch)
  nn.layer @latent(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // Half of the rows are projected and normalised; these are gathered, for half of the heads.
    // CHECK-NEXT: %[[QA:.*]] = nn.linear %[[X]], @q_a[%[[L]]] order tree<1> : tensor<?x64xf32, #tok> -> tensor<?x24xf32, #tok>
    %qa = nn.linear %x, @q_a[%l] order tree<1> : !x -> !qa
    // CHECK-NEXT: %[[QAN:.*]] = nn.rms_norm %[[QA]], @q_a_norm[%[[L]]] eps 1.0e-06 : tensor<?x24xf32, #tok>
    // CHECK-NEXT: %[[QALL:.*]] = dist.gather_slices %[[QAN]] site 0 : tensor<?x24xf32, #tok> -> tensor<?x24xf32, #gathered>
    %qan = nn.rms_norm %qa, @q_a_norm[%l] eps 1.0e-06 : !qa
    // CHECK-NEXT: %[[QB:.*]] = nn.linear %[[QALL]], @q_b[%[[L]]] order tree<1> : tensor<?x24xf32, #gathered> -> tensor<?x4x48xf32, #gathered>
    %qb = nn.linear %qan, @q_b[%l] order tree<1> : !qa -> !q
    // CHECK-NEXT: %[[Q:.*]] = nn.rotary %[[QB]], @rope, %[[B]] first 32 count 16 interleaved : tensor<?x4x48xf32, #gathered>
    %q = nn.rotary %qb, @rope, %b first 32 count 16 interleaved : !q
    // Latents and rotary keys are gathered as one, behind what projects them.
    // CHECK-NEXT: %[[KVA:.*]] = nn.linear %[[X]], @kv_a[%[[L]]] order tree<1> : tensor<?x64xf32, #tok> -> tensor<?x56xf32, #tok>
    // CHECK-NEXT: %[[KVALL:.*]] = dist.gather_slices %[[KVA]] site 1 : tensor<?x56xf32, #tok> -> tensor<?x56xf32, #gathered>
    %kva = nn.linear %x, @kv_a[%l] order tree<1> : !x -> tensor<?x56xf32, #nn.rows<token>>
    // CHECK-NEXT: %[[S:.*]]:2 = nn.split %[[KVALL]] : tensor<?x56xf32, #gathered> -> tensor<?x40xf32, #gathered>, tensor<?x16xf32, #gathered>
    %c0, %r0 = nn.split %kva : tensor<?x56xf32, #nn.rows<token>> -> !c, !r
    // CHECK-NEXT: %[[C:.*]] = nn.rms_norm %[[S]]#0, @kv_a_norm[%[[L]]] eps 1.0e-06 : tensor<?x40xf32, #gathered>
    %c = nn.rms_norm %c0, @kv_a_norm[%l] eps 1.0e-06 : !c
    // CHECK-NEXT: %[[R:.*]] = nn.rotary %[[S]]#1, @rope, %[[B]] first 0 count 16 interleaved : tensor<?x16xf32, #gathered>
    %r = nn.rotary %r0, @rope, %b first 0 count 16 interleaved : !r
    // CHECK-NEXT: %[[KV:.*]] = mla.append @cache[%[[L]]], %[[C]], %[[R]], %[[B]] : tensor<?x40xf32, #gathered>, tensor<?x16xf32, #gathered> -> !kv
    %kv = mla.append @cache[%l], %c, %r, %b : !c, !r -> !kv
    // The absorbed form, of four heads.
    // CHECK-NEXT: %[[P:.*]]:2 = nn.split %[[Q]] : tensor<?x4x48xf32, #gathered> -> tensor<?x4x32xf32, #gathered>, tensor<?x4x16xf32, #gathered>
    %qn, %qr = nn.split %q : !q -> !qn, !qr
    // CHECK-NEXT: %[[QL:.*]] = mla.absorb_query %[[P]]#0, @uk_t[%[[L]]], %[[B]] order tree<1> : tensor<?x4x32xf32, #gathered> -> tensor<?x4x40xf32, #gathered>
    %ql = mla.absorb_query %qn, @uk_t[%l], %b order tree<1> : !qn -> !ql
    // CHECK-NEXT: %[[OL:.*]] = mla.attention_absorbed %[[QL]], %[[P]]#1, %[[KV]], %[[B]] scale 0.125
    %ol = mla.attention_absorbed %ql, %qr, %kv, %b scale 0.125 order softmax<block = 64, split = by_position> : !ql, !qr, !kv -> !ql
    // CHECK-NEXT: %[[OA:.*]] = mla.expand_output %[[OL]], @uv[%[[L]]], %[[B]] order tree<1> : tensor<?x4x40xf32, #gathered> -> tensor<?x4x128xf32, #gathered>
    %oa = mla.expand_output %ol, @uv[%l], %b order tree<1> : !ql -> !v
    // The expanded form, of the same heads.
    // CHECK-NEXT: %[[OE:.*]] = mla.attention_expanded %[[Q]], %[[KV]], @uk[%[[L]]], @uv[%[[L]]], %[[B]] scale 0.125 {{.*}} : tensor<?x4x48xf32, #gathered>, !kv -> tensor<?x4x128xf32, #gathered>
    %oe = mla.attention_expanded %q, %kv, @uk[%l], @uv[%l], %b scale 0.125 order softmax<block = 64, split = by_position> : !q, !kv -> !v
    // CHECK-NEXT: %[[M:.*]] = mla.merge_forms %[[OA]], %[[OE]], %[[B]] : tensor<?x4x128xf32, #gathered>
    %m = mla.merge_forms %oa, %oe, %b : !v
    // CHECK-NEXT: %[[PART:.*]] = nn.reshape %[[M]] : tensor<?x4x128xf32, #gathered> -> tensor<?x512xf32, #gathered>
    %o = nn.reshape %m : !v -> !o
    // CHECK-NEXT: %[[SUM:.*]] = nn.linear %[[PART]], @o[%[[L]]] order tree<1> : tensor<?x512xf32, #gathered> -> tensor<?x64xf32, #gathered>
    // CHECK-NEXT: %[[S0:.*]], %[[S1:.*]] = dist.scatter_slices %[[SUM]] site 2 :
    // CHECK-NEXT: %[[Y:.*]] = nn.add_partials %[[S0]], %[[S1]]
    // CHECK-NEXT: nn.yield %[[Y]]
    %y = nn.linear %o, @o[%l] order tree<2> : !o -> !x
    nn.yield %y : !x
  }

  // Where all segments run expanded, nothing is absorbed, and sites go on from those of the layer before.
  // CHECK-LABEL: nn.layer @expanded(
  // CHECK: dist.gather_slices %{{.*}} site 3 :
  // CHECK: dist.gather_slices %{{.*}} site 4 :
  // CHECK: mla.attention_expanded
  // CHECK-NEXT: nn.reshape
  // CHECK-NEXT: nn.linear
  // CHECK-NEXT: dist.scatter_slices %{{.*}} site 5 :
  nn.layer @expanded(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %qa = nn.linear %x, @q_a[%l] order tree<1> : !x -> !qa
    %q = nn.linear %qa, @q_b[%l] order tree<1> : !qa -> !q
    %kva = nn.linear %x, @kv_a[%l] order tree<1> : !x -> tensor<?x56xf32, #nn.rows<token>>
    %c, %r = nn.split %kva : tensor<?x56xf32, #nn.rows<token>> -> !c, !r
    %kv = mla.append @cache[%l], %c, %r, %b : !c, !r -> !kv
    %oe = mla.attention_expanded %q, %kv, @uk[%l], @uv[%l], %b scale 0.125 order softmax<block = 64, split = by_position> : !q, !kv -> !v
    %o = nn.reshape %oe : !v -> !o
    %y = nn.linear %o, @o[%l] order tree<2> : !o -> !x
    nn.yield %y : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = nn.embed @embed, %b : !x
    %1 = nn.layers %0, %b [@latent[0 to 1], @expanded[1 to 2]] : !x
    return
  }
}
