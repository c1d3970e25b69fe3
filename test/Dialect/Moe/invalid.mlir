// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'#moe.tree' [C1] expects a power of two up to 128, got 96}}
module attributes {moe.t = #moe.tree<96>} {}

// -----

// expected-error @below {{'#moe.bound' [C1] expects several nodes that have slots, got 1 of 6 slots}}
module attributes {moe.b = #moe.bound<nodes = 1, slots = 6, max = 0, penalty = 0.5>} {}

// -----

// expected-error @below {{'#moe.bound' [C2] expects 0 <= max < 4 nodes, got 4}}
module attributes {moe.b = #moe.bound<nodes = 4, slots = 6, max = 4>} {}

// -----

// expected-error @below {{'#moe.bound' [C3] expects a penalty above 0 and at most 1, got 1.5}}
module attributes {moe.b = #moe.bound<nodes = 4, slots = 6, penalty = 1.5>} {}

// -----

// expected-error @below {{'#moe.bound' [C4] expects a limit or a penalty, got neither}}
module attributes {moe.b = #moe.bound<nodes = 4, slots = 6>} {}

// -----

// expected-error @below {{'!moe.permutation' [C1] expects 0 < top <= 4 experts, got 8}}
func.func private @f(!moe.permutation<experts = 4, top = 8>)

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @routing_c1(%s: tensor<?x384xf32, #nn.rows<output>>, %b: !nn.batch, %l: index) {
  // expected-error @below {{'moe.routing' op [C1] expects the scores in row space token, got output}}
  %e, %w = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 8 groups 1 of 1 scale 1.0 : tensor<?x384xf32, #nn.rows<output>> -> tensor<?x8xi32, #nn.rows<output>>, tensor<?x8xf32, #nn.rows<output>>
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @routing_c2(%s: tensor<?x384xbf16, #tok>, %b: !nn.batch, %l: index) {
  // expected-error @below {{'moe.routing' op [C2] expects scores of type 'f32', got 'bf16'}}
  %e, %w = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 8 groups 1 of 1 scale 1.0 : tensor<?x384xbf16, #tok> -> !e, !w
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @routing_c3(%s: !s, %b: !nn.batch, %l: index) {
  // expected-error @below {{'moe.routing' op [C3] expects experts' columns of shape [6], got [8]}}
  %e, %w = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 6 groups 1 of 1 scale 1.0 : !s -> !e, !w
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @routing_c4(%s: !s, %b: !nn.batch, %l: index) {
  // expected-error @below {{'moe.routing' op [C4] expects 0 < top <= 6 eligible experts, got 8}}
  %e, %w = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 8 groups 1 of 64 scale 1.0 : !s -> !e, !w
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @routing_c5(%s: !s, %b: !nn.batch, %l: index) {
  // expected-error @below {{'moe.routing' op [C5] expects kept groups of a divisor of 384 experts, got 1 of 7}}
  %e, %w = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 8 groups 1 of 7 scale 1.0 : !s -> !e, !w
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @routing_c5_kept(%s: !s, %b: !nn.batch, %l: index) {
  // expected-error @below {{'moe.routing' op [C5] expects kept groups of a divisor of 384 experts, got 5 of 4}}
  %e, %w = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 8 groups 5 of 4 scale 1.0 : !s -> !e, !w
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @routing_c6(%s: !s, %b: !nn.batch, %l: index, %v: tensor<8xf32>) {
  // expected-error @below {{'moe.routing' op [C6] expects a bias of shape [384], got [8]}}
  %e, %w = moe.routing %s, %b bias %v : tensor<8xf32> layer %l among 1 to 61 score sigmoid top 8 groups 1 of 1 scale 1.0 : !s -> !e, !w
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @routing_c7(%s: !s, %b: !nn.batch, %l: index) {
  // expected-error @below {{'moe.routing' op [C7] expects slots for 384 experts on all nodes, got 380}}
  %e, %w = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 8 groups 1 of 1 bound<nodes = 4, slots = 95, max = 2> scale 1.0 : !s -> !e, !w
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @routing_c7_limit(%s: !s, %b: !nn.batch, %l: index) {
  // expected-error @below {{'moe.routing' op [C7] expects slots for 8 choices on 2 nodes, got 6}}
  %e, %w = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 8 groups 1 of 1 bound<nodes = 128, slots = 3, max = 2> scale 1.0 : !s -> !e, !w
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @experts_c2(%x: !x, %e: !e, %w: tensor<?x6xf32, #tok>, %u: tensor<384x2x96x64xf32>, %d: tensor<384x64x96xf32>) {
  // expected-error @below {{'moe.experts' op [C2] expects weights' columns of shape [8], got [6]}}
  %r = moe.experts %x, %e, %w, %u : tensor<384x2x96x64xf32>, %d : tensor<384x64x96xf32> experts 384 inner 96 act silu : !x, !e, tensor<?x6xf32, #tok> -> !x
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @experts_c3(%x: !x, %e: !e, %w: !w, %u: tensor<384x2x64x96xf32>, %d: tensor<384x64x96xf32>) {
  // expected-error @below {{'moe.experts' op [C3] expects gate and up weights of shape [384, 2, 96, 64], got [384, 2, 64, 96]}}
  %r = moe.experts %x, %e, %w, %u : tensor<384x2x64x96xf32>, %d : tensor<384x64x96xf32> experts 384 inner 96 act silu : !x, !e, !w -> !x
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @experts_c4(%x: !x, %e: !e, %w: !w, %u: tensor<384x2x96x64xf32>, %d: tensor<384x96x64xf32>) {
  // expected-error @below {{'moe.experts' op [C4] expects down weights of shape [384, 64, 96], got [384, 96, 64]}}
  %r = moe.experts %x, %e, %w, %u : tensor<384x2x96x64xf32>, %d : tensor<384x96x64xf32> experts 384 inner 96 act silu : !x, !e, !w -> !x
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @experts_c5(%x: !x, %e: !e, %w: !w, %u: tensor<384x2x96x64xf32>, %d: tensor<384x64x96xf32>) {
  // expected-error @below {{'moe.experts' op [C5] expects result columns of shape [64], got [96]}}
  %r = moe.experts %x, %e, %w, %u : tensor<384x2x96x64xf32>, %d : tensor<384x64x96xf32> experts 384 inner 96 act silu : !x, !e, !w -> tensor<?x96xf32, #tok>
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @experts_c6(%x: !x, %e: !e, %w: !w, %u: tensor<8x2x96x64xf32>, %d: tensor<8x64x96xf32>) {
  // expected-error @below {{'moe.experts' op [C6] expects the leaves to divide 8 experts, got 16}}
  %r = moe.experts %x, %e, %w, %u : tensor<8x2x96x64xf32>, %d : tensor<8x64x96xf32> experts 8 inner 96 act silu combine tree<16> : !x, !e, !w -> !x
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @permutation_c2(%w: !w) {
  // expected-error @below {{'moe.permutation' op [C2] expects experts of type 'i32', got 'f32'}}
  %p = moe.permutation %w : !w -> !permutation
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @permutation_c3(%w: tensor<?x8xi32, #nn.rows<output>>) {
  // expected-error @below {{'moe.permutation' op [C3] expects the experts in row space #nn.rows<token>, got #nn.rows<output>}}
  %p = moe.permutation %w : tensor<?x8xi32, #nn.rows<output>> -> !permutation
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @permute_c1(%x: !x, %p: !permutation) {
  // expected-error @below {{'moe.permute' op [C1] expects the result in row space #nn.rows<slot, 8>, got #nn.rows<slot, 4>}}
  %s = moe.permute %x, %p : !x, !permutation -> tensor<?x64xf32, #nn.rows<slot, 4>>
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @permute_c2(%x: !x, %p: !permutation) {
  // expected-error @below {{'moe.permute' op [C2] expects result columns of shape [64], got [48]}}
  %s = moe.permute %x, %p : !x, !permutation -> tensor<?x48xf32, #nn.rows<slot, 8>>
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @grouped_linear_c1(%s: !x, %p: !permutation, %m: tensor<384x64x64xf32>) {
  // expected-error @below {{'moe.grouped_linear' op [C1] expects the input in row space #nn.rows<slot, 8>, got #nn.rows<token>}}
  %g = moe.grouped_linear %s, %p, %m : tensor<384x64x64xf32> : !x, !permutation -> !slots
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @grouped_linear_c2(%s: !slots, %p: !permutation, %m: tensor<8x64x64xf32>) {
  // expected-error @below {{'moe.grouped_linear' op [C2] expects a weight of shape [384, 64, 64], got [8, 64, 64]}}
  %g = moe.grouped_linear %s, %p, %m : tensor<8x64x64xf32> : !slots, !permutation -> !slots
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @grouped_linear_c3(%s: !slots, %p: !permutation, %m: tensor<384x64x64xf32>, %w: tensor<?x6xf32, #tok>) {
  // expected-error @below {{'moe.grouped_linear' op [C3] expects router weights' columns of shape [8], got [6]}}
  %g = moe.grouped_linear %s, %p, %m : tensor<384x64x64xf32> weighted %w : tensor<?x6xf32, #tok> : !slots, !permutation -> !slots
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @grouped_linear_c4(%s: tensor<?x2x64xf32, #nn.rows<slot, 8>>, %p: !permutation, %m: tensor<384x64x64xf32>) {
  // expected-error @below {{'moe.grouped_linear' op [C4] expects an input of rank 2, got 3}}
  %g = moe.grouped_linear %s, %p, %m : tensor<384x64x64xf32> : tensor<?x2x64xf32, #nn.rows<slot, 8>>, !permutation -> !slots
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @unpermute_c1(%s: !slots, %p: !permutation, %e: !e) {
  // expected-error @below {{'moe.unpermute' op [C1] expects the result in row space token, got slot}}
  %r = moe.unpermute %s, %p, %e : !slots, !permutation, !e -> !slots
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @unpermute_c2(%s: !slots, %p: !permutation, %e: !e) {
  // expected-error @below {{'moe.unpermute' op [C2] expects result columns of shape [64], got [48]}}
  %r = moe.unpermute %s, %p, %e : !slots, !permutation, !e -> tensor<?x48xf32, #tok>
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @unpermute_c3(%s: !slots, %p: !moe.permutation<experts = 12, top = 8>, %e: !e) {
  // expected-error @below {{'moe.unpermute' op [C3] expects the leaves to divide 12 experts, got 8}}
  %r = moe.unpermute %s, %p, %e order tree<8> : !slots, !moe.permutation<experts = 12, top = 8>, !e -> !x
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!s = tensor<?x384xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8>>
!permutation = !moe.permutation<experts = 384, top = 8>
func.func @unpermute_c4(%s: !slots, %p: !permutation, %e: tensor<?x6xi32, #tok>) {
  // expected-error @below {{'moe.unpermute' op [C4] expects experts' columns of shape [8], got [6]}}
  %r = moe.unpermute %s, %p, %e : !slots, !permutation, tensor<?x6xi32, #tok> -> !x
  return
}
