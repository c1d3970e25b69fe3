// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'#mla.forms' [C1] expects one form for generated segments, got table}}
module attributes {mla.f = #mla.forms<prompt = absorbed, generated = table>} {}

// -----

// expected-error @below {{'!mla.view' [C1] expects positive widths, got 0}}
func.func private @f(!mla.view<latent = 0 x f32, rope = 16 x f32>)

// -----

// expected-error @below {{'!mla.view' [C2] expects one element type, got 'f32' and 'bf16'}}
func.func private @f(!mla.view<latent = 64 x f32, rope = 16 x bf16>)

// -----

// expected-error @below {{'!mla.view' [C3] expects a group that is not negative, got -1}}
func.func private @f(!mla.view<latent = 64 x f32, rope = 16 x f32, group = -1>)

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
nn.pool @c over (layer = 0 to 3) planes (latent = 64 x f32, rope = 16 x f32) page 64 group 0
func.func @append_c1(%l: index, %c: tensor<?x64xf32, #nn.rows<output>>, %r: tensor<?x16xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'mla.append' op [C1] expects the latent in row space token, got output}}
  %kv = mla.append @c[%l], %c, %r, %b : tensor<?x64xf32, #nn.rows<output>>, tensor<?x16xf32, #nn.rows<output>> -> !kv
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
nn.pool @c over (layer = 0 to 3) planes (latent = 64 x f32, rope = 16 x f32) page 64 group 0
func.func @append_c2(%l: index, %c: tensor<?x48xf32, #tok>, %r: tensor<?x16xf32, #tok>, %b: !nn.batch) {
  // expected-error @below {{'mla.append' op [C2] expects latent columns of shape [64], got [48]}}
  %kv = mla.append @c[%l], %c, %r, %b : tensor<?x48xf32, #tok>, tensor<?x16xf32, #tok> -> !kv
  return
}

// -----

#tok = #nn.rows<token>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
nn.pool @c over (layer = 0 to 3) planes (latent = 64 x f32, rope = 16 x f32) page 64 group 0
func.func @append_c2_rope(%l: index, %c: tensor<?x64xf32, #tok>, %r: tensor<?x8xf32, #tok>, %b: !nn.batch) {
  // expected-error @below {{'mla.append' op [C2] expects rope columns of shape [16], got [8]}}
  %kv = mla.append @c[%l], %c, %r, %b : tensor<?x64xf32, #tok>, tensor<?x8xf32, #tok> -> !kv
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
nn.pool @c over (layer = 0 to 3) planes (latent = 32 x f32, rope = 16 x f32) page 64 group 0
func.func @append_c3(%l: index, %c: tensor<?x64xf32, #tok>, %r: tensor<?x16xf32, #tok>, %b: !nn.batch) {
  // expected-error @below {{'mla.append' op [C3] expects plane 'latent' of shape [64], got [32]}}
  %kv = mla.append @c[%l], %c, %r, %b : tensor<?x64xf32, #tok>, tensor<?x16xf32, #tok> -> !kv
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @append_c3_no_pool(%l: index, %c: tensor<?x64xf32, #tok>, %r: tensor<?x16xf32, #tok>, %b: !nn.batch) {
  // expected-error @below {{'mla.append' op [C3] expects @c to be an nn.pool}}
  %kv = mla.append @c[%l], %c, %r, %b : tensor<?x64xf32, #tok>, tensor<?x16xf32, #tok> -> !kv
  return
}

// -----

#tok = #nn.rows<token>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32, group = 1>
nn.pool @c over (layer = 0 to 3) planes (latent = 64 x f32, rope = 16 x f32) page 64 group 0
func.func @append_c4(%l: index, %c: tensor<?x64xf32, #tok>, %r: tensor<?x16xf32, #tok>, %b: !nn.batch) {
  // expected-error @below {{'mla.append' op [C4] expects the view's group 1 to equal the pool's 0}}
  %kv = mla.append @c[%l], %c, %r, %b : tensor<?x64xf32, #tok>, tensor<?x16xf32, #tok> -> !kv
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_c2(%q: !q, %kv: !kv, %w: tensor<4x64x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.attention' op [C2] expects query dims 48 to equal nope + rope 40}}
  %o = mla.attention %q, %kv, %w : tensor<4x64x64xf32>, %b nope 24 rope 16 v 32 scale 1.0 : !q, !kv -> !qn
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_c3(%q: !q, %kv: !kv, %w: tensor<4x64x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.attention' op [C3] expects result columns of shape [4, 32], got [4, 16]}}
  %o = mla.attention %q, %kv, %w : tensor<4x64x64xf32>, %b nope 32 rope 16 v 32 scale 1.0 : !q, !kv -> !qr
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_c4(%q: !q, %kv: !mla.view<latent = 64 x f32, rope = 8 x f32>, %w: tensor<4x64x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.attention' op [C4] expects the view's rope width 8 to equal rope 16}}
  %o = mla.attention %q, %kv, %w : tensor<4x64x64xf32>, %b nope 32 rope 16 v 32 scale 1.0 : !q, !mla.view<latent = 64 x f32, rope = 8 x f32> -> !qn
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_c5(%q: !q, %kv: !kv, %w: tensor<4x32x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.attention' op [C5] expects a weight of shape [4, 64, 64], got [4, 32, 64]}}
  %o = mla.attention %q, %kv, %w : tensor<4x32x64xf32>, %b nope 32 rope 16 v 32 scale 1.0 : !q, !kv -> !qn
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_c6(%q: tensor<?x4x48xf32, #nn.rows<output>>, %kv: !kv, %w: tensor<4x64x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.attention' op [C6] expects the query in row space token, got output}}
  %o = mla.attention %q, %kv, %w : tensor<4x64x64xf32>, %b nope 32 rope 16 v 32 scale 1.0 : tensor<?x4x48xf32, #nn.rows<output>>, !kv -> tensor<?x4x32xf32, #nn.rows<output>>
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @absorb_query_c2(%i: !qn, %w: tensor<4x64x32xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.absorb_query' op [C2] expects result heads 2 to equal input heads 4}}
  %o = mla.absorb_query %i, %w : tensor<4x64x32xf32>, %b : !qn -> tensor<?x2x64xf32, #tok>
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @absorb_query_c3(%i: !qn, %w: tensor<4x8x8xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.absorb_query' op [C3] expects a weight of shape [4, 64, 32], got [4, 8, 8]}}
  %o = mla.absorb_query %i, %w : tensor<4x8x8xf32>, %b : !qn -> !ql
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @expand_output_c2(%i: !ql, %w: tensor<4x32x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.expand_output' op [C2] expects result heads 2 to equal input heads 4}}
  %o = mla.expand_output %i, %w : tensor<4x32x64xf32>, %b : !ql -> tensor<?x2x64xf32, #tok>
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @expand_output_c3(%i: !ql, %w: tensor<4x8x8xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.expand_output' op [C3] expects a weight of shape [4, 32, 64], got [4, 8, 8]}}
  %o = mla.expand_output %i, %w : tensor<4x8x8xf32>, %b : !ql -> !qn
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_absorbed_c2(%q: !qn, %r: !qr, %kv: !kv, %b: !nn.batch) {
  // expected-error @below {{'mla.attention_absorbed' op [C2] expects query columns of shape [4, 64], got [4, 32]}}
  %o = mla.attention_absorbed %q, %r, %kv, %b scale 1.0 : !qn, !qr, !kv -> !ql
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_absorbed_c3(%q: !ql, %r: !qn, %kv: !kv, %b: !nn.batch) {
  // expected-error @below {{'mla.attention_absorbed' op [C3] expects rotary columns of shape [4, 16], got [4, 32]}}
  %o = mla.attention_absorbed %q, %r, %kv, %b scale 1.0 : !ql, !qn, !kv -> !ql
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_absorbed_c4(%q: tensor<?x4x64xf32, #nn.rows<output>>, %r: tensor<?x4x16xf32, #nn.rows<output>>, %kv: !kv, %b: !nn.batch) {
  // expected-error @below {{'mla.attention_absorbed' op [C4] expects the query in row space token, got output}}
  %o = mla.attention_absorbed %q, %r, %kv, %b scale 1.0 : tensor<?x4x64xf32, #nn.rows<output>>, tensor<?x4x16xf32, #nn.rows<output>>, !kv -> tensor<?x4x64xf32, #nn.rows<output>>
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_expanded_c2(%q: !q, %kv: !kv, %uk: tensor<4x32x64xf32>, %uv: tensor<4x32x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.attention_expanded' op [C2] expects result heads 2 to equal input heads 4}}
  %o = mla.attention_expanded %q, %kv, %uk : tensor<4x32x64xf32>, %uv : tensor<4x32x64xf32>, %b scale 1.0 : !q, !kv -> tensor<?x2x32xf32, #tok>
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_expanded_c3(%q: !q, %kv: !kv, %uk: tensor<4x64x32xf32>, %uv: tensor<4x32x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.attention_expanded' op [C3] expects uk of shape [4, 32, 64], got [4, 64, 32]}}
  %o = mla.attention_expanded %q, %kv, %uk : tensor<4x64x32xf32>, %uv : tensor<4x32x64xf32>, %b scale 1.0 : !q, !kv -> !qn
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_expanded_c4(%q: !q, %kv: !kv, %uk: tensor<4x32x64xf32>, %uv: tensor<4x16x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.attention_expanded' op [C4] expects uv of shape [4, 32, 64], got [4, 16, 64]}}
  %o = mla.attention_expanded %q, %kv, %uk : tensor<4x32x64xf32>, %uv : tensor<4x16x64xf32>, %b scale 1.0 : !q, !kv -> !qn
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @attention_expanded_c5(%q: tensor<?x4x48xf32, #nn.rows<output>>, %kv: !kv, %uk: tensor<4x32x64xf32>, %uv: tensor<4x32x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'mla.attention_expanded' op [C5] expects the query in row space token, got output}}
  %o = mla.attention_expanded %q, %kv, %uk : tensor<4x32x64xf32>, %uv : tensor<4x32x64xf32>, %b scale 1.0 : tensor<?x4x48xf32, #nn.rows<output>>, !kv -> tensor<?x4x32xf32, #nn.rows<output>>
  return
}

// -----

#tok = #nn.rows<token>
!q = tensor<?x4x48xf32, #tok>
!qn = tensor<?x4x32xf32, #tok>
!qr = tensor<?x4x16xf32, #tok>
!ql = tensor<?x4x64xf32, #tok>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
func.func @merge_forms_c2(%x: tensor<?x4x32xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'mla.merge_forms' op [C2] expects the result in row space token, got output}}
  %o = mla.merge_forms %x, %x, %b : tensor<?x4x32xf32, #nn.rows<output>>
  return
}

// -----

// view C2
// expected-error @below {{expected `latent = width x type, rope = width x type`}}
func.func private @f(!mla.view<latent = 64 x 2 x f32, rope = 16 x f32>)
