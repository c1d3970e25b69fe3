// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'rt.collective' op [C1] expects a site that is not negative, got -1}}
rt.collective @s site -1 op all_to_all_rows axis ep members 2 row_bytes 64

// -----

// expected-error @below {{'rt.collective' op [C2] expects members, a positive size of rows and a positive quota, got 0}}
rt.collective @s site 0 op all_to_all_rows axis ep members 2 row_bytes 0

// -----

// expected-error @below {{'rt.collective' op [C2] expects members, a positive size of rows and a positive quota, got -4}}
rt.collective @s site 0 op all_to_all_rows axis ep members 2 row_bytes 64 quota -4

// -----

// expected-error @below {{'rt.collective' op [C2] expects members, a positive size of rows and a positive quota, got 0}}
rt.collective @s site 0 op all_to_all_rows axis ep members 0 row_bytes 64

// -----

// expected-error @below {{'rt.collective' op [C4] expects stages to send and receive along pp, slices to travel along tp, and others to do neither, got receive along ep}}
rt.collective @s site 0 op receive axis ep members 2 row_bytes 64

// -----

// expected-error @below {{'rt.collective' op [C4] expects stages to send and receive along pp, slices to travel along tp, and others to do neither, got all_to_all_rows along pp}}
rt.collective @s site 0 op all_to_all_rows axis pp members 2 row_bytes 64

// -----

// expected-error @below {{'rt.collective' op [C4] expects stages to send and receive along pp, slices to travel along tp, and others to do neither, got gather_slices along ep}}
rt.collective @s site 0 op gather_slices axis ep members 2 row_bytes 64

// -----

// expected-error @below {{'rt.collective' op [C4] expects stages to send and receive along pp, slices to travel along tp, and others to do neither, got all_to_all_rows along tp}}
rt.collective @s site 0 op all_to_all_rows axis tp members 2 row_bytes 64

// -----

// expected-error @below {{'rt.collective' op [C4] expects stages to send and receive along pp, slices to travel along tp, and others to do neither, got scatter_slices along pp}}
rt.collective @s site 0 op scatter_slices axis pp members 2 row_bytes 64

// -----

// expected-error @below {{'rt.collective' op [C5] expects no quota of gather_slices, got 8}}
rt.collective @s site 0 op gather_slices axis tp members 2 row_bytes 64 quota 8

// -----

// expected-error @below {{'rt.collective' op [C5] expects no quota of receive, got 8}}
rt.collective @s site 0 op receive axis pp members 2 row_bytes 64 quota 8

// -----

func.func @placement_c1(%l: index) {
  // expected-error @below {{'rt.placement' op [C1] expects 0 < experts <= 8 slots, got 0}}
  %t = rt.placement[%l] experts 0 slots 8 places of rank count 8
  return
}

// -----

func.func @placement_c1_slots(%l: index) {
  // expected-error @below {{'rt.placement' op [C1] expects 0 < experts <= 8 slots, got 9}}
  %t = rt.placement[%l] experts 9 slots 8 places of rank count 8
  return
}

// -----

func.func @placement_c2(%l: index) {
  // expected-error @below {{'rt.placement' op [C2] expects slots of a holder that divide 8 slots, got 3}}
  %t = rt.placement[%l] experts 8 slots 8 held of rank count 3
  return
}

// -----

func.func @placement_c2_none(%l: index) {
  // expected-error @below {{'rt.placement' op [C2] expects slots of a holder that divide 8 slots, got 4}}
  %t = rt.placement[%l] experts 8 slots 8 held of world count 4
  return
}

// -----

rt.kernel @k id 0 hash "a" variants ["all"]
func.func @collective_start_c1(%p: !rt.ptr) {
  // expected-error @below {{'rt.collective_start' op [C1] expects @k to be an rt.collective}}
  rt.collective_start @k source %p to %p result %p from %p
  return
}

// -----

rt.kernel @k id 0 hash "a" variants ["all"]
func.func @collective_wait_c1() {
  // expected-error @below {{'rt.collective_wait' op [C1] expects @k to be an rt.collective}}
  rt.collective_wait @k
  return
}

// -----

func.func @collective_wait_c1_nothing() {
  // expected-error @below {{'rt.collective_wait' op [C1] expects @nothing to be an rt.collective}}
  rt.collective_wait @nothing
  return
}

// -----

rt.kernel @k id 0 hash "a" variants ["all"]
func.func @arrived_c1() {
  // expected-error @below {{'rt.arrived' op [C1] expects @k to be an rt.collective}}
  %n = rt.arrived @k
  return
}

// -----

// The program knows how many rows come there.
rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 64
func.func @arrived_c1_quota() {
  // expected-error @below {{'rt.arrived' op [C1] expects @site0 to have a quota}}
  %n = rt.arrived @site0
  return
}

// -----

rt.kernel @k id 0 hash "a" variants ["all"]
func.func @launch_c4(%g: i64, %p: !rt.ptr) {
  // expected-error @below {{'rt.launch' op [C4] expects @k to be an rt.collective}}
  rt.launch @k in @k grid(%g) args(%p) : !rt.ptr
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 64
rt.kernel @k id 0 hash "a" variants ["all"]
func.func @launch_c4_quota(%g: i64, %p: !rt.ptr) {
  // expected-error @below {{'rt.launch' op [C4] expects @site0 to have a quota}}
  rt.launch @k in @site0 grid(%g) args(%p) : !rt.ptr
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 64
rt.kernel @k id 0 hash "a" variants ["all"]
func.func @launch_c2_collective(%g: i64, %p: !rt.ptr) {
  // expected-error @below {{'rt.launch' op [C2] expects a nowait launch to be followed by a launch, got 'rt.collective_wait'}}
  rt.launch nowait @k grid(%g) args(%p) : !rt.ptr
  rt.collective_wait @site0
  return
}

// -----

func.func @second_half_c1(%g: i64) {
  %p = rt.arena 0 bytes 64
  // expected-error @below {{'rt.second_half' op [C1] expects to take indices from outside that are arguments of blocks, got a '!rt.ptr' that was computed there}}
  rt.second_half {
    rt.prefetch %p, %p
  }
  return
}

// -----

func.func @second_half_c1_argument(%p: !rt.ptr) {
  // expected-error @below {{'rt.second_half' op [C1] expects to take indices from outside that are arguments of blocks, got a '!rt.ptr'}}
  rt.second_half {
    rt.prefetch %p, %p
  }
  return
}

// -----

func.func @second_half_c2() {
  rt.second_half {
    // expected-error @below {{'rt.second_half' op [C2] expects to be in no other one}}
    rt.second_half {
    }
  }
  return
}

// -----

func.func @step() {
  return
}
// expected-error @below {{'rt.program' op [C5] expects the second arena at half of 8192 bytes, got 2048}}
rt.program @program entries {serve = @step} arena 8192 second 2048 scratch 512

// -----

func.func @step() {
  return
}
// expected-error @below {{'rt.program' op [C5] expects the second arena at half of 0 bytes, got 0}}
rt.program @program entries {serve = @step} arena 0 second 0 scratch 512

// -----

func.func @step() {
  rt.second_half {
  }
  return
}
// expected-error @below {{'rt.program' op [C5] expects a second arena for what is done for the second half of a step, got none}}
rt.program @program entries {serve = @step} arena 8192 scratch 512

// -----

// expected-error @below {{'rt.collective' op [C3] expects a site to which it goes of send}}
rt.collective @s site 0 op send axis pp members 2 row_bytes 64

// -----

// expected-error @below {{'rt.collective' op [C3] expects no site to which it goes of receive}}
rt.collective @s site 0 op receive axis pp members 2 row_bytes 64 to 1

// -----

rt.collective @s site 0 op receive axis pp members 2 row_bytes 64
func.func @collective_start_c2(%p: !rt.ptr) {
  // expected-error @below {{'rt.collective_start' op [C2] expects rows at @s}}
  rt.collective_start @s source %p to %p result %p from %p
  return
}

// -----

rt.collective @s site 0 op all_to_all_rows axis ep members 2 row_bytes 64
func.func @collective_start_c2_all(%p: !rt.ptr) {
  // expected-error @below {{'rt.collective_start' op [C2] expects a source, counts and a result at @s}}
  rt.collective_start @s rows %p
  return
}

// -----

rt.collective @s site 0 op gather_slices axis tp members 2 row_bytes 64
func.func @collective_start_c2_source(%p: !rt.ptr) {
  // expected-error @below {{'rt.collective_start' op [C2] expects a source and 1 slice at @s}}
  rt.collective_start @s slices %p
  return
}

// -----

// A slice for each of three members.
rt.collective @s site 0 op scatter_slices axis tp members 3 row_bytes 64
func.func @collective_start_c2_few(%p: !rt.ptr) {
  // expected-error @below {{'rt.collective_start' op [C2] expects a source and 3 slices at @s}}
  rt.collective_start @s source %p slices %p, %p
  return
}

// -----

rt.collective @s site 0 op gather_slices axis tp members 2 row_bytes 64
func.func @collective_start_c2_many(%p: !rt.ptr) {
  // expected-error @below {{'rt.collective_start' op [C2] expects a source and 1 slice at @s}}
  rt.collective_start @s source %p slices %p, %p
  return
}

// -----

rt.collective @s site 0 op gather_slices axis tp members 2 row_bytes 64
func.func @collective_start_c2_counts(%p: !rt.ptr) {
  // expected-error @below {{'rt.collective_start' op [C2] expects a source and 1 slice at @s}}
  rt.collective_start @s source %p to %p result %p from %p slices %p
  return
}

// -----

// Counts say where rows lie that go to all.
rt.collective @s site 0 op all_to_all_rows axis ep members 2 row_bytes 64
func.func @collective_start_c2_slices(%p: !rt.ptr) {
  // expected-error @below {{'rt.collective_start' op [C2] expects a source, counts and a result at @s}}
  rt.collective_start @s source %p slices %p, %p
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 64 quota 8
rt.kernel @k id 0 hash "a" variants ["all"]
func.func @launch_c5(%g: i64, %p: !rt.ptr) {
  // expected-error @below {{'rt.launch' op [C5] expects rows that came to @site0 not to be gathered}}
  rt.launch @k in @site0 gathered grid(%g) args(%p) : !rt.ptr
  return
}

// -----

func.func @stage_layers_c1() {
  // expected-error @below {{'rt.stage_layers' op [C1] expects 0 <= first <= last, got 3 to 1}}
  %f, %e = rt.stage_layers 3 to 1
  return
}
