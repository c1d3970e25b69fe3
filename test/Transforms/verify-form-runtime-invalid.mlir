// RUN: k2c-opt %s --verify-form="form=runtime" --split-input-file --verify-diagnostics

func.func @f(%x: tensor<?x64xf32, #nn.rows<token>>) {
  // expected-error @below {{runtime form: an op of dialect 'nn' is left; run lower-to-rt first}}
  %a = nn.add %x, %x : tensor<?x64xf32, #nn.rows<token>>
  return
}

// -----

func.func @f(%e: tensor<?x2xi32, #nn.rows<token>>) {
  // expected-error @below {{runtime form: an op of dialect 'moe' is left; run lower-to-rt first}}
  %p = moe.permutation %e : tensor<?x2xi32, #nn.rows<token>> -> !moe.permutation<experts = 4, top = 2>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32, #nn.rows<token>>, %y: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) {
  // expected-error @below {{runtime form: an op of dialect 'mla' is left; run lower-to-rt first}}
  %a = mla.merge_forms %x, %y, %b : tensor<?x64xf32, #nn.rows<token>>
  return
}

// -----

// expected-error @below {{runtime form: an op of dialect 'kern' is left; run lower-to-rt first}}
kern.func @k() {
  kern.yield
}

// -----

// Families of weight slots are the packer's; no other is.
nn.weights @packed "packed" : tensor<64x64xbf16>
rt.weight_slots @packed.rows of @packed first 0 count 1 bytes 8192 layout #rt.row_major<bf16, 4096>
// expected-error @below {{runtime form: an op of dialect 'nn' is left; run lower-to-rt first}}
nn.weights @left "left" : tensor<64x64xbf16>

// -----

func.func @f() {
  %p = rt.arena 0
  return
}
