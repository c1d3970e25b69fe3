// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'#kern.tile' [C1] expects positive mr, got 0}}
module attributes {kern.t = #kern.tile<generic, lanes = 16, mr = 0, nr = 1, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1>} {}

// -----

// expected-error @below {{'#kern.tile' [C1] expects no negative prefetch, rows_block or split_tokens, got -1, 1 and 0}}
module attributes {kern.t = #kern.tile<generic, lanes = 16, mr = 1, nr = 1, prefetch = -1, rows_block = 1, head_tile = 1, value_parts = 1>} {}

// -----

// expected-error @below {{'#kern.tile' [C1] expects no negative prefetch, rows_block or split_tokens, got 0, 1 and -3}}
module attributes {kern.t = #kern.tile<generic, lanes = 16, mr = 1, nr = 1, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1, split_tokens = -3>} {}

// -----

// expected-error @below {{'#kern.cpu' [C1] expects positive cores and caches of 'x86-64-v3', got 0}}
module attributes {kern.target = #kern.cpu<"x86-64-v3", cores = 8, l1 = 0, l2 = 1048576, features = ["fma"]>} {}

// -----

// expected-error @below {{'#kern.cpu' [C2] expects features as strings, got 512 : i64}}
module attributes {kern.target = #kern.cpu<"x86-64-v3", cores = 8, l1 = 32768, l2 = 1048576, features = ["fma", 512]>} {}

// -----

// expected-error @below {{'#kern.gpu' [C1] expects positive sizes of 'sm_90a', got 0}}
module attributes {kern.target = #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 4, ctas = 0,
                                           host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = []>>} {}

// -----

// expected-error @below {{'#kern.gpu' [C2] expects workers that divide the threads of a CTA, got 5 of 128}}
module attributes {kern.target = #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 5, ctas = 264,
                                           host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = []>>} {}

// -----

// expected-error @below {{'kern.target' expects #kern.cpu or #kern.gpu on a module, got "x86-64-v3" on 'builtin.module'}}
module attributes {kern.target = "x86-64-v3"} {}

// -----

// expected-error @below {{'kern.peak' is no attribute of kern}}
module attributes {kern.peak = 64 : i64} {}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
// expected-error @below {{'kern.func' op [C1] expects ops that stand in kernels, got 'arith.constant'}}
kern.func @func_c1(%x: !x) -> !x {
  %c = arith.constant 0 : index
  kern.yield %x : !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
// expected-error @below {{'kern.func' op [C2] expects the yield to have types ('tensor<?x48xf32, #nn.rows<token>>'), got ('tensor<?x64xf32, #nn.rows<token>>')}}
kern.func @func_c2(%x: !x) -> !a {
  kern.yield %x : !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
func.func private @f()
func.func @call_c1(%x: !x, %w: tensor<48x64xf32>, %l: index) {
  // expected-error @below {{'kern.call' op [C1] expects @f to be a kern.func}}
  %0 = kern.call @f(%x) : (!x) -> !a
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
kern.func @k(%x: !x, %w: tensor<48x64xf32>) -> !a {
  %a = nn.linear %x, %w : tensor<48x64xf32> : !x -> !a
  kern.yield %a : !a
}
func.func @call_c2(%x: !x, %w: tensor<48x64xf32>, %l: index) {
  // expected-error @below {{'kern.call' op [C2] expects 2 arguments, got 1}}
  %0 = kern.call @k(%x) : (!x) -> !a
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
kern.func @k(%x: !x, %w: tensor<48x64xf32>) -> !a {
  %a = nn.linear %x, %w : tensor<48x64xf32> : !x -> !a
  kern.yield %a : !a
}
nn.weights @w "{layer}" over (layer = 0 to 3) : tensor<48x64xbf16>
func.func @call_c3(%x: !x, %w: tensor<48x64xf32>, %l: index) {
  // expected-error @below {{'kern.call' op [C3] expects argument 1 of type 'tensor<48x64xf32>', got 'tensor<48x64xbf16>'}}
  %0 = kern.call @k(%x, @w[%l]) : (!x) -> !a
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
kern.func @k(%x: !x, %w: tensor<48x64xf32>) -> !a {
  %a = nn.linear %x, %w : tensor<48x64xf32> : !x -> !a
  kern.yield %a : !a
}
func.func @call_c3_results(%x: !x, %w: tensor<48x64xf32>, %l: index) {
  // expected-error @below {{'kern.call' op [C3] expects results ('tensor<?x48xf32, #nn.rows<token>>'), got ()}}
  kern.call @k(%x, %w) : (!x, tensor<48x64xf32>) -> ()
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
kern.func @k(%x: !x, %w: tensor<48x64xf32>) -> !a {
  %a = nn.linear %x, %w : tensor<48x64xf32> : !x -> !a
  kern.yield %a : !a
}
func.func @call_c4(%x: !x, %w: tensor<48x64xf32>, %l: index) {
  // expected-error @below {{'kern.call' op [C4] expects 1 offsets, got 2}}
  %0 = kern.call @k(%x, %w) at [0, 64] : (!x, tensor<48x64xf32>) -> !a
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
kern.func @k(%x: !x, %w: tensor<48x64xf32>) -> !a {
  %a = nn.linear %x, %w : tensor<48x64xf32> : !x -> !a
  kern.yield %a : !a
}
func.func @call_c4_alignment(%x: !x, %w: tensor<48x64xf32>, %l: index) {
  // expected-error @below {{'kern.call' op [C4] expects offsets that are multiples of 64, got 32}}
  %0 = kern.call @k(%x, %w) at [32] : (!x, tensor<48x64xf32>) -> !a
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
kern.func @k(%x: !x, %w: tensor<48x64xf32>) -> !a {
  %a = nn.linear %x, %w : tensor<48x64xf32> : !x -> !a
  kern.yield %a : !a
}
func.func @call_c5(%x: !x, %w: tensor<48x64xf32>, %l: index) {
  // expected-error @below {{'kern.call' op [C5] expects bindings for 2 operands, got 1}}
  %0 = "kern.call"(%x, %w) <{callee = @k, bindings = [unit]}> : (!x, tensor<48x64xf32>) -> !a
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
kern.func @k(%x: !x, %w: tensor<48x64xf32>) -> !a {
  %a = nn.linear %x, %w : tensor<48x64xf32> : !x -> !a
  kern.yield %a : !a
}
func.func @call_c6(%x: !x, %w: tensor<48x64xf32>, %l: index) {
  %0 = kern.call @k(%x, %w) : (!x, tensor<48x64xf32>) -> !a
  // expected-error @below {{'kern.call' op [C6] expects another call behind a nowait one in its block}}
  %1 = kern.call nowait @k(%x, %w) : (!x, tensor<48x64xf32>) -> !a
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x48xf32, #nn.rows<token>>
kern.func @k(%x: !x, %w: tensor<48x64xf32>) -> !a {
  %a = nn.linear %x, %w : tensor<48x64xf32> : !x -> !a
  kern.yield %a : !a
}
nn.weights @w "{layer}" over (layer = 0 to 3) : tensor<48x64xf32>
func.func @weight_w2(%x: !x, %w: tensor<48x64xf32>, %l: index) {
  // expected-error @below {{'kern.call' op [W2] expects a layer index: @w has a layer domain}}
  %0 = kern.call @k(%x, @w) : (!x) -> !a
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @call_lacks_a_type(%x: !x) {
  // expected-error @below {{custom op 'kern.call' expected a type for each value argument}}
  %0 = kern.call @k(%x, %x) : (!x) -> !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @call_has_a_type_too_many(%x: !x) {
  // expected-error @below {{custom op 'kern.call' expected no more types than value arguments}}
  %0 = kern.call @k(%x) : (!x, !x) -> !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
kern.func @k(%x: !x, %y: !x) -> !x {
  %a = nn.add %x, %y : !x
  kern.yield %a : !x
}
func.func @call_c7(%x: !x) {
  // expected-error @below {{'kern.call' op [C7] expects partials at a multiple of 64, got 100}}
  %0 = kern.call @k(%x, %x) at [0] : (!x, !x) -> !x partials 100
  return
}

// -----

!v = tensor<?x64xf32, #nn.rows<output>>
// expected-error @below {{'kern.func' op [C1] expects ops that stand in kernels, got 'nn.sample'}}
kern.func @func_c1_sample(%l: !v, %b: !nn.batch) {
  nn.sample %l, %b : !v
  kern.yield
}
