// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// limits C1
// expected-error @below {{'#nn.limits' [C1] expects a positive bound 'gathered', got 0}}
module attributes {nn.limits = #nn.limits<token = 16 of 0, seq = 1, context = 1, output = 1>} {}

// -----

// limits C2
// expected-error @below {{'#nn.limits' [C2] expects at least 16 gathered rows, got 15}}
module attributes {nn.limits = #nn.limits<token = 16 of 15, seq = 1, context = 1, output = 1>} {}

// -----

// weights C8, parts of no dimension
// expected-error @below {{'nn.weights' op [C8] expects parts along a dimension, got one without the other}}
"nn.weights"() {sym_name = "w", source = "w", domains = [], parts = 2 : i64, type = tensor<64x64xf32>} : () -> ()

// -----

// weights C8, a dimension of no parts
// expected-error @below {{'nn.weights' op [C8] expects parts along a dimension, got one without the other}}
"nn.weights"() {sym_name = "w", source = "w", domains = [], along = 1 : i64, type = tensor<64x64xf32>} : () -> ()

// -----

// weights C8, behind the last dimension
// expected-error @below {{'nn.weights' op [C8] expects parts along one of dimensions 0 to 1, got 2}}
nn.weights @w "w" parts 2 along 2 : tensor<64x64xf32>

// -----

// weights C8, a dimension that counts alternatives
// expected-error @below {{'nn.weights' op [C8] expects parts along one of dimensions 1 to 2, got 0}}
nn.weights @w "{gate|up}" parts 2 along 0 : tensor<2x96x64xf32>

// -----

// weights C8, a dimension that counts experts, before that of alternatives
// expected-error @below {{'nn.weights' op [C8] expects parts along one of dimensions 2 to 3, got 1}}
nn.weights @w "{expert}.{gate|up}" over (expert = 0 to 8) parts 2 along 1 : tensor<8x2x96x64xf32>

// -----

// weights C8, one part
// expected-error @below {{'nn.weights' op [C8] expects two parts or more that divide 64, got 1}}
nn.weights @w "w" parts 1 along 0 : tensor<64x32xf32>

// -----

// weights C8, parts of several sizes
// expected-error @below {{'nn.weights' op [C8] expects two parts or more that divide 64, got 3}}
nn.weights @w "w" parts 3 along 0 : tensor<64x32xf32>

// -----

// A reference is to the part that a rank has.
!x = tensor<?x64xf32, #nn.rows<gathered>>
nn.weights @w "w" parts 2 along 1 : tensor<8x64xf32>
func.func @all_parts(%x: !x) {
  // expected-error @below {{'nn.linear' op [C2] expects weight columns 32 to equal input width 64}}
  %0 = nn.linear %x, @w : !x -> tensor<?x8xf32, #nn.rows<gathered>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @add_partials_c1(%p: !x) {
  // expected-error @below {{'nn.add_partials' op [C1] expects one row space, got #nn.rows<token> and #nn.rows<gathered>}}
  %0 = nn.add_partials %p, %p : !x, !x -> tensor<?x64xf32, #nn.rows<gathered>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!rounded = tensor<?x64xbf16, #nn.rows<token>>
func.func @add_partials_c2_element(%p: !x, %q: !rounded) {
  // expected-error @below {{'nn.add_partials' op [C2] expects an input of type 'f32', got 'bf16'}}
  %0 = nn.add_partials %p, %q : !x, !rounded -> !rounded
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!y = tensor<?x48xf32, #nn.rows<token>>
func.func @add_partials_c2_columns(%p: !x, %q: !y) {
  // expected-error @below {{'nn.add_partials' op [C2] expects input columns of shape [64], got [48]}}
  %0 = nn.add_partials %p, %q : !x, !y -> !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @add_partials_c3_one(%p: !x) {
  // expected-error @below {{'nn.add_partials' op [C3] expects inputs that are a power of two, two or more, got 1}}
  %0 = nn.add_partials %p : !x -> !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @add_partials_c3_three(%p: !x) {
  // expected-error @below {{'nn.add_partials' op [C3] expects inputs that are a power of two, two or more, got 3}}
  %0 = nn.add_partials %p, %p, %p : !x, !x, !x -> !x
  return
}
