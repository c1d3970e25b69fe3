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
  %t = rt.rows token
  // expected-error @below {{runtime form: no program has 'arith.index_cast'; it has rt, calls, scf.for, scf.if and arith.constant, arith.cmpi, arith.select, arith.addi, arith.subi, arith.muli, arith.divsi, arith.remsi, arith.maxsi, arith.minsi}}
  %i = arith.index_cast %t : i64 to index
  return
}

// -----

func.func @f(%n: i64) {
  // expected-error @below {{runtime form: 'arith.divsi' divides by what may be 0; a program divides by a constant of 1 or more}}
  %q = arith.divsi %n, %n : i64
  return
}

// -----

func.func @f(%n: i64) {
  %c1 = arith.constant 1 : i64
  // expected-error @below {{runtime form: a loop counts in signed 64 bits by a constant step of 1 or more}}
  scf.for unsigned %i = %c1 to %n step %c1 : i64 {
  }
  return
}

// -----

func.func @f(%n: i64) {
  %c = arith.constant true
  // expected-error @below {{runtime form: 'scf.if' has 1 results, and no program forwards values; run lower-to-rt first}}
  %r = scf.if %c -> i64 {
    scf.yield %n : i64
  } else {
    scf.yield %n : i64
  }
  return
}

// -----

// expected-error @below {{runtime form: plane @p is of cache group 9223372036854775807, the last of a program is 7; have fewer groups}}
rt.plane_table @p index 0 count 1 plane "k" width 32 x f32 pages 4 group 9223372036854775807 layer_bytes 8192

// -----

rt.plane_table @p index 0 count 1 plane "k" width 32 x f32 pages 4 group 0 layer_bytes 8192
// expected-error @below {{runtime form: plane @q is of cache group 2, and no plane of group 1; number groups from 0 without gaps}}
rt.plane_table @q index 1 count 1 plane "k" width 32 x f32 pages 4 group 2 layer_bytes 8192

// -----

rt.plane_table @p index 0 count 1 plane "k" width 32 x f32 pages 4 group 0 layer_bytes 8192
// expected-error @below {{runtime form: plane @q is of cache group 0 with 8 pages a layer, @p has 4; a group has one block table: make it two groups}}
rt.plane_table @q index 1 count 1 plane "v" width 32 x f32 pages 8 group 0 layer_bytes 8192

// -----

// All arithmetic of a program, a loop, a branch, a call, and planes of two groups: no diagnostic.
rt.plane_table @p index 0 count 1 plane "k" width 32 x f32 pages 8 group 1 layer_bytes 8192
rt.plane_table @q index 1 count 1 plane "k" width 32 x f32 pages 4 group 0 layer_bytes 8192
rt.plane_table @r index 2 count 1 plane "v" width 32 x f32 pages 8 group 1 layer_bytes 8192
func.func private @layer(%l: index, %from: !rt.ptr) {
  return
}
func.func @f() {
  %p = rt.arena 0 bytes 64
  %t = rt.rows token
  %c0 = arith.constant 0 : i64
  %c2 = arith.constant 2 : i64
  %i0 = arith.constant 0 : index
  %few = arith.cmpi slt, %t, %c2 : i64
  %a = arith.select %few, %t, %c2 : i64
  %b = arith.addi %a, %t : i64
  %c = arith.subi %b, %t : i64
  %d = arith.muli %c, %t : i64
  %e = arith.divsi %d, %c2 : i64
  %f = arith.remsi %e, %c2 : i64
  %g = arith.maxsi %f, %t : i64
  %h = arith.minsi %g, %t : i64
  scf.for %i = %c0 to %h step %c2 : i64 {
    scf.if %few {
      func.call @layer(%i0, %p) : (index, !rt.ptr) -> ()
    }
  }
  return
}
