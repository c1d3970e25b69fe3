// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'#dist.topology' [C1] expects at least one rank of 'host', got 0}}
module attributes {dist.topology = #dist.topology<"host", ranks = 0>} {}

// -----

// expected-error @below {{'#dist.topology' [C2] expects cores on every node of 'host', got 0}}
module attributes {dist.topology = #dist.topology<"host", ranks = 1, numa = [4, 0]>} {}

// -----

// expected-error @below {{'#dist.plan' [C1] expects expanded_from >= -1, got -2}}
module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = -2>} {}

// -----

// expected-error @below {{'#dist.plan' [C2] expects a tile_choice that is not negative, got -1}}
module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = 0, tile_choice = -1>} {}

// -----

// expected-error @below {{'#dist.plan' [C3] expects names of passes in without, got 7 : i64}}
module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = 0, without = ["fusion", 7]>} {}

// -----

// Attributes of the dialect are these two, on modules.
// expected-error @below {{'dist.x' is no attribute of dist}}
module attributes {dist.x = #dist.topology<"host", ranks = 1>} {}

// -----

// expected-error @below {{'dist.plan' expects #dist.plan on a module, got #dist.topology<"host", ranks = 1> on 'builtin.module'}}
module attributes {dist.plan = #dist.topology<"host", ranks = 1>} {}

// -----

// expected-error @below {{'dist.topology' expects #dist.topology on a module, got #dist.topology<"host", ranks = 1> on 'func.func'}}
func.func @f() attributes {dist.topology = #dist.topology<"host", ranks = 1>} { return }
