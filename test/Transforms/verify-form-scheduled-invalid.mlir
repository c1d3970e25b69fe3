// RUN: k2c-opt %s --verify-form="form=scheduled" --split-input-file --verify-diagnostics

// expected-error @below {{scheduled form: the module has no mem.peak; run assign-memory first}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

// expected-error @below {{scheduled form: the module has no mem.certificate; run certify-memory first}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>, mem.peak = 0 : i64} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  // expected-error @below {{scheduled form: the kernel has no tile; run choose-tiles first}}
  kern.func @k(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) -> tensor<?x64xf32, #nn.rows<token>> {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    kern.yield %a : tensor<?x64xf32, #nn.rows<token>>
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  kern.func @k(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) -> tensor<?x64xf32, #nn.rows<token>> tile<generic, lanes = 8, mr = 1, nr = 1, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    kern.yield %a : tensor<?x64xf32, #nn.rows<token>>
  }
  func.func @f(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) {
    // expected-error @below {{scheduled form: the call has no offsets; run assign-memory first}}
    %a = kern.call @k(%x, %w) : (tensor<?x64xf32, #nn.rows<token>>, tensor<64x64xf32>) -> tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  func.func @f(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) {
    // expected-error @below {{scheduled form: the op is in no kernel; run form-kernels first}}
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

// The form verifier looks into kernels.
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  kern.func @k(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) -> tensor<?x64xf32, #nn.rows<token>> tile<generic, lanes = 8, mr = 1, nr = 1, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    // expected-error @below {{scheduled form: the reduction 'order' has no order; run set-numerics first}}
    %a = nn.linear %x, %w : tensor<64x64xf32> : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    kern.yield %a : tensor<?x64xf32, #nn.rows<token>>
  }
}

// -----

// Kernels with tiles, calls with offsets: no diagnostic.
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  kern.func @k(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) -> tensor<?x64xf32, #nn.rows<token>> tile<generic, lanes = 8, mr = 1, nr = 1, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    kern.yield %a : tensor<?x64xf32, #nn.rows<token>>
  }
  func.func @f(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) {
    %a = kern.call @k(%x, %w) at [0] : (tensor<?x64xf32, #nn.rows<token>>, tensor<64x64xf32>) -> tensor<?x64xf32, #nn.rows<token>>
    return
  }
}
