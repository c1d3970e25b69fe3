// RUN: k2c-opt %s --verify-form=form=runtime --split-input-file --verify-diagnostics

// Buffers are those of the table: by quota, with rows that all members get, back, gathered and scattered. No diagnostic.
rt.collective @site0 site 0 op all_to_all_rows axis ep members 4 row_bytes 288 quota 24
rt.collective @site1 site 1 op all_to_all_rows axis ep members 4 row_bytes 256
rt.collective @site2 site 2 op gather_slices axis tp members 2 row_bytes 256
rt.collective @site3 site 3 op scatter_slices axis tp members 2 row_bytes 256
func.func @step() {
  %m = rt.arena 0 bytes 6912
  %sent = rt.arena 6912 bytes 64
  %in = rt.arena 7168 bytes 27648
  %came = rt.arena 34816 bytes 64
  %u = rt.arena 36864 bytes 512
  %v = rt.arena 37376 bytes 768
  %own = rt.arena 38144 bytes 512
  rt.collective_start @site0 source %m to %sent result %in from %came
  rt.collective_wait @site0
  rt.collective_start @site1 source %u to %sent result %v from %came
  rt.collective_wait @site1
  rt.collective_start @site2 source %u slices %v
  rt.collective_wait @site2
  rt.collective_start @site3 source %v slices %u, %own
  rt.collective_wait @site3
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 4 row_bytes 288 quota 12
func.func @step() {
  %m = rt.arena 0 bytes 6912
  %sent = rt.arena 6912 bytes 64
  %in = rt.arena 7168 bytes 27648
  // expected-error @below {{runtime form: @site0 gets up to 12 rows of 288 bytes from each of 4 members, and its result has 27648 bytes; have a place for each of them}}
  rt.collective_start @site0 source %m to %sent result %in from %sent
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 288 quota 48
func.func @step() {
  %m = rt.arena 0 bytes 6912
  %sent = rt.arena 6912 bytes 64
  %in = rt.arena 7168 bytes 27648
  // expected-error @below {{runtime form: @site0 has 2 members, whose counts take 32 bytes, and its counts of what goes have 64; count rows of each member}}
  rt.collective_start @site0 source %m to %sent result %in from %sent
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 288
func.func @step() {
  %m = rt.arena 0 bytes 6912
  %sent = rt.arena 6912 bytes 32
  %came = rt.arena 6976 bytes 64
  %in = rt.arena 7168 bytes 27648
  // expected-error @below {{runtime form: @site0 has 2 members, whose counts take 32 bytes, and its counts of what comes have 64; count rows of each member}}
  rt.collective_start @site0 source %m to %sent result %in from %came
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 4 row_bytes 260
func.func @step() {
  %m = rt.arena 0 bytes 6912
  %sent = rt.arena 6912 bytes 64
  %in = rt.arena 7168 bytes 27648
  // expected-error @below {{runtime form: @site0 has rows of 260 bytes, and its source has 6912; exchange whole rows}}
  rt.collective_start @site0 source %m to %sent result %in from %sent
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op all_to_all_rows axis ep members 4 row_bytes 256
func.func @step() {
  %m = rt.arena 0 bytes 6912
  %sent = rt.arena 6912 bytes 64
  %in = rt.arena 7168 bytes 0
  // expected-error @below {{runtime form: @site0 has rows of 256 bytes, and its result has 0; exchange whole rows}}
  rt.collective_start @site0 source %m to %sent result %in from %sent
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 256
rt.collective @site1 site 1 op send axis pp members 2 row_bytes 256 to 0
func.func private @receive0() {
  %x = rt.arena 0 bytes 320
  // expected-error @below {{runtime form: @site0 has rows of 256 bytes, and its rows has 320; exchange whole rows}}
  rt.collective_start @site0 rows %x
  rt.collective_wait @site0
  return
}
func.func private @send1() {
  %x = rt.arena 0 bytes 512
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

rt.collective @site0 site 0 op gather_slices axis tp members 2 row_bytes 256
func.func @step() {
  %x = rt.arena 0 bytes 256
  %all = rt.arena 256 bytes 768
  // expected-error @below {{runtime form: @site0 has 2 slices of 256 bytes of 768; have a slice of each member}}
  rt.collective_start @site0 source %x slices %all
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op scatter_slices axis tp members 2 row_bytes 256
func.func @step() {
  %all = rt.arena 0 bytes 512
  %own = rt.arena 512 bytes 512
  %other = rt.arena 1024 bytes 768
  // expected-error @below {{runtime form: @site0 has 2 slices of 768 bytes of 512; have a slice of each member}}
  rt.collective_start @site0 source %all slices %own, %other
  rt.collective_wait @site0
  return
}

// -----

rt.collective @site0 site 0 op scatter_slices axis tp members 2 row_bytes 256
func.func @step() {
  %all = rt.arena 0 bytes 512
  %own = rt.arena 512 bytes 256
  %other = rt.arena 1024 bytes 320
  // expected-error @below {{runtime form: @site0 has rows of 256 bytes, and its slice has 320; exchange whole rows}}
  rt.collective_start @site0 source %all slices %own, %other
  rt.collective_wait @site0
  return
}
