// RUN: k2c-opt %s --verify-form=form=scheduled --split-input-file --verify-diagnostics

// Forms of latent attention may write one buffer at the same time only if they write it as the same rows.
!o = tensor<?x4x32xf32, #nn.rows<token>>
!q = tensor<?x4x48xf32, #nn.rows<token>>
!w = tensor<4x32x32xf32>
!kv = !mla.view<latent = 32 x f32, rope = 16 x f32>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = 0>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  kern.func @linear_output(%x: !o, %w: !w, %b: !nn.batch) -> !o
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %a = mla.expand_output %x, %w : !w, %b order tree<1> : !o -> !o
    kern.yield %a : !o
  }
  kern.func @expanded(%q: !q, %kv: !kv, %uk: !w, %uv: !w, %b: !nn.batch) -> !o
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %a = mla.attention_expanded %q, %kv, %uk : !w, %uv : !w, %b scale 1.25e-1 order softmax<block = 64, split = by_position> : !q, !kv -> !o
    kern.yield %a : !o
  }
  // The same bytes: no diagnostic.
  func.func @same(%o: !o, %q: !q, %kv: !kv, %w: !w, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = kern.call nowait @linear_output(%o, %w, %b) at [0] : (!o, !w, !nn.batch) -> !o
    %1 = kern.call @expanded(%q, %kv, %w, %w, %b) at [0] : (!q, !kv, !w, !w, !nn.batch) -> !o
    return
  }
  func.func @one_row_on(%o: !o, %q: !q, %kv: !kv, %w: !w, %b: !nn.batch) {
    %0 = kern.call nowait @linear_output(%o, %w, %b) at [0] : (!o, !w, !nn.batch) -> !o
    // expected-error @below {{scheduled form: touches bytes [512, 5632) of the arena while others have bytes [0, 5120) of the arena in a nowait call of @linear_output; workers must meet between the two, as group-launches leaves it}}
    %1 = kern.call @expanded(%q, %kv, %w, %w, %b) at [512] : (!q, !kv, !w, !w, !nn.batch) -> !o
    return
  }
}
