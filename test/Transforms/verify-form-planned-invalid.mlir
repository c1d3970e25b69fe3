// RUN: k2c-opt %s --verify-form="form=planned" --split-input-file --verify-diagnostics

// expected-error @below {{planned form: the module has no dist.plan; run attach-plan first}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  func.func @f(%w: tensor<4x64x64xf32>, %q: tensor<?x4x48xf32, #nn.rows<token>>, %kv: !mla.view<latent = 64 x f32, rope = 16 x f32>, %b: !nn.batch) {
    // expected-error @below {{planned form: latent attention has no form yet; run absorb-mla first}}
    %o = mla.attention %q, %kv, %w : tensor<4x64x64xf32>, %b nope 32 rope 16 v 32 scale 0.125
        forms<prompt = table, generated = absorbed> order softmax<block = 64, split = by_position>
        : tensor<?x4x48xf32, #nn.rows<token>>, !mla.view<latent = 64 x f32, rope = 16 x f32> -> tensor<?x4x32xf32, #nn.rows<token>>
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  func.func @f(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) {
    // expected-error @below {{planned form: the reduction 'order' has no order; run set-numerics first}}
    %a = nn.linear %x, %w : tensor<64x64xf32> : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  // expected-error @below {{planned form: kernels belong to the scheduled form}}
  kern.func @k(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) -> tensor<?x64xf32, #nn.rows<token>> {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    kern.yield %a : tensor<?x64xf32, #nn.rows<token>>
  }
}

// -----

// Experts are one op still: no diagnostic.
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  func.func @f(%g: tensor<4x2x96x64xf32>, %d: tensor<4x64x96xf32>, %x: tensor<?x64xf32, #nn.rows<token>>, %e: tensor<?x2xi32, #nn.rows<token>>, %w: tensor<?x2xf32, #nn.rows<token>>) {
    %o = moe.experts %x, %e, %w, %g : tensor<4x2x96x64xf32>, %d : tensor<4x64x96xf32> experts 4 inner 96 act silu
        up_order tree<1> down_order tree<1> combine tree<4>
        : tensor<?x64xf32, #nn.rows<token>>, tensor<?x2xi32, #nn.rows<token>>, tensor<?x2xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

// expected-error @below {{planned form: the module has no kern.target; run attach-plan first}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

// expected-error @below {{planned form: the plan leaves out 'fussion'; optional passes are fusion, launch-groups, buffer-reuse, prefetch-weights, two-hop}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1, without = ["prefetch-weights", "fussion"]>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

// The program is the one that was planned: without latent attention, nothing runs expanded.
// expected-error @below {{planned form: the plan's expanded_from is 7, but the program has no expanded and no absorbed attention; 0 is for the expanded form alone, -1 for none of it: change the plan before absorb-mla}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = 7>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

// expected-error @below {{planned form: the plan's expanded_from is 7, but the program has an expanded and no absorbed attention}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = 7>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  func.func @f(%uk: tensor<4x32x64xf32>, %uv: tensor<4x32x64xf32>, %q: tensor<?x4x48xf32, #nn.rows<token>>, %kv: !mla.view<latent = 64 x f32, rope = 16 x f32>, %b: !nn.batch) {
    %o = mla.attention_expanded %q, %kv, %uk : tensor<4x32x64xf32>, %uv : tensor<4x32x64xf32>, %b scale 0.125 order softmax<block = 64, split = by_position>
        : tensor<?x4x48xf32, #nn.rows<token>>, !mla.view<latent = 64 x f32, rope = 16 x f32> -> tensor<?x4x32xf32, #nn.rows<token>>
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>} {
  // expected-error @below {{planned form: the table has 65 positions, nn.limits allow a context of 64; change both}}
  nn.constant_table @rope rope<theta = 1.0e4, dims = 16> : tensor<65x2x8xf32>
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}
