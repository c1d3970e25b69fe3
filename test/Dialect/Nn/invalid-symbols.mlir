// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// rows C1
// expected-error @below {{'#nn.rows' [C1] expects a dynamic dimension 0}}
func.func private @f(tensor<4x64xf32, #nn.rows<token>>)

// -----

// rows C2
// expected-error @below {{'#nn.rows' [C2] expects a positive number of slots for each token of space slot, got 0}}
func.func private @f(tensor<?x64xf32, #nn.rows<slot>>)

// -----

// rows C2, other way round
// expected-error @below {{'#nn.rows' [C2] expects no slots for each token of space token, got 8}}
func.func private @f(tensor<?x64xf32, #nn.rows<token, 8>>)

// -----

// rows C3
// expected-error @below {{'#nn.rows' [C3] expects a bound of the rows of site 12, got none}}
func.func private @f(tensor<?x64xf32, #nn.rows<recv, site = 12>>)

// -----

// limits C1
// expected-error @below {{'#nn.limits' [C1] expects a positive bound 'seq', got 0}}
module attributes {nn.limits = #nn.limits<token = 1, seq = 0, context = 1>} {}

// -----

// limits C1
// expected-error @below {{'#nn.limits' [C1] expects a positive bound 'output', got 0}}
module attributes {nn.limits = #nn.limits<token = 1, seq = 1, context = 1, output = 0>} {}

// -----

// tree C1
// expected-error @below {{'#nn.tree' [C1] expects 1, 2, 4 or 8 leaves, got 3}}
module attributes {nn.order = #nn.tree<3>} {}

// -----

// softmax C1
// expected-error @below {{'#nn.softmax' [C1] expects a positive block, got 0}}
module attributes {nn.order = #nn.softmax<block = 0, split = none>} {}

// -----

// blocks C1
// expected-error @below {{'#nn.blocks' [C1] expects positive block dimensions, got 0}}
module attributes {nn.x = #nn.blocks<f8E4M3FN, [128, 0], f32>} {}

// -----

// slice C1
// expected-error @below {{'#nn.slice' [C1] expects a dimension below 1, got 1}}
module attributes {nn.x = #nn.slice<dims = [64], dim = 1, from = 0, to = 1>} {}

// -----

// slice C2
// expected-error @below {{'#nn.slice' [C2] expects 0 <= from < to <= 64, got 0 to 65}}
module attributes {nn.x = #nn.slice<dims = [64], dim = 0, from = 0, to = 65>} {}

// -----

// slice C3
// expected-error @below {{'#nn.slice' [C3] expects two dimensions to transpose, got 1}}
module attributes {nn.x = #nn.slice<dims = [64], dim = 0, from = 0, to = 1, transpose>} {}

// -----

// indices C1
// expected-error @below {{'#nn.indices' [C1] expects 0 <= from < to, got 3 to 3}}
nn.weights @w "{layer}" over (layer = 3 to 3) : tensor<4xf32>

// -----

// indices C2
// expected-error @below {{'#nn.indices' [C2] expects a positive step, got 0}}
nn.weights @w "{layer}" over (layer = 0 to 3 step 0) : tensor<4xf32>

// -----

// indices C3
// expected-error @below {{'#nn.indices' [C3] expects every index once, got 4 in two ranges}}
nn.weights @w "{layer}" over (layer = 0 to 3 and 4 to 10 step 3 and 4 to 6) : tensor<4xf32>

// -----

// plane C1
// expected-error @below {{'#nn.plane' [C1] expects positive dimensions of plane 'k', got 0}}
module attributes {nn.x = #nn.plane<"k", [0], f32>} {}

// -----

// run C1
// expected-error @below {{'#nn.run' [C1] expects 0 <= from < to, got 2 to 1}}
module attributes {nn.x = #nn.run<[@f], 2, 1>} {}

// -----

// run C2
// expected-error @below {{'#nn.run' [C2] expects 1 to 2 callees for as many layers, got 3}}
module attributes {nn.x = #nn.run<[@f, @g, @f], 1, 3>} {}

// -----

// rope C1
// expected-error @below {{'#nn.rope' [C1] expects a positive even number of dims, got 3}}
module attributes {nn.x = #nn.rope<theta = 1.0e4, dims = 3>} {}

// -----

// rope C2
// expected-error @below {{'#nn.rope' [C2] expects a frequency of each of 4 pairs, got 2}}
module attributes {nn.x = #nn.rope<theta = 1.0e4, dims = 8, scaling = #nn.frequencies<[1.0, 0.25]>>} {}

// -----

// kv_view C1
// expected-error @below {{'!nn.kv_view' [C1] expects 2 key heads to equal 4 value heads}}
func.func private @f(!nn.kv_view<k = 2 x 16 x f32, v = 4 x 16 x f32>)

// -----

// kv_view C2
// expected-error @below {{'!nn.kv_view' [C2] expects positive dimensions, got 0}}
func.func private @f(!nn.kv_view<k = 2 x 0 x f32, v = 2 x 16 x f32>)

// -----

// kv_view C3
// expected-error @below {{'!nn.kv_view' [C3] expects a group that is not negative, got -1}}
func.func private @f(!nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32, group = -1>)

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @weight_unknown(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.rms_norm' op [W1] expects @nothing to be nn.weights or nn.constant_table}}
  %0 = nn.rms_norm %x, @nothing[%l] eps 1.0 : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @w "layers.{layer}.w" over (layer = 0 to 3) : tensor<64xf32>
func.func @weight_without_layer(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.rms_norm' op [W2] expects a layer index: @w has a layer domain}}
  %0 = nn.rms_norm %x, @w eps 1.0 : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @w "w" : tensor<64xf32>
func.func @weight_with_layer(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.rms_norm' op [W2] expects no layer index: @w has no layer domain}}
  %0 = nn.rms_norm %x, @w[%l] eps 1.0 : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.constant_table @t rope<theta = 1.0e4, dims = 64> : tensor<8x2x32xf32>
func.func @table_with_layer(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.rotary' op [W2] expects no layer index: @t has no layer domain}}
  %0 = nn.rotary %x, @t[%l], %b first 0 count 64 half : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @weight_is_an_index(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.rms_norm' op [W3] expects 'weight' to be a symbol or a tensor, got 'index'}}
  %0 = nn.rms_norm %x, %l : index eps 1.0 : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @weight_is_missing(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.rms_norm' op [W4] expects 1 weights, got 0}}
  %0 = "nn.rms_norm"(%x) <{eps = 1.0 : f64}> : (!x) -> !x
  return
}

// -----

// weights C1
// expected-error @below {{'nn.weights' op [C1] expects a domain for placeholder {layer} of "layers.{layer}.w"}}
nn.weights @w "layers.{layer}.w" : tensor<4xf32>

// -----

// weights C1, other way round
// expected-error @below {{'nn.weights' op [C1] expects a placeholder {layer} in "w"}}
nn.weights @w "w" over (layer = 0 to 3) : tensor<4xf32>

// -----

// weights C2
// expected-error @below {{'nn.weights' op [C2] expects leading dimension 4 to equal number of experts 8}}
nn.weights @w "experts.{expert}.w" over (expert = 0 to 8) : tensor<4x64xf32>

// -----

// weights C3
// expected-error @below {{'nn.weights' op [C3] expects leading dimension 64 to equal number of alternatives 2}}
nn.weights @w "{gate|up}.w" : tensor<64xf32>

// -----

// weights C4
// expected-error @below {{'nn.weights' op [C4] expects a static type, got 'tensor<?xf32>'}}
nn.weights @w "w" : tensor<?xf32>

// -----

// weights C5
// expected-error @below {{'nn.weights' op [C5] expects a view of shape [64, 32], got [32, 64]}}
nn.weights @w "w" view slice<dims = [48, 64], dim = 0, from = 0, to = 32> : tensor<64x32xf32>

// -----

// weights C6
// expected-error @below {{'nn.weights' op [C6] expects at most 1 block dimensions, got 2}}
nn.weights @w "w" stored blocks<f8E4M3FN, [128, 128], f32> : tensor<64xf32>

// -----

// weights C7
// expected-error @below {{'nn.weights' op [C7] expects a rank to hold 1 or more of several experts, got 0}}
nn.weights @w "experts.{expert}.w" over (expert = 0 to 8) held 0 : tensor<8x64xf32>

// -----

// weights C7, of no experts
// expected-error @below {{'nn.weights' op [C7] expects a rank to hold 1 or more of several experts, got 4}}
nn.weights @w "w" held 4 : tensor<8x64xf32>

// -----

// A reference is to the experts that a rank holds.
nn.weights @w "experts.{expert}.w" over (expert = 0 to 8) held 3 : tensor<8x64x64xf32>
!slots = tensor<?x64xf32, #nn.rows<slot, 2>>
!permutation = !moe.permutation<experts = 8, top = 2>
func.func @all_experts(%x: !slots, %p: !permutation) {
  // expected-error @below {{'moe.grouped_linear' op [C2] expects a weight of shape [8, 64, 64], got [3, 64, 64]}}
  %0 = moe.grouped_linear %x, %p, @w : !slots, !permutation -> !slots
  return
}

// -----

// constant_table C1
// expected-error @below {{'nn.constant_table' op [C1] expects a table row of shape [2, 8], got [2, 16]}}
nn.constant_table @t rope<theta = 1.0e4, dims = 16> : tensor<8x2x16xf32>

// -----

// constant_table C2
// expected-error @below {{'nn.constant_table' op [C2] expects a table of type 'f32', got 'bf16'}}
nn.constant_table @t rope<theta = 1.0e4, dims = 16> : tensor<8x2x8xbf16>

// -----

// pool C1
// expected-error @below {{'nn.pool' op [C1] expects one domain, layer, got 0 domains}}
nn.pool @c planes (k = 4 x f32) page 64 group 0

// -----

// pool C2
// expected-error @below {{'nn.pool' op [C2] expects different plane names, got 'k' twice}}
nn.pool @c over (layer = 0 to 3) planes (k = 4 x f32, k = 4 x f32) page 64 group 0

// -----

// pool C3
// expected-error @below {{'nn.pool' op [C3] expects a page of a positive multiple of 64 tokens, got 32}}
nn.pool @c over (layer = 0 to 3) planes (k = 4 x f32) page 32 group 0

// -----

// pool C4
// expected-error @below {{'nn.pool' op [C4] expects a group that is not negative, got -1}}
nn.pool @c over (layer = 0 to 3) planes (k = 4 x f32) page 64 group -1

// -----

// rows C1
// expected-error @below {{'#nn.rows' [C1] expects a dynamic dimension 0: row counts are known at run time only}}
func.func private @f(tensor<f32, #nn.rows<token>>)

// -----

// expected-error @below {{expected `k = heads x dims x type, v = heads x dims x type` with one type}}
func.func private @f(!nn.kv_view<k = 2 x f32, v = 2 x 16 x f32>)

// -----

// expected-error @below {{'nn.pool' op [C2] expects at least one plane}}
nn.pool @c over (layer = 0 to 3) planes () page 64 group 0

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @w "{layer}" over (layer = 0 to 3) : tensor<64xf32>
func.func @layer_is_a_tensor(%x: !x, %w: tensor<64xf32>) {
  // expected-error @below {{'nn.rms_norm' op [W3] expects a layer index beside @w, got 'tensor<64xf32>'}}
  %0 = "nn.rms_norm"(%x, %w) {eps = 1.0 : f64, weight = @w} : (!x, tensor<64xf32>) -> !x
  return
}

// -----

// Attributes of the dialect on other ops.
// expected-error @below {{'nn.limits' expects #nn.limits on a module, got 7 : i64 on 'builtin.module'}}
module attributes {nn.limits = 7 : i64} {}

// -----

// expected-error @below {{'nn.numerics' expects #nn.numerics on a module, got "f32" on 'builtin.module'}}
module attributes {nn.numerics = "f32"} {}

// -----

// expected-error @below {{'nn.entry' expects a name on a function that is no layer, got unit on 'func.func'}}
func.func private @step() attributes {nn.entry}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
// expected-error @below {{'nn.entry' expects a name on a function that is no layer, got "serve" on 'nn.layer'}}
nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {nn.entry = "serve"} {
  nn.yield %x : !x
}

// -----

// expected-error @below {{'nn.entree' is no attribute of nn}}
func.func private @step() attributes {nn.entree = "serve"}
