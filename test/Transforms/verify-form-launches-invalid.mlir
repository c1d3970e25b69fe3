// RUN: k2c-opt %s --verify-form=form=runtime --split-input-file --verify-diagnostics

// Workers need not meet between launches of other places, of the same rows, of rows of two forms, of weights; and where
// they meet, all is as it is in a list. No diagnostic.
rt.kernel @add id 0 hash "k2c_aa" variants ["all"] touches ["reads|by_row", "writes|by_row"]
rt.kernel @all id 1 hash "k2c_ab" variants ["all"] touches ["reads", "writes"]
rt.kernel @expanded id 2 hash "k2c_ac" variants ["all"] touches ["reads", "writes|expanded"]
rt.kernel @absorbed id 3 hash "k2c_ad" variants ["all"] touches ["reads", "writes|absorbed"]
rt.kernel @silent id 4 hash "k2c_ae" variants ["all"]
func.func @f() {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 64 bytes 64
  %z = rt.arena 128 bytes 64
  %o = rt.logits
  %n = rt.rows token
  %g = rt.grid %n slots 1 rows_per_item 1 items 1
  %n1 = rt.rows token
  %g1 = rt.grid %n1 slots 1 rows_per_item 1 items 1
  rt.launch nowait @add grid(%g) args(%x, %y) : !rt.ptr, !rt.ptr
  rt.launch nowait @add grid(%g1) args(%y, %z) : !rt.ptr, !rt.ptr
  rt.launch @all grid(%g) args(%x, %o) : !rt.ptr, !rt.ptr
  rt.launch @all grid(%g) args(%z, %x) : !rt.ptr, !rt.ptr
  rt.launch nowait @expanded grid(%g) args(%x, %y) : !rt.ptr, !rt.ptr
  rt.launch @absorbed grid(%g) args(%x, %y) : !rt.ptr, !rt.ptr
  rt.launch @silent grid(%g) args(%x, %y) : !rt.ptr, !rt.ptr
  return
}
rt.program @program entries {serve = @f} arena 192 scratch 0

// -----

rt.kernel @all id 0 hash "k2c_ab" variants ["all"] touches ["reads", "writes"]
func.func @f() {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 64 bytes 64
  %z = rt.arena 96 bytes 64
  %w = rt.arena 192 bytes 64
  %g = arith.constant 1 : i64
  rt.launch nowait @all grid(%g) args(%x, %y) : !rt.ptr, !rt.ptr
  // expected-error @below {{runtime form: touches bytes [96, 160) of the arena while others have bytes [64, 128) of the arena in a nowait launch of @all; workers must meet between the two, as group-launches leaves it}}
  rt.launch @all grid(%g) args(%z, %w) : !rt.ptr, !rt.ptr
  return
}

// -----

// Items of two grids are not of the same rows.
rt.kernel @add id 0 hash "k2c_aa" variants ["all"] touches ["reads|by_row", "writes|by_row"]
func.func @f() {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 64 bytes 64
  %z = rt.arena 128 bytes 64
  %n = rt.rows token
  %g = rt.grid %n slots 1 rows_per_item 1 items 1
  %h = rt.grid %n slots 1 rows_per_item 2 items 1
  rt.launch nowait @add grid(%g) args(%x, %y) : !rt.ptr, !rt.ptr
  // expected-error @below {{runtime form: touches bytes [64, 128) of the arena while others have bytes [64, 128) of the arena in a nowait launch of @add}}
  rt.launch @add grid(%h) args(%y, %z) : !rt.ptr, !rt.ptr
  return
}

// -----

// Nor are those of a step and of a group of ranks.
rt.kernel @add id 0 hash "k2c_aa" variants ["all"] touches ["reads|by_row", "writes|by_row"]
func.func @f() {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 64 bytes 64
  %z = rt.arena 128 bytes 64
  %n = rt.rows gathered
  %g = rt.grid %n slots 1 rows_per_item 1 items 1
  rt.launch nowait @add gathered grid(%g) args(%x, %y) : !rt.ptr, !rt.ptr
  // expected-error @below {{runtime form: touches bytes [64, 128) of the arena while others have bytes [64, 128) of the arena in a nowait launch of @add}}
  rt.launch @add grid(%g) args(%y, %z) : !rt.ptr, !rt.ptr
  return
}

// -----

rt.kernel @head id 0 hash "k2c_aa" variants ["all"] touches ["reads", "writes"]
func.func @f() {
  %x = rt.arena 0 bytes 64
  %o = rt.logits
  %g = arith.constant 1 : i64
  rt.launch nowait @head grid(%g) args(%x, %o) : !rt.ptr, !rt.ptr
  // expected-error @below {{runtime form: touches the step's logits while others have the step's logits in a nowait launch of @head}}
  rt.launch @head grid(%g) args(%x, %o) : !rt.ptr, !rt.ptr
  return
}

// -----

// An argument may be any address.
rt.kernel @all id 0 hash "k2c_ab" variants ["all"] touches ["reads", "writes"]
func.func @f(%p: !rt.ptr) {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 64 bytes 64
  %z = rt.arena 128 bytes 64
  %g = arith.constant 1 : i64
  rt.launch nowait @all grid(%g) args(%x, %y) : !rt.ptr, !rt.ptr
  // expected-error @below {{runtime form: touches an address that may be one of the arena while others have bytes [64, 128) of the arena in a nowait launch of @all}}
  rt.launch @all grid(%g) args(%p, %z) : !rt.ptr, !rt.ptr
  return
}

// -----

rt.kernel @append id 0 hash "k2c_aa" variants ["all"] touches ["reads", "writes"]
rt.kernel @attention id 1 hash "k2c_ab" variants ["all"] touches ["reads", "writes"]
rt.plane_table @k index 0 count 1 plane "k" width 32 x f32 pages 4 group 0 layer_bytes 8192
rt.plane_table @v index 1 count 1 plane "v" width 32 x f32 pages 4 group 0 layer_bytes 8192
func.func @f(%l: index) {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 64 bytes 64
  %k = rt.plane @k[%l]
  %v = rt.plane @v[%l]
  %g = arith.constant 1 : i64
  rt.launch nowait @append grid(%g) args(%x, %k) : !rt.ptr, !rt.ptr
  // expected-error @below {{runtime form: touches the cache or a capture that others have in a nowait launch of @append; workers must meet between the two}}
  rt.launch @attention grid(%g) args(%v, %y) : !rt.ptr, !rt.ptr
  return
}

// -----

rt.kernel @routing id 0 hash "k2c_aa" variants ["all"] touches ["reads|experts"]
rt.kernel @maxima id 1 hash "k2c_ab" variants ["all"] touches ["reads|max_logit|in_any_order"]
func.func @f() {
  %s = rt.step
  %g = arith.constant 1 : i64
  rt.launch nowait @maxima grid(%g) args(%s) : !rt.step
  rt.launch nowait @maxima grid(%g) args(%s) : !rt.step
  rt.launch nowait @routing grid(%g) args(%s) : !rt.step
  // expected-error @below {{runtime form: touches the cache or a capture that others have in a nowait launch of @routing}}
  rt.launch @routing grid(%g) args(%s) : !rt.step
  return
}

// -----

rt.kernel @silent id 0 hash "k2c_aa" variants ["all"]
func.func @f() {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 64 bytes 64
  %g = arith.constant 1 : i64
  // expected-error @below {{runtime form: @silent does not say what it touches, and workers do not meet before or behind it; let them meet, or lower the kernel again}}
  rt.launch nowait @silent grid(%g) args(%x) : !rt.ptr
  rt.launch @silent grid(%g) args(%y) : !rt.ptr
  return
}

// -----

// Each half of a step has half of the arena.
func.func @f() {
  // expected-error @below {{runtime form: bytes [4032, 4160) of the arena are not in an arena of 4096 bytes; use one of assign-memory's size}}
  %x = rt.arena 4032 bytes 128
  return
}
rt.program @program entries {serve = @f} arena 8192 second 4096 scratch 0

// -----

// Nor does a GPU keep a row on a worker from launch to launch.
module attributes {kern.target = #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 4, ctas = 264,
                                           host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = []>>} {
rt.kernel @add id 0 hash "k2c_aa" variants ["all"] touches ["reads|by_row", "writes|by_row"]
func.func @f() {
  %x = rt.arena 0 bytes 64
  %y = rt.arena 64 bytes 64
  %z = rt.arena 128 bytes 64
  %n = rt.rows token
  %g = rt.grid %n slots 1 rows_per_item 1 items 1
  rt.launch nowait @add grid(%g) args(%x, %y) : !rt.ptr, !rt.ptr
  // expected-error @below {{runtime form: touches bytes [64, 128) of the arena while others have bytes [64, 128) of the arena in a nowait launch of @add}}
  rt.launch @add grid(%g) args(%y, %z) : !rt.ptr, !rt.ptr
  return
}
}
