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

// -----

// A view leaves a branch, through another view.
!x = tensor<?x64xf32, #nn.rows<token>>
!h = tensor<?x32xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  kern.func @add(%x: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %x : !x
    kern.yield %s : !x
  }
  func.func @step(%x: !x, %c: i1) attributes {nn.entry = "serve"} {
    %y = scf.if %c -> !x {
      %0 = kern.call @add(%x) at [0] : (!x) -> !x
      // expected-error @below {{scheduled form: a view lies in the kernels that read it, and 'scf.yield' is in none; give it what is viewed, and view that where kernels read it}}
      %1 = nn.reshape %0 : !x -> tensor<?x2x32xf32, #nn.rows<token>>
      %2 = nn.reshape %1 : tensor<?x2x32xf32, #nn.rows<token>> -> !x
      scf.yield %2 : !x
    } else {
      %0 = kern.call @add(%x) at [0] : (!x) -> !x
      scf.yield %0 : !x
    }
    return
  }
}

// -----

// What is viewed leaves the branch, and the kernel behind it views it: no diagnostic.
!x = tensor<?x64xf32, #nn.rows<token>>
!h = tensor<?x32xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  kern.func @add(%x: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %x : !x
    kern.yield %s : !x
  }
  kern.func @add_parts(%x: !x) -> !h
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %p:2 = nn.split %x : !x -> !h, !h
    %s = nn.add %p#0, %p#1 : !h
    kern.yield %s : !h
  }
  func.func @step(%x: !x, %c: i1) attributes {nn.entry = "serve"} {
    %y = scf.if %c -> !x {
      %0 = kern.call @add(%x) at [0] : (!x) -> !x
      scf.yield %0 : !x
    } else {
      %0 = kern.call @add(%x) at [0] : (!x) -> !x
      scf.yield %0 : !x
    }
    %z = kern.call @add_parts(%y) at [2560] : (!x) -> !h
    return
  }
}

// -----

// Outside of functions order means nothing, and views may read each other.
!x = tensor<?x64xf32, #nn.rows<token>>
!h = tensor<?x2x32xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  // expected-error @below {{scheduled form: the op is in no kernel; run form-kernels first}}
  %a = nn.reshape %c : !h -> !x
  %c = nn.reshape %a : !x -> !h
}
