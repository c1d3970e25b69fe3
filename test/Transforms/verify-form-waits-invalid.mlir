// RUN: k2c-opt %s --verify-form=form=runtime --split-input-file --verify-diagnostics

// What may stand beside an exchange: launches that have other addresses, branches and loops of these, arithmetic,
// weights. Counts of rows that came are taken behind the wait, in its turn of the loop. No diagnostic.
rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 272 quota 10
rt.collective @site1 site 1 op all_to_all_rows axis ep members 2 row_bytes 256
rt.collective @site2 site 2 op all_to_all_rows axis ep members 2 row_bytes 272
nn.weights @w "w" : tensor<64x64xbf16>
rt.weight_slots @w.rows of @w first 0 count 1 bytes 8192 layout #rt.row_major<bf16, 4096>
func.func private @experts(%l: index) {
  %m = rt.arena 0 bytes 5440
  %sent = rt.arena 5440 bytes 32
  %in = rt.arena 5504 bytes 5440
  %came = rt.arena 10944 bytes 32
  %x = rt.arena 11008 bytes 64
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
  %u = rt.arena 11264 bytes 256
  %v = rt.arena 11520 bytes 32
  rt.collective_start @site1 layer %l source %u to %v result %u from %v
  rt.collective_wait @site1 layer %l
  rt.collective_wait @site0 layer %l
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
rt.program @program entries {serve = @step} arena 16384 scratch 512

// -----

// Stages forward rows in functions that an entry calls, for each half of a step. No diagnostic.
rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 256
rt.collective @site1 site 1 op send axis pp members 2 row_bytes 256 to 0
func.func private @receive0() {
  %x = rt.arena 0 bytes 256
  rt.collective_start @site0 rows %x
  rt.collective_wait @site0
  return
}
func.func private @send1() {
  %x = rt.arena 0 bytes 256
  rt.collective_start @site1 rows %x
  rt.collective_wait @site1
  return
}
func.func @step() {
  func.call @receive0() : () -> ()
  rt.second_half {
    func.call @receive0() : () -> ()
  }
  func.call @send1() : () -> ()
  rt.second_half {
    func.call @send1() : () -> ()
  }
  return
}
rt.program @program entries {serve = @step} arena 8192 second 4096 scratch 512

// -----

// What a stage sends is made of what came.
rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 256
rt.collective @site1 site 1 op send axis pp members 2 row_bytes 256 to 0
func.func private @receive0() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site0 rows %x
  rt.collective_wait @site0
  return
}
func.func private @send1() {
  %x = rt.arena 0 bytes 64
  // expected-error @below {{runtime form: @site1 sends before rows came to @site0; wait for these first}}
  rt.collective_start @site1 rows %x
  rt.collective_wait @site1
  return
}
func.func @step() {
  func.call @send1() : () -> ()
  func.call @receive0() : () -> ()
  return
}
rt.program @program entries {serve = @step} arena 8192 scratch 512

// -----

rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 256
rt.collective @site1 site 1 op send axis pp members 2 row_bytes 256 to 0
func.func private @receive0() {
  %x = rt.arena 0 bytes 64
  // expected-error @below {{runtime form: @site0 was started before in this half of the step; forward rows once}}
  rt.collective_start @site0 rows %x
  rt.collective_wait @site0
  return
}
func.func private @send1() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site1 rows %x
  rt.collective_wait @site1
  return
}
func.func @step() {
  func.call @receive0() : () -> ()
  func.call @receive0() : () -> ()
  func.call @send1() : () -> ()
  return
}
rt.program @program entries {serve = @step} arena 8192 scratch 512

// -----

rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 256
rt.collective @site1 site 1 op send axis pp members 2 row_bytes 256 to 0
func.func private @receive0() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site0 rows %x
  rt.collective_wait @site0
  return
}
func.func private @send1() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site1 rows %x
  rt.collective_wait @site1
  return
}
// expected-error @below {{runtime form: @step does not come to @site1, where other stages wait for it; receive and send in every entry}}
func.func @step() {
  func.call @receive0() : () -> ()
  return
}
func.func @other() {
  func.call @receive0() : () -> ()
  func.call @send1() : () -> ()
  return
}
rt.program @program entries {other = @other, serve = @step} arena 8192 scratch 512

// -----

// The second half of a step goes on, too.
rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 256
rt.collective @site1 site 1 op send axis pp members 2 row_bytes 256 to 0
func.func private @receive0() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site0 rows %x
  rt.collective_wait @site0
  return
}
func.func private @send1() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site1 rows %x
  rt.collective_wait @site1
  return
}
// expected-error @below {{runtime form: @step does not come to @site1 in each half of a step, where other stages wait for it; receive and send in every entry}}
func.func @step() {
  func.call @receive0() : () -> ()
  rt.second_half {
    func.call @receive0() : () -> ()
  }
  func.call @send1() : () -> ()
  return
}
rt.program @program entries {serve = @step} arena 8192 second 4096 scratch 512

// -----

// Rows of two messages are told apart by their order.
rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 256
rt.collective @site1 site 1 op send axis pp members 2 row_bytes 256 to 0
func.func private @receive0() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site0 rows %x
  rt.collective_wait @site0
  return
}
func.func private @send1() {
  %x = rt.arena 0 bytes 64
  // expected-error @below {{runtime form: @site1 was started for the second half before, and stages match rows by their order; forward the first half first}}
  rt.collective_start @site1 rows %x
  rt.collective_wait @site1
  return
}
func.func @step() {
  func.call @receive0() : () -> ()
  rt.second_half {
    func.call @receive0() : () -> ()
    func.call @send1() : () -> ()
  }
  func.call @send1() : () -> ()
  return
}
rt.program @program entries {serve = @step} arena 8192 second 4096 scratch 512

// -----

// expected-error @below {{runtime form: 2 sites send to @site0; have one send for each receive}}
rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 256
rt.collective @site1 site 1 op send axis pp members 2 row_bytes 256 to 0
rt.collective @site2 site 2 op send axis pp members 2 row_bytes 256 to 0
func.func private @receive0() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site0 rows %x
  rt.collective_wait @site0
  return
}
func.func private @send1() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site1 rows %x
  rt.collective_wait @site1
  return
}
func.func private @send2() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site2 rows %x
  rt.collective_wait @site2
  return
}
func.func @step() {
  func.call @receive0() : () -> ()
  func.call @send1() : () -> ()
  func.call @send2() : () -> ()
  return
}
rt.program @program entries {serve = @step} arena 8192 scratch 512

// -----

// A stage has some layers, and others have more of them.
rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 256
func.func private @receive0() {
  %x = rt.arena 0 bytes 64
  // expected-error @below {{runtime form: 'rt.collective_start' of @site0 is not in a function that entries of rt.program call, and stages forward rows once a step; take it out of what layers do}}
  rt.collective_start @site0 rows %x
  rt.collective_wait @site0
  return
}
func.func @step() {
  %one = arith.constant 1 : index
  %from, %end = rt.stage_layers 0 to 4
  scf.for %l = %from to %end step %one {
    func.call @receive0() : () -> ()
  }
  return
}
rt.program @program entries {serve = @step} arena 8192 scratch 512

// -----

rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 128
// expected-error @below {{runtime form: @site1 sends rows of 256 bytes to site 0, which does not receive such rows; send to the site where the next stage takes them}}
rt.collective @site1 site 1 op send axis pp members 2 row_bytes 256 to 0
func.func private @receive0() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site0 rows %x
  rt.collective_wait @site0
  return
}
func.func private @send1() {
  %x = rt.arena 0 bytes 64
  rt.collective_start @site1 rows %x
  rt.collective_wait @site1
  return
}
func.func @step() {
  func.call @receive0() : () -> ()
  func.call @send1() : () -> ()
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
  %p = rt.arena 0 bytes 64
  rt.collective_start @site0 source %p to %p result %p from %p
  rt.collective_wait @site0
  // expected-error @below {{runtime form: a second 'rt.collective_start' is of @site0; a site has one start and one wait}}
  rt.collective_start @site0 source %p to %p result %p from %p
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0 bytes 64
  rt.collective_start @site0 source %p to %p result %p from %p
  rt.collective_wait @site0
  // expected-error @below {{runtime form: a second 'rt.collective_wait' is of @site0; a site has one start and one wait}}
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0 bytes 64
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
  %p = rt.arena 0 bytes 64
  // expected-error @below {{runtime form: the wait for @site0 is not behind its start on every path; wait once, where the start has been}}
  rt.collective_wait @site0
  rt.collective_start @site0 source %p to %p result %p from %p
  return
}

// -----

// The wait is taken by all ranks, and not on the path of the start alone.
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0 bytes 64
  %c = arith.constant true
  rt.collective_start @site0 source %p to %p result %p from %p
  // expected-error @below {{runtime form: 'scf.if' waits for @site0 on some path alone; start and wait on both sides of it, or within}}
  scf.if %c {
    rt.collective_wait @site0
  }
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f(%q: !rt.ptr) {
  %p = rt.arena 0 bytes 64
  // expected-error @below {{runtime form: a buffer of @site0 is no address of the arena; exchange what assign-memory has placed}}
  rt.collective_start @site0 source %p to %p result %q from %p
  rt.collective_wait @site0
  return
}

// -----

rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f(%g: i64) {
  %p = rt.arena 0 bytes 64
  %in = rt.arena 64 bytes 64
  rt.collective_start @site0 source %p to %p result %in from %p
  %same = rt.arena 64 bytes 64
  // expected-error @below {{runtime form: 'rt.launch' takes bytes [64, 128) of the arena, of which the exchange has bytes [64, 128), while @site0 is in flight; wait for it first}}
  rt.launch @k grid(%g) args(%same) : !rt.ptr
  rt.collective_wait @site0
  return
}

// -----

rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f(%g: i64) {
  %p = rt.arena 0 bytes 64
  %c = arith.constant true
  rt.collective_start @site0 source %p to %p result %p from %p
  scf.if %c {
    // expected-error @below {{'rt.launch' takes bytes [0, 64) of the arena, of which the exchange has bytes [0, 64), while @site0 is in flight; wait for it first}}
    rt.launch @k grid(%g) args(%p) : !rt.ptr
  }
  rt.collective_wait @site0
  return
}

// -----

rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f(%g: i64, %q: !rt.ptr) {
  %p = rt.arena 0 bytes 64
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
  %p = rt.arena 0 bytes 64
  %q = rt.arena 64 bytes 64
  rt.collective_start @site0 source %p to %p result %p from %p
  // expected-error @below {{'rt.collective_start' takes bytes [0, 64) of the arena, of which the exchange has bytes [0, 64), while @site0 is in flight; wait for it first}}
  rt.collective_start @site1 source %q to %q result %q from %p
  rt.collective_wait @site1
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func private @g()
func.func @f() {
  %p = rt.arena 0 bytes 64
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
  %p = rt.arena 0 bytes 64
  %q = rt.arena 64 bytes 64
  rt.collective_start @site0 source %p to %p result %p from %p
  // expected-error @below {{runtime form: 'rt.arrived' counts rows of @site0 where nothing has waited for them; count behind the wait}}
  %n = rt.arrived @site0
  rt.collective_wait @site0
  return
}

// -----

rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256 quota 10
func.func @f(%g: i64) {
  %p = rt.arena 0 bytes 64
  %q = rt.arena 64 bytes 64
  // expected-error @below {{runtime form: 'rt.launch' counts rows of @site0 where nothing has waited for them; count behind the wait}}
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
  %p = rt.arena 0 bytes 64
  rt.collective_start @site0 source %p to %p result %p from %p
  rt.collective_wait @site0
  return
}
func.func @g() {
  // expected-error @below {{'rt.arrived' counts rows of @site0 where nothing has waited for them; count behind the wait}}
  %n = rt.arrived @site0
  return
}

// -----

// A function is looked at where it is called.
rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func private @g() {
  %p = rt.arena 0 bytes 64
  %t = rt.rows token
  // expected-error @below {{'rt.launch' takes bytes [0, 64) of the arena, of which the exchange has bytes [0, 64), while @site0 is in flight; wait for it first}}
  rt.launch @k grid(%t) args(%p) : !rt.ptr
  return
}
func.func @f() {
  %p = rt.arena 0 bytes 64
  func.call @g() : () -> ()
  rt.collective_start @site0 source %p to %p result %p from %p
  func.call @g() : () -> ()
  rt.collective_wait @site0
  return
}

// -----

// A wait may be in another function than its start, but comes once for each.
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func private @begin() {
  %p = rt.arena 0 bytes 64
  // expected-error @below {{runtime form: @site0 is in flight here; wait for it before it starts again}}
  rt.collective_start @site0 source %p to %p result %p from %p
  return
}
func.func private @end() {
  rt.collective_wait @site0
  return
}
func.func @f() {
  func.call @begin() : () -> ()
  func.call @end() : () -> ()
  func.call @begin() : () -> ()
  func.call @begin() : () -> ()
  func.call @end() : () -> ()
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func private @begin() {
  %p = rt.arena 0 bytes 64
  // expected-error @below {{runtime form: nothing waits for @site0 before @f ends; wait on every path}}
  rt.collective_start @site0 source %p to %p result %p from %p
  return
}
func.func private @end() {
  rt.collective_wait @site0
  return
}
func.func @f() {
  func.call @begin() : () -> ()
  return
}
func.func @g() {
  func.call @begin() : () -> ()
  func.call @end() : () -> ()
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0 bytes 64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{runtime form: 'scf.for' starts @site0 on some path alone; start and wait on both sides of it, or within}}
  scf.for %i = %c0 to %c1 step %c1 {
    rt.collective_start @site0 source %p to %p result %p from %p
  }
  rt.collective_wait @site0
  return
}

// -----

// The halves of a step have buffers of their own, and each waits for what it has started. No diagnostic.
rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256 quota 1
func.func private @begin() {
  %p = rt.arena 0 bytes 512
  %c = rt.arena 512 bytes 32
  %t = rt.rows token
  rt.launch @k grid(%t) args(%p) : !rt.ptr
  rt.collective_start @site0 source %p to %c result %p from %c
  return
}
func.func private @end() {
  %p = rt.arena 0 bytes 512
  rt.collective_wait @site0
  %n = rt.arrived @site0
  rt.launch @k in @site0 grid(%n) args(%p) : !rt.ptr
  return
}
func.func @halves() {
  func.call @begin() : () -> ()
  rt.second_half {
    func.call @begin() : () -> ()
  }
  func.call @end() : () -> ()
  rt.second_half {
    func.call @end() : () -> ()
  }
  return
}
rt.program @program entries {serve_halves = @halves} arena 8192 second 4096 scratch 512

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func private @begin() {
  %p = rt.arena 0 bytes 64
  rt.collective_start @site0 source %p to %p result %p from %p
  return
}
func.func private @end() {
  // expected-error @below {{runtime form: the wait for @site0 is not behind its start on every path}}
  rt.collective_wait @site0
  return
}
func.func @halves() {
  func.call @begin() : () -> ()
  rt.second_half {
    func.call @end() : () -> ()
  }
  return
}
rt.program @program entries {serve_halves = @halves} arena 8192 second 4096 scratch 512

// -----

func.func private @second() {
  // expected-error @below {{runtime form: this is done for the second half already; a step has two}}
  rt.second_half {
  }
  return
}
func.func @halves() {
  rt.second_half {
    func.call @second() : () -> ()
  }
  return
}
rt.program @program entries {serve_halves = @halves} arena 8192 second 4096 scratch 512

// -----

// Ranks have tokens of their own.
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 256
func.func @f() {
  %p = rt.arena 0 bytes 64
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
  %p = rt.arena 0 bytes 64
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
  %p = rt.arena 0 bytes 64
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
  %p = rt.arena 0 bytes 64
  %c4 = arith.constant 4 : i64
  %deep = arith.cmpi slt, %n, %c4 : i64
  scf.if %deep {
    // expected-error @below {{'rt.collective_start' is an exchange or has one, and is in 'scf.if', which is decided by argument 0 of 'func.func', and that may differ between ranks}}
    rt.collective_start @site0 source %p to %p result %p from %p
    rt.collective_wait @site0
  }
  return
}

// -----

// Slices are buffers of their exchange, each of them, and so is what they are of. Others may be used beside it.
rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op scatter_slices axis tp members 2 row_bytes 256
func.func @step() {
  %p = rt.arena 0 bytes 64
  %p0 = rt.arena 4096 bytes 64
  %p1 = rt.arena 8192 bytes 64
  %x = rt.arena 12288 bytes 64
  %n = rt.rows gathered
  rt.collective_start @site0 source %p slices %p0, %p1
  rt.launch @k gathered grid(%n) args(%x) : !rt.ptr
  // expected-error @below {{runtime form: 'rt.launch' takes bytes [8192, 8256) of the arena, of which the exchange has bytes [8192, 8256), while @site0 is in flight; wait for it first}}
  rt.launch @k grid(%n) args(%p1) : !rt.ptr
  rt.collective_wait @site0
  return
}
rt.program @program entries {serve = @step} arena 16384 scratch 512

// -----

rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op gather_slices axis tp members 2 row_bytes 256
func.func @step() {
  %x = rt.arena 0 bytes 64
  %all = rt.arena 4096 bytes 64
  %n = rt.rows token
  rt.collective_start @site0 source %x slices %all
  // expected-error @below {{runtime form: 'rt.launch' takes bytes [0, 64) of the arena, of which the exchange has bytes [0, 64), while @site0 is in flight; wait for it first}}
  rt.launch @k grid(%n) args(%x) : !rt.ptr
  rt.collective_wait @site0
  return
}
rt.program @program entries {serve = @step} arena 16384 scratch 512

// -----

// Not its first byte: some within it.
rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op gather_slices axis tp members 2 row_bytes 256
func.func @step() {
  %x = rt.arena 0 bytes 512
  %all = rt.arena 4096 bytes 1024
  %behind = rt.arena 5120 bytes 64
  %inside = rt.arena 4112 bytes 16
  %n = rt.rows token
  rt.collective_start @site0 source %x slices %all
  rt.launch @k grid(%n) args(%behind) : !rt.ptr
  // expected-error @below {{runtime form: 'rt.launch' takes bytes [4112, 4128) of the arena, of which the exchange has bytes [4096, 5120), while @site0 is in flight; wait for it first}}
  rt.launch @k grid(%n) args(%inside) : !rt.ptr
  rt.collective_wait @site0
  return
}
rt.program @program entries {serve = @step} arena 16384 scratch 512

// -----

// Columns of a value are the value.
rt.kernel @k id 0 hash "k2c_aa" variants ["all"]
rt.collective @site0 site 0 op gather_slices axis tp members 2 row_bytes 256
func.func @step() {
  %x = rt.arena 0 bytes 512
  %all = rt.arena 4096 bytes 1024
  %columns = rt.arena 0 bytes 512 skip 64
  %n = rt.rows token
  rt.collective_start @site0 source %x slices %all
  // expected-error @below {{runtime form: 'rt.launch' takes bytes [0, 512) of the arena, of which the exchange has bytes [0, 512), while @site0 is in flight; wait for it first}}
  rt.launch @k grid(%n) args(%columns) : !rt.ptr
  rt.collective_wait @site0
  return
}
rt.program @program entries {serve = @step} arena 16384 scratch 512

// -----

// Layers go on by turns, whatever computes their numbers: each behind its own start. No diagnostic.
rt.collective @site0 site 0 op gather_slices axis tp members 2 row_bytes 256
func.func private @begin(%l: index) {
  %x = rt.arena 0 bytes 512
  %all = rt.arena 512 bytes 1024
  rt.collective_start @site0 layer %l source %x slices %all
  return
}
func.func private @end(%l: index) {
  rt.collective_wait @site0 layer %l
  return
}
func.func @halves() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %l = %c0 to %c4 step %c1 {
    %next = arith.addi %l, %c1 : index
    func.call @begin(%next) : (index) -> ()
    rt.second_half {
      func.call @begin(%l) : (index) -> ()
    }
    %again = arith.addi %l, %c1 : index
    func.call @end(%again) : (index) -> ()
    rt.second_half {
      func.call @end(%l) : (index) -> ()
    }
  }
  func.call @begin(%c4) : (index) -> ()
  %four = arith.constant 4 : index
  func.call @end(%four) : (index) -> ()
  return
}
rt.program @program entries {serve_halves = @halves} arena 8192 second 4096 scratch 512

// -----

rt.collective @site0 site 0 op gather_slices axis tp members 2 row_bytes 256
func.func private @begin(%l: index) {
  %x = rt.arena 0 bytes 512
  %all = rt.arena 512 bytes 1024
  rt.collective_start @site0 layer %l source %x slices %all
  return
}
func.func private @end(%l: index) {
  // expected-error @below {{runtime form: the wait for @site0 is of another layer than its start; go on with the layer that has begun it}}
  rt.collective_wait @site0 layer %l
  return
}
func.func @step() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %l = %c0 to %c4 step %c1 {
    func.call @begin(%l) : (index) -> ()
    func.call @end(%c1) : (index) -> ()
  }
  return
}
rt.program @program entries {serve = @step} arena 8192 scratch 512

// -----

// The next turn of a loop is of another layer.
rt.collective @site0 site 0 op gather_slices axis tp members 2 row_bytes 256
func.func private @begin(%l: index) {
  %x = rt.arena 0 bytes 512
  %all = rt.arena 512 bytes 1024
  rt.collective_start @site0 layer %l source %x slices %all
  return
}
func.func private @end(%l: index) {
  rt.collective_wait @site0 layer %l
  return
}
func.func @step() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  func.call @begin(%c0) : (index) -> ()
  // expected-error @below {{runtime form: 'scf.for' starts @site0 on some path alone; start and wait on both sides of it, or within}}
  scf.for %l = %c0 to %c4 step %c1 {
    func.call @end(%c0) : (index) -> ()
    func.call @begin(%l) : (index) -> ()
  }
  func.call @end(%c0) : (index) -> ()
  return
}
rt.program @program entries {serve = @step} arena 8192 scratch 512

// -----

module attributes {dist.topology = #dist.topology<"cpu4x2", ranks = 8 on 4 nodes>} {
  // expected-error @below {{runtime form: @site0 has 2 members, and group rail of the plan 4; have all of the group}}
  rt.collective @site0 site 0 op all_to_all_rows axis rail members 2 row_bytes 256
  func.func @step() {
    %p = rt.arena 0 bytes 256
    %c = rt.arena 256 bytes 32
    rt.collective_start @site0 source %p to %c result %p from %c
    rt.collective_wait @site0
    return
  }
}
