// RUN: k2c-opt %s --verify-form=form=runtime --split-input-file --verify-diagnostics

// What may stand beside an exchange: launches that have other addresses, branches and loops of these, arithmetic,
// weights. Counts of rows that came are taken behind the wait, in its turn of the loop. No diagnostic.
rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 272 quota 10
rt.collective @site1 site 1 op all_to_all_rows axis ep members 2 row_bytes 256
rt.collective @site2 site 2 op all_to_all_rows axis ep members 2 row_bytes 256
nn.weights @w "w" : tensor<64x64xbf16>
rt.weight_slots @w.rows of @w first 0 count 1 bytes 8192 layout #rt.row_major<bf16, 4096>
func.func private @experts(%l: index) {
  %m = rt.arena 0
  %sent = rt.arena 64
  %in = rt.arena 128
  %came = rt.arena 192
  %x = rt.arena 256
  %w = rt.weight @w.rows
  %t = rt.rows token
  %c4 = arith.constant 4 : i64
  %few = arith.cmpi slt, %t, %c4 : i64
  %last = arith.constant 3 : index
  %is_last = arith.cmpi eq, %l, %last : index
  rt.collective_start @site0 layer %l source %m to %sent result %in from %came
  rt.launch @k grid(%t) args(%x, %w) : !rt.ptr, !rt.ptr
  scf.if %few {
    rt.launch @k grid(%t) args(%x, %x) : !rt.ptr, !rt.ptr
  }
  %u = rt.arena 512
  %v = rt.arena 576
  rt.collective_start @site1 layer %l source %u to %u result %v from %v
  rt.collective_wait @site1
  rt.collective_wait @site0
  %n = rt.arrived @site0
  rt.launch @k in @site0 grid(%n) args(%in, %came) : !rt.ptr, !rt.ptr
  scf.if %is_last {
    rt.launch @k in @site0 grid(%n) args(%in, %came) : !rt.ptr, !rt.ptr
    rt.collective_start @site2 source %m to %sent result %in from %came
    rt.collective_wait @site2
  }
  return
}
func.func @step() {
  %none = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  scf.for %l = %none to %four step %one {
    %next = arith.addi %l, %one : index
    func.call @experts(%next) : (index) -> ()
  }
  func.call @experts(%none) : (index) -> ()
  return
}
rt.program @program entries {serve = @step} arena 8192 scratch 512

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
// expected-error @below {{runtime form: site 2 is entry 1 of the table; list sites by number from 0 without gaps}}
rt.collective @site2 site 2 op all_to_all_rows axis ep members 2 row_bytes 256

// -----

// expected-error @below {{runtime form: nothing starts @site0; sites are those of the program, numbered without gaps}}
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0
  rt.collective_start @site0 source %p to %p result %p from %p
  rt.collective_wait @site0
  // expected-error @below {{runtime form: a second 'rt.collective_start' is of @site0; a site has one start and one wait}}
  rt.collective_start @site0 source %p to %p result %p from %p
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0
  rt.collective_start @site0 source %p to %p result %p from %p
  rt.collective_wait @site0
  // expected-error @below {{runtime form: a second 'rt.collective_wait' is of @site0; a site has one start and one wait}}
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0
  // expected-error @below {{runtime form: @site0 has no wait; a site has one start and one wait}}
  rt.collective_start @site0 source %p to %p result %p from %p
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  // expected-error @below {{runtime form: @site0 has no start; a site has one start and one wait}}
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0
  // expected-error @below {{runtime form: the wait for @site0 is not behind its start on every path; wait in the block of the start}}
  rt.collective_wait @site0
  rt.collective_start @site0 source %p to %p result %p from %p
  return
}

// -----

// The wait is taken by all ranks, and not on the path of the start alone.
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0
  %c = arith.constant true
  rt.collective_start @site0 source %p to %p result %p from %p
  scf.if %c {
    // expected-error @below {{runtime form: the wait for @site0 is not behind its start on every path; wait in the block of the start}}
    rt.collective_wait @site0
  }
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f(%q: !rt.ptr) {
  %p = rt.arena 0
  // expected-error @below {{runtime form: a buffer of @site0 is no address of the arena; exchange what assign-memory has placed}}
  rt.collective_start @site0 source %p to %p result %q from %p
  rt.collective_wait @site0
  return
}

// -----

rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f(%g: i64) {
  %p = rt.arena 0
  %in = rt.arena 64
  rt.collective_start @site0 source %p to %p result %in from %p
  %same = rt.arena 64
  // expected-error @below {{runtime form: 'rt.launch' takes address 64 of the arena while @site0 is in flight; wait for it first}}
  rt.launch @k grid(%g) args(%same) : !rt.ptr
  rt.collective_wait @site0
  return
}

// -----

rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f(%g: i64) {
  %p = rt.arena 0
  %c = arith.constant true
  rt.collective_start @site0 source %p to %p result %p from %p
  scf.if %c {
    // expected-error @below {{'rt.launch' takes address 0 of the arena while @site0 is in flight; wait for it first}}
    rt.launch @k grid(%g) args(%p) : !rt.ptr
  }
  rt.collective_wait @site0
  return
}

// -----

rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f(%g: i64, %q: !rt.ptr) {
  %p = rt.arena 0
  rt.collective_start @site0 source %p to %p result %p from %p
  // expected-error @below {{runtime form: 'rt.launch' takes an address that may be one of the arena while @site0 is in flight; wait for it first}}
  rt.launch @k grid(%g) args(%q) : !rt.ptr
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
rt.collective @site1 site 1 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f(%g: i64) {
  %p = rt.arena 0
  %q = rt.arena 64
  rt.collective_start @site0 source %p to %p result %p from %p
  // expected-error @below {{'rt.collective_start' takes address 0 of the arena while @site0 is in flight; wait for it first}}
  rt.collective_start @site1 source %q to %q result %q from %p
  rt.collective_wait @site1
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func private @g() {
  return
}
func.func @f() {
  %p = rt.arena 0
  rt.collective_start @site0 source %p to %p result %p from %p
  // expected-error @below {{runtime form: 'func.call' may touch any buffer while @site0 is in flight; wait for it first}}
  func.call @g() : () -> ()
  rt.collective_wait @site0
  return
}

// -----

rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256 quota 10
func.func @f() {
  %p = rt.arena 0
  %q = rt.arena 64
  rt.collective_start @site0 source %p to %p result %p from %p
  // expected-error @below {{runtime form: 'rt.arrived' counts rows of @site0 where nothing has waited for them; count behind the wait, in its block}}
  %n = rt.arrived @site0
  rt.collective_wait @site0
  return
}

// -----

rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256 quota 10
func.func @f(%g: i64) {
  %p = rt.arena 0
  %q = rt.arena 64
  // expected-error @below {{runtime form: 'rt.launch' counts rows of @site0 where nothing has waited for them; count behind the wait, in its block}}
  rt.launch @k in @site0 grid(%g) args(%q) : !rt.ptr
  rt.collective_start @site0 source %p to %p result %p from %p
  rt.collective_wait @site0
  return
}

// -----

// Another function has not waited.
rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256 quota 10
func.func @f() {
  %p = rt.arena 0
  rt.collective_start @site0 source %p to %p result %p from %p
  rt.collective_wait @site0
  return
}
func.func @g() {
  // expected-error @below {{'rt.arrived' counts rows of @site0 where nothing has waited for them; count behind the wait, in its block}}
  %n = rt.arrived @site0
  return
}

// -----

// Ranks have tokens of their own.
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0
  %t = rt.rows token
  %c4 = arith.constant 4 : i64
  %few = arith.cmpi slt, %t, %c4 : i64
  scf.if %few {
    // expected-error @below {{runtime form: 'rt.collective_start' is an exchange or has one, and is in 'scf.if', which is decided by 'rt.rows', and that may differ between ranks; decide by constants and the layer, or exchange outside}}
    rt.collective_start @site0 source %p to %p result %p from %p
    rt.collective_wait @site0
  }
  return
}

// -----

// So have they other rows that arrived, and a function that has an exchange is one.
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256 quota 10
func.func private @experts() {
  %p = rt.arena 0
  rt.collective_start @site0 source %p to %p result %p from %p
  rt.collective_wait @site0
  %n = rt.arrived @site0
  %one = arith.constant 1 : i64
  scf.for %i = %one to %n step %one : i64 {
    // expected-error @below {{'func.call' is an exchange or has one, and is in 'scf.for', which is decided by 'rt.arrived', and that may differ between ranks}}
    func.call @again() : () -> ()
  }
  return
}
func.func private @again() {
  func.call @experts() : () -> ()
  return
}

// -----

// What one call gives a function is not what all give it.
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func private @experts(%n: i64) {
  %p = rt.arena 0
  %one = arith.constant 1 : i64
  scf.for %i = %one to %n step %one : i64 {
    // expected-error @below {{'rt.collective_start' is an exchange or has one, and is in 'scf.for', which is decided by 'rt.rows', and that may differ between ranks}}
    rt.collective_start @site0 source %p to %p result %p from %p
    rt.collective_wait @site0
  }
  return
}
func.func @f() {
  %four = arith.constant 4 : i64
  %t = rt.rows token
  func.call @experts(%four) : (i64) -> ()
  func.call @experts(%t) : (i64) -> ()
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f(%n: i64) {
  %p = rt.arena 0
  %c4 = arith.constant 4 : i64
  %deep = arith.cmpi slt, %n, %c4 : i64
  scf.if %deep {
    // expected-error @below {{'rt.collective_start' is an exchange or has one, and is in 'scf.if', which is decided by argument 0 of 'func.func', and that may differ between ranks}}
    rt.collective_start @site0 source %p to %p result %p from %p
    rt.collective_wait @site0
  }
  return
}
