// RUN: k2c-opt %s --verify-form="form=distributed" --split-input-file --verify-diagnostics

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  func.func @f(%g: tensor<4x2x96x64xf32>, %d: tensor<4x64x96xf32>, %x: tensor<?x64xf32, #nn.rows<token>>, %e: tensor<?x2xi32, #nn.rows<token>>, %w: tensor<?x2xf32, #nn.rows<token>>) {
    // expected-error @below {{distributed form: the movement of rows to experts is not explicit; run shard-experts first}}
    %o = moe.experts %x, %e, %w, %g : tensor<4x2x96x64xf32>, %d : tensor<4x64x96xf32> experts 4 inner 96 act silu
        up_order tree<1> down_order tree<1> combine tree<4>
        : tensor<?x64xf32, #nn.rows<token>>, tensor<?x2xi32, #nn.rows<token>>, tensor<?x2xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
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
    // expected-error @below {{distributed form: latent attention has no form yet; run absorb-mla first}}
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
  // expected-error @below {{distributed form: kernels belong to the scheduled form}}
  kern.func @k(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) -> tensor<?x64xf32, #nn.rows<token>> {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    kern.yield %a : tensor<?x64xf32, #nn.rows<token>>
  }
}
