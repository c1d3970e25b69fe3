// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'#mem.certificate' [C1] expects no negative size, got -1}}
module attributes {mem.certificate = #mem.certificate<weights = 0, cache = -1, arena = 0, scratch = 0, logits = 0>} {}

// -----

// expected-error @below {{'mem.certificate' expects #mem.certificate on a module, got 7 : i64 on 'builtin.module'}}
module attributes {mem.certificate = 7 : i64} {}

// -----

// expected-error @below {{'mem.peek' is no attribute of mem}}
module attributes {mem.peek = 64 : i64} {}

// -----

// expected-error @below {{'mem.peak' expects bytes as a 64-bit integer that is not negative on a function or a module, got -64 : i64 on 'builtin.module'}}
module attributes {mem.peak = -64 : i64} {}

// -----

// expected-error @below {{'mem.peak' expects bytes as a 64-bit integer that is not negative on a function or a module, got 64 : i32 on 'func.func'}}
func.func private @layer() attributes {mem.peak = 64 : i32}

// -----

// expected-error @below {{'mem.arguments' expects bytes that are not negative, for each tensor that a function takes, got array<i32: 64> on 'func.func'}}
func.func private @layer(tensor<4xf32>) attributes {mem.arguments = array<i32: 64>}

// -----

// expected-error @below {{'mem.arguments' expects bytes that are not negative, for each tensor that a function takes, got array<i64: 64, -64> on 'func.func'}}
func.func private @layer(tensor<4xf32>, tensor<4xf32>) attributes {mem.arguments = array<i64: 64, -64>}

// -----

// expected-error @below {{'mem.arguments' expects bytes that are not negative, for each tensor that a function takes, got array<i64: 64, 0> on 'func.func'}}
func.func private @layer(index, tensor<4xf32>) attributes {mem.arguments = array<i64: 64, 0>}

// -----

// expected-error @below {{'mem.arguments' expects bytes that are not negative, for each tensor that a function takes, got array<i64> on 'builtin.module'}}
module attributes {mem.arguments = array<i64>} {}
