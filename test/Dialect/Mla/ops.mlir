// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
!kv1 = !mla.view<latent = 64 x f32, rope = 16 x f32, group = 1>

nn.weights @kvb "layers.{layer}.kv_b_proj.weight" over (layer = 0 to 3) : tensor<4x64x64xbf16>
nn.weights @uk "layers.{layer}.kv_b_proj.weight" over (layer = 0 to 3) view slice<dims = [4, 64, 64], dim = 1, from = 0, to = 32> : tensor<4x32x64xbf16>
nn.weights @uk_t "layers.{layer}.kv_b_proj.weight" over (layer = 0 to 3) view slice<dims = [4, 64, 64], dim = 1, from = 0, to = 32, transpose> : tensor<4x64x32xbf16>
nn.weights @uv "layers.{layer}.kv_b_proj.weight" over (layer = 0 to 3) view slice<dims = [4, 64, 64], dim = 1, from = 32, to = 64> : tensor<4x32x64xbf16>
nn.pool @cache over (layer = 0 to 3) planes (latent = 64 x f32, rope = 16 x f32) page 64 group 0
nn.pool @recent over (layer = 0 to 3) planes (latent = 64 x f32, rope = 16 x f32) page 64 group 1

// CHECK-LABEL: func.func @whole
func.func @whole(%l: index, %q: !q, %c: tensor<?x64xf32, #tok>, %kr: tensor<?x16xf32, #tok>, %b: !nn.batch) -> !qn {
  // CHECK: mla.append @cache[%{{.*}}], %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32, #tok>, tensor<?x16xf32, #tok> -> !kv
  %kv = mla.append @cache[%l], %c, %kr, %b : tensor<?x64xf32, #tok>, tensor<?x16xf32, #tok> -> !kv
  // CHECK: mla.append @recent[%{{.*}}], {{.*}} -> !kv1
  %kv1 = mla.append @recent[%l], %c, %kr, %b : tensor<?x64xf32, #tok>, tensor<?x16xf32, #tok> -> !kv1
  // CHECK: mla.attention %{{.*}}, %{{.*}}, @kvb[%{{.*}}], %{{.*}} nope 32 rope 16 v 32 scale 0.125 forms<prompt = table, generated = absorbed> order softmax<block = 64, split = by_position> : tensor
  %o = mla.attention %q, %kv, @kvb[%l], %b nope 32 rope 16 v 32 scale 1.25e-1 forms<prompt = table, generated = absorbed> order softmax<block = 64, split = by_position> : !q, !kv -> !qn
  // CHECK: scale 0.125 : tensor
  %o1 = mla.attention %q, %kv, @kvb[%l], %b nope 32 rope 16 v 32 scale 1.25e-1 : !q, !kv -> !qn
  return %o : !qn
}

// CHECK-LABEL: func.func @forms
func.func @forms(%l: index, %q: !q, %kv: !kv, %b: !nn.batch) -> !qn {
  %n, %r = nn.split %q : !q -> !qn, !qr
  // CHECK: mla.absorb_query %{{.*}}, @uk_t[%{{.*}}], %{{.*}} order tree<1> : tensor<?x4x32xf32, #tok> -> tensor<?x4x64xf32, #tok>
  %ql = mla.absorb_query %n, @uk_t[%l], %b order tree<1> : !qn -> !ql
  // CHECK: mla.attention_absorbed %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 0.125 order softmax<block = 64, split = by_position> : tensor
  %ol = mla.attention_absorbed %ql, %r, %kv, %b scale 1.25e-1 order softmax<block = 64, split = by_position> : !ql, !qr, !kv -> !ql
  // CHECK: mla.expand_output %{{.*}}, @uv[%{{.*}}], %{{.*}} order tree<1> : tensor
  %oa = mla.expand_output %ol, @uv[%l], %b order tree<1> : !ql -> !qn
  // CHECK: mla.attention_expanded %{{.*}}, %{{.*}}, @uk[%{{.*}}], @uv[%{{.*}}], %{{.*}} scale 0.125 order softmax<block = 64, split = by_position> : tensor
  %oe = mla.attention_expanded %q, %kv, @uk[%l], @uv[%l], %b scale 1.25e-1 order softmax<block = 64, split = by_position> : !q, !kv -> !qn
  // CHECK: mla.merge_forms %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x4x32xf32, #tok>
  %o = mla.merge_forms %oa, %oe, %b : !qn
  return %o : !qn
}

// Ranks of a tensor-parallel group have half of the heads each, and cache the latents of all slices.
!qn_part = tensor<?x2x32xf32, #nn.rows<gathered>>
!qr_part = tensor<?x2x16xf32, #nn.rows<gathered>>
!ql_part = tensor<?x2x64xf32, #nn.rows<gathered>>
!q_part = tensor<?x2x48xf32, #nn.rows<gathered>>
!c_all = tensor<?x64xf32, #nn.rows<gathered>>
!kr_all = tensor<?x16xf32, #nn.rows<gathered>>
nn.weights @uk_part "layers.{layer}.kv_b_proj.weight" over (layer = 0 to 3) view slice<dims = [4, 64, 64], dim = 1, from = 0, to = 32> parts 2 along 0 : tensor<4x32x64xbf16>
nn.weights @uk_t_part "layers.{layer}.kv_b_proj.weight" over (layer = 0 to 3) view slice<dims = [4, 64, 64], dim = 1, from = 0, to = 32, transpose> parts 2 along 0 : tensor<4x64x32xbf16>
nn.weights @uv_part "layers.{layer}.kv_b_proj.weight" over (layer = 0 to 3) view slice<dims = [4, 64, 64], dim = 1, from = 32, to = 64> parts 2 along 0 : tensor<4x32x64xbf16>
// CHECK-LABEL: func.func @parts
func.func @parts(%l: index, %q: !q_part, %c: !c_all, %kr: !kr_all, %b: !nn.batch) -> !qn_part {
  // CHECK: mla.append @cache[%{{.*}}], %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32, #gathered>, tensor<?x16xf32, #gathered> -> !kv
  %kv = mla.append @cache[%l], %c, %kr, %b : !c_all, !kr_all -> !kv
  %n, %r = nn.split %q : !q_part -> !qn_part, !qr_part
  // CHECK: mla.absorb_query %{{.*}}, @uk_t_part[%{{.*}}], %{{.*}} order tree<1> : tensor<?x2x32xf32, #gathered> -> tensor<?x2x64xf32, #gathered>
  %ql = mla.absorb_query %n, @uk_t_part[%l], %b order tree<1> : !qn_part -> !ql_part
  // CHECK: mla.attention_absorbed {{.*}} : tensor<?x2x64xf32, #gathered>, tensor<?x2x16xf32, #gathered>, !kv -> tensor<?x2x64xf32, #gathered>
  %ol = mla.attention_absorbed %ql, %r, %kv, %b scale 1.25e-1 : !ql_part, !qr_part, !kv -> !ql_part
  // CHECK: mla.expand_output %{{.*}}, @uv_part[%{{.*}}], %{{.*}} order tree<1> : tensor<?x2x64xf32, #gathered> -> tensor<?x2x32xf32, #gathered>
  %oa = mla.expand_output %ol, @uv_part[%l], %b order tree<1> : !ql_part -> !qn_part
  // CHECK: mla.attention_expanded %{{.*}}, %{{.*}}, @uk_part[%{{.*}}], @uv_part[%{{.*}}], {{.*}} : tensor<?x2x48xf32, #gathered>, !kv -> tensor<?x2x32xf32, #gathered>
  %oe = mla.attention_expanded %q, %kv, @uk_part[%l], @uv_part[%l], %b scale 1.25e-1 : !q_part, !kv -> !qn_part
  // CHECK: mla.merge_forms %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x2x32xf32, #gathered>
  %o = mla.merge_forms %oa, %oe, %b : !qn_part
  return %o : !qn_part
}
