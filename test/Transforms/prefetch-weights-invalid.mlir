// RUN: k2c-opt %s --attach-plan --prefetch-weights --split-input-file --verify-diagnostics

rt.weight_slots @q of @w first 0 count 3 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
func.func private @layer(%l: index) {
  %q = rt.weight @q[%l]
  %t = rt.rows token
  rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  return
}
func.func @step(%layers: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{prefetch-weights: the loop has no constant bounds, does not run, or ends within a step; run lower-to-rt first, which writes whole turns of layers}}
  scf.for %l = %c0 to %layers step %c1 {
    func.call @layer(%l) : (index) -> ()
  }
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0

// -----

// Of a branch it is not known what comes next.
rt.weight_slots @q of @w first 0 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
func.func @step(%if: i1) {
  // expected-error @below {{prefetch-weights: 'scf.if' contains what streams a weight, and it is not known what is streamed after it; only functions and scf.for without results may}}
  scf.if %if {
    %q = rt.weight @q
    %t = rt.rows token
    rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
  }
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0

// -----

// A loop that carries a value cannot be left by its last iteration.
rt.weight_slots @q of @w first 0 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
func.func @step() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{prefetch-weights: 'scf.for' contains what streams a weight}}
  %r = scf.for %l = %c0 to %c1 step %c1 iter_args(%i = %c0) -> (index) {
    %q = rt.weight @q
    %t = rt.rows token
    rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
    scf.yield %i : index
  }
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0

// -----

// Nothing streams a weight: nothing to say.
rt.kernel @add id 0 hash "add" variants ["all"]
func.func @step() {
  %p = rt.arena 0
  %t = rt.rows token
  rt.launch @add grid(%t) args(%p) : !rt.ptr
  return
}
rt.program @p entries {serve = @step} arena 0 scratch 0
