// RUN: k2c-opt %s --overlap-communication --split-input-file --verify-diagnostics

module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1, halves_from = 64>} {
  rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 272 quota 10
  func.func @step() {
    %p = rt.arena 0 bytes 64
    // expected-error @below {{overlap-communication: an entry exchanges rows itself, and halves take turns between functions; exchange in a function that the entry calls}}
    rt.collective_start @site0 source %p to %p result %p from %p
    rt.collective_wait @site0
    return
  }
  rt.program @program entries {serve = @step} arena 8192 scratch 512
}

// -----

module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1, halves_from = 64>} {
  func.func @step() {
    return
  }
  // expected-error @below {{overlap-communication: the plan's halves_from is 64, and the program exchanges nothing; leave it out}}
  rt.program @program entries {serve = @step} arena 8192 scratch 512
}

// -----

module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = -1, halves_from = 64>} {
  rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 272 quota 10
  func.func @step() {
    return
  }
  func.func @other() {
    return
  }
  // expected-error @below {{overlap-communication: entry 'serve_halves' is there, and is to be that of halves; give it another name}}
  rt.program @program entries {serve = @step, serve_halves = @other} arena 8192 scratch 512
}
