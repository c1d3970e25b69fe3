// RUN: k2c-opt %s --prefetch-weights --split-input-file --verify-diagnostics

// expected-error @below {{prefetch-weights: the module has no kern.target; run attach-plan first}}
module {
  rt.weight_slots @q of @w first 0 count 1 bytes 4096 layout #rt.panels<bf16, matrices = 1, n = 32, k = 64>
  rt.kernel @linear_q id 0 hash "q" variants ["all"] streams 0 items 2 bytes 2048
  func.func @step() {
    %q = rt.weight @q
    %t = rt.rows token
    rt.launch @linear_q grid(%t) args(%q) : !rt.ptr
    return
  }
  rt.program @p entries {serve = @step} arena 0 scratch 0
}

// -----

// Nothing streams a weight: nothing to say.
module attributes {kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 16384, features = ["avx2", "fma"]>} {
  rt.kernel @add id 0 hash "add" variants ["all"]
  func.func @step() {
    %p = rt.arena 0 bytes 64
    %t = rt.rows token
    rt.launch @add grid(%t) args(%p) : !rt.ptr
    return
  }
  rt.program @p entries {serve = @step} arena 0 scratch 0
}
