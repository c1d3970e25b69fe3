// RUN: k2c-opt %s --attach-plan --choose-tiles --verify-diagnostics --split-input-file
// Bodies of kernels that nothing describes: each is named with what stands in the way.

!x = tensor<?x64xf32, #nn.rows<token>>
// expected-error @below {{kernel 'k' computes nothing}}
kern.func @k(%x: !x) -> !x {
  kern.yield %x : !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
// expected-error @below {{kernel 'k': no kernel of this build computes 'nn.rms_norm' with 1 further ops; form-kernels should have cut it}}
kern.func @k(%x: !x, %w: tensor<64xf32>) -> !x {
  %a = nn.rms_norm %x, %w : tensor<64xf32> eps 1.0e-06 : !x
  %b = nn.rms_norm %a, %w : tensor<64xf32> eps 1.0e-06 : !x
  kern.yield %b : !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
// expected-error @below {{kernel 'k' does not yield the value it should store}}
kern.func @k(%x: !x, %w: tensor<64xf32>) -> !x {
  %a = nn.rms_norm %x, %w : tensor<64xf32> eps 1.0e-06 : !x
  kern.yield %x : !x
}

// -----

!h = tensor<?x4x16xf32, #nn.rows<token>>
!p = tensor<?x4x8xf32, #nn.rows<token>>
!y = tensor<?x32xf32, #nn.rows<token>>
kern.func @k(%x: !h, %w: tensor<32xf32>) -> !y {
  %a, %b = nn.split %x : !h -> !p, !p
  // expected-error @below {{'nn.reshape' op reads a row whose elements are not consecutive; a kernel cannot view it}}
  %c = nn.reshape %a : !p -> !y
  %d = nn.rms_norm %c, %w : tensor<32xf32> eps 1.0e-06 : !y
  kern.yield %d : !y
}

// -----

!h = tensor<?x4x16xf32, #nn.rows<token>>
!p = tensor<?x4x8xf32, #nn.rows<token>>
// expected-error @below {{kernel 'k' reads rows whose elements are not consecutive}}
kern.func @k(%x: !h) -> !p {
  %a, %b = nn.split %x : !h -> !p, !p
  %c = nn.add %a, %b : !p
  kern.yield %c : !p
}

// -----

!h = tensor<?x2x16xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
kern.func @k(%q: !h, %kv: !kv, %b: !nn.batch) -> !h {
  // expected-error @below {{'nn.attention' op has a window; windowed attention is not in this build}}
  %o = nn.attention %q, %kv, %b scale 2.5e-1 window 128 : !h, !kv -> !h
  kern.yield %o : !h
}

// -----

// A linear adds what the kernel is given, not the rows that it normalised.
!x = tensor<?x64xf32, #nn.rows<token>>
// expected-error @below {{kernel 'k' reads a value that is neither an argument nor a view of one}}
kern.func @k(%x: !x, %g: tensor<64xf32>, %w: tensor<64x64xf32>) -> !x {
  %n = nn.rms_norm %x, %g : tensor<64xf32> eps 1.0e-06 : !x
  %a = nn.linear %n, %w : tensor<64x64xf32> order tree<1> : !x -> !x
  %b = nn.add %a, %n : !x
  kern.yield %b : !x
}

// -----

// An epilogue takes one row beside the sums.
!x = tensor<?x64xf32, #nn.rows<token>>
kern.func @k(%x: !x, %y: !x, %w: tensor<64x64xf32>) -> !x {
  %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : !x -> !x
  %b = nn.add %a, %x : !x
  // expected-error @below {{'nn.add' op reads rows that its kernel cannot hold; form-kernels should have cut it}}
  %c = nn.add %b, %y : !x
  kern.yield %c : !x
}

// -----

// What was computed as one row is not gated by its halves.
!x = tensor<?x64xf32, #nn.rows<token>>
!g = tensor<?x2x32xf32, #nn.rows<token>>
!y = tensor<?x32xf32, #nn.rows<token>>
kern.func @k(%g: !g) -> !y {
  %a = nn.clip %g limit 2.0 : !g
  // expected-error @below {{'nn.gated_act' op reads rows that its kernel cannot hold; form-kernels should have cut it}}
  %b = nn.gated_act %a act silu : !g -> !y
  kern.yield %b : !y
}

// -----

!g = tensor<?x2x64xf32, #nn.rows<token>>
!y = tensor<?x64xf32, #nn.rows<token>>
kern.func @k(%g: !g) -> !y {
  // expected-error @below {{'nn.gated_act' op gates by another activation than silu, which is not in this build}}
  %a = nn.gated_act %g act gelu_tanh : !g -> !y
  kern.yield %a : !y
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!g = tensor<?x2x32xf32, #nn.rows<token>>
!y = tensor<?x32xf32, #nn.rows<token>>
kern.func @k(%x: !x, %w: tensor<2x32x64xf32>) -> !y {
  %g = nn.linear %x, %w : tensor<2x32x64xf32> order tree<1> : !x -> !g
  // expected-error @below {{'nn.gated_act' op gates by another activation than silu, which is not in this build}}
  %a = nn.gated_act %g act gelu_tanh : !g -> !y
  kern.yield %a : !y
}
