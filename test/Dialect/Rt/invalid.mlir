// RUN: k2c-opt %s --split-input-file --verify-diagnostics

func.func private @s()
// expected-error @below {{'rt.program' op [C1] expects no negative size, got -1}}
rt.program @p entries {serve = @s} arena -1 scratch 0

// -----

// expected-error @below {{'rt.program' op [C2] expects @s to be a function}}
rt.program @p entries {serve = @s} arena 0 scratch 0

// -----

// expected-error @below {{'rt.program' op [C2] expects an entry, got none}}
rt.program @p entries {} arena 0 scratch 0

// -----

// expected-error @below {{'rt.program' op [C2] expects entry 'serve' to name a function, got "s"}}
rt.program @p entries {serve = "s"} arena 0 scratch 0

// -----

func.func private @s()
// expected-error @below {{'rt.program' op [C1] expects expanded_from >= -1, got -2}}
rt.program @p entries {serve = @s} arena 0 scratch 0 expanded_from -2

// -----

func.func @s(%l: index, %p: !rt.ptr) {
  return
}
// expected-error @below {{'rt.program' op [C2] expects entry @s to take nothing, got 'index', '!rt.ptr'}}
rt.program @p entries {serve = @s} arena 0 scratch 0

// -----

func.func private @s()
// expected-error @below {{'rt.program' op [C3] expects a body of @s}}
rt.program @p entries {serve = @s} arena 0 scratch 0

// -----

// No entry need reach the function.
func.func @s() {
  return
}
func.func private @f() -> i64 {
  %n = rt.rows token
  return %n : i64
}
// expected-error @below {{'rt.program' op [C3] expects @f to return nothing, got 'i64'}}
rt.program @p entries {serve = @s} arena 0 scratch 0

// -----

func.func @s() {
  return
}
func.func private @f() {
  func.call @f() : () -> ()
  return
}
// expected-error @below {{'rt.program' op [C4] expects no function to call itself, got a call of @f in @f}}
rt.program @p entries {serve = @s} arena 0 scratch 0

// -----

func.func @s() {
  func.call @f() : () -> ()
  return
}
func.func private @f() {
  func.call @g() : () -> ()
  return
}
func.func private @g() {
  %c = arith.constant true
  scf.if %c {
    func.call @f() : () -> ()
  }
  return
}
// expected-error @below {{'rt.program' op [C4] expects no function to call itself, got a call of @f in @g}}
rt.program @p entries {serve = @s} arena 0 scratch 0

// -----

func.func @s() {
  return
}
func.func @t() {
  func.call @s() : () -> ()
  return
}
// expected-error @below {{'rt.program' op [C4] expects no call of entry @s, got one in @t}}
rt.program @p entries {serve = @s, other = @t} arena 0 scratch 0

// -----

// Two calls of a function are none of itself: no diagnostic.
func.func @s() {
  func.call @f() : () -> ()
  func.call @g() : () -> ()
  return
}
func.func private @f() {
  func.call @g() : () -> ()
  return
}
func.func private @g() {
  return
}
rt.program @p entries {serve = @s} arena 0 scratch 0

// -----

// expected-error @below {{'rt.weight_slots' op [C1] expects a first slot that is not negative, got -1}}
rt.weight_slots @s of @w first -1 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>

// -----

// expected-error @below {{'rt.weight_slots' op [C1] expects a positive count and size, got 0 and 4096}}
rt.weight_slots @s of @w first 0 count 0 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>

// -----

// expected-error @below {{'rt.weight_slots' op [C2] expects positive items and item_bytes, got 0}}
rt.weight_slots @s of @w first 0 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64> share items 0 item_bytes 4096

// -----

// expected-error @below {{'rt.weight_slots' op [C3] expects a matrix for each of 4 experts, got 2}}
rt.weight_slots @s of @w first 0 count 1 bytes 8192 layout #rt.panels<bf16, matrices = 2, n = 32, k = 64> experts 4 share items 1 item_bytes 4096

// -----

// expected-error @below {{'rt.weight_slots' op [C3] expects a matrix for each of 2 experts, got 0}}
rt.weight_slots @s of @w first 0 count 1 bytes 8192 layout #rt.row_major<bf16, 4096> experts 2

// -----

// expected-error @below {{'rt.weight_slots' op [C4] expects two parts or more, got 1}}
rt.weight_slots @s of @w first 0 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64> parts 1

// -----

// expected-error @below {{'#rt.panels' [C1] expects positive sizes, got 0}}
rt.weight_slots @s of @w first 0 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 0, k = 64>

// -----

// expected-error @below {{'#rt.panels' [C2] expects columns and rows of a block, or neither, got 32 and 0}}
rt.weight_slots @s of @w first 0 count 1 bytes 4096 layout #rt.panels<f8E4M3FN, matrices = 1, n = 32, k = 64, block_columns = 32>

// -----

// expected-error @below {{'#rt.rows' [C1] expects positive sizes, got -64}}
rt.weight_slots @s of @w first 0 count 1 bytes 4096 layout #rt.rows<bf16, matrices = 1, n = 32, k = -64>

// -----

// expected-error @below {{'#rt.rows' [C2] expects columns and rows of a block, or neither, got 0 and 32}}
rt.weight_slots @s of @w first 0 count 1 bytes 4096 layout #rt.rows<f8E4M3FN, matrices = 1, n = 32, k = 64, block_rows = 32>

// -----

// expected-error @below {{'#rt.row_major' [C1] expects elements, got 0}}
rt.weight_slots @s of @w first 0 count 1 bytes 4096 layout #rt.row_major<f32, 0>

// -----

// expected-error @below {{'rt.plane_table' op [C1] expects no negative index, group or size, got -1}}
rt.plane_table @p index -1 count 1 plane "k" width 32 x f32 pages 1 group 0 layer_bytes 8192

// -----

// expected-error @below {{'rt.plane_table' op [C1] expects a positive count, width and pages, got 0}}
rt.plane_table @p index 0 count 0 plane "k" width 32 x f32 pages 1 group 0 layer_bytes 8192

// -----

// expected-error @below {{'rt.kernel' op [C1] expects an id that is not negative, got -1}}
rt.kernel @k id -1 hash "" variants []

// -----

// expected-error @below {{'rt.kernel' op [C2] expects a streamed argument to have a number and positive items and bytes, got 1, 0 and 64}}
rt.kernel @k id 0 hash "" variants [] streams 1 items 0 bytes 64

// -----

// expected-error @below {{'rt.kernel' op [C3] expects words of Touch, as "reads|by_row", got "eats"}}
rt.kernel @k id 0 hash "" variants [] touches ["reads", "eats"]

// -----

func.func @share_c1(%p: !rt.ptr, %n: i64) {
  // expected-error @below {{'rt.share' op [C1] expects positive items and bytes, got -64}}
  %from, %end = rt.share %p grid(%n) items 1 bytes -64 max 4096
  return
}

// -----

func.func @share_c2(%p: !rt.ptr, %n: i64) {
  // expected-error @below {{'rt.share' op [C2] expects `max` not to be negative, got -1}}
  %from, %end = rt.share %p grid(%n) items 1 bytes 64 max -1
  return
}

// -----

func.func @arena_c1(%i: index, %n: i64) {
  // expected-error @below {{'rt.arena' op [C1] expects an offset and bytes that are not negative, got -64 and 64}}
  %p = rt.arena -64 bytes 64
  return
}

// -----

func.func @arena_c1_bytes() {
  // expected-error @below {{'rt.arena' op [C1] expects an offset and bytes that are not negative, got 64 and -1}}
  %p = rt.arena 64 bytes -1
  return
}

// -----

func.func @arena_c2() {
  // expected-error @below {{'rt.arena' op [C2] expects to skip some of 64 bytes, got 64}}
  %p = rt.arena 0 bytes 64 skip 64
  return
}

// -----

func.func @weight_c1(%i: index, %n: i64) {
  // expected-error @below {{'rt.weight' op [C1] expects @w to be rt.weight_slots}}
  %p = rt.weight @w[%i]
  return
}

// -----

rt.weight_slots @w of @f first 0 count 3 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
func.func @weight_c2(%i: index, %n: i64) {
  // expected-error @below {{'rt.weight' op [C2] expects an ordinal for @w, which has 3 slots}}
  %p = rt.weight @w
  return
}

// -----

func.func @plane_c1(%i: index, %n: i64) {
  // expected-error @below {{'rt.plane' op [C1] expects @p to be an rt.plane_table}}
  %p = rt.plane @p[%i]
  return
}

// -----

func.func @grid_c1(%i: index, %n: i64) {
  // expected-error @below {{'rt.grid' op [C1] expects positive factors, got 0}}
  %g = rt.grid %n slots 1 rows_per_item 0 items 1
  return
}

// -----

func.func @launch_c1(%i: index, %n: i64) {
  %p = rt.arena 0 bytes 64
  // expected-error @below {{'rt.launch' op [C1] expects @k to be an rt.kernel}}
  rt.launch @k grid(%n) args(%p) : !rt.ptr
  return
}

// -----

rt.kernel @k id 0 hash "k" variants ["all"]
func.func @launch_c2(%i: index, %n: i64) {
  %p = rt.arena 0 bytes 64
  // expected-error @below {{'rt.launch' op [C2] expects a nowait launch to be followed by a launch, got 'rt.sample'}}
  rt.launch nowait @k grid(%n) args(%p) : !rt.ptr
  rt.sample
  rt.launch @k grid(%n) args(%p) : !rt.ptr
  return
}

// -----

rt.kernel @k id 0 hash "k" variants ["all"]
func.func @launch_c2_end(%i: index, %n: i64, %from: index, %to: index) {
  %p = rt.arena 0 bytes 64
  scf.for %l = %from to %to step %i {
    // expected-error @below {{'rt.launch' op [C2] expects a nowait launch to be followed by a launch, got the end of the block}}
    rt.launch nowait @k grid(%n) args(%p) : !rt.ptr
  }
  return
}

// -----

rt.kernel @k id 0 hash "k" variants ["all"] streams 1 items 2 bytes 2048
func.func @launch_c3(%n: i64) {
  %p = rt.arena 0 bytes 64
  // expected-error @below {{'rt.launch' op [C3] expects argument 1, which @k streams, to be an address, got '!rt.ptr'}}
  rt.launch @k grid(%n) args(%p) : !rt.ptr
  return
}

// -----

rt.kernel @k id 0 hash "k" variants ["all"] streams 1 items 2 bytes 2048
func.func @launch_c3_type(%n: i64) {
  %p = rt.arena 0 bytes 64
  // expected-error @below {{'rt.launch' op [C3] expects argument 1, which @k streams, to be an address, got '!rt.ptr', 'i64'}}
  rt.launch @k grid(%n) args(%p, %n) : !rt.ptr, i64
  return
}

// -----

rt.kernel @k id 0 hash "k" variants ["all"] touches ["reads"]
func.func @launch_c6(%n: i64) {
  %p = rt.arena 0 bytes 64
  // expected-error @below {{'rt.launch' op [C6] expects 1 arguments, which @k touches, got 2}}
  rt.launch @k grid(%n) args(%p, %n) : !rt.ptr, i64
  return
}
