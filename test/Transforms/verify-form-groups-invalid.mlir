// RUN: k2c-opt %s --verify-form=form=scheduled --split-input-file --verify-diagnostics

// A call reads what a nowait call of its group writes: rows of a linear come from all workers.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  kern.func @linear(%x: !x, %w: tensor<64x64xf32>) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 64, head_tile = 1, value_parts = 1> {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : !x -> !x
    kern.yield %a : !x
  }
  func.func @step(%x: !x, %w: tensor<64x64xf32>) attributes {nn.entry = "serve"} {
    %a = kern.call nowait @linear(%x, %w) at [0] : (!x, tensor<64x64xf32>) -> !x
    // expected-error @below {{scheduled form: touches bytes [0, 2560) of the arena while others have bytes [0, 2560) of the arena in a nowait call of @linear; workers must meet between the two, as group-launches leaves it}}
    %b = kern.call @linear(%a, %w) at [2560] : (!x, tensor<64x64xf32>) -> !x
    return
  }
}

// -----

// A call writes bytes that a nowait call reads, two calls on: values apart, places not.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  kern.func @linear(%x: !x, %w: tensor<64x64xf32>) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 64, head_tile = 1, value_parts = 1> {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : !x -> !x
    kern.yield %a : !x
  }
  func.func @step(%x: !x, %w: tensor<64x64xf32>) attributes {nn.entry = "serve"} {
    %a = kern.call @linear(%x, %w) at [0] : (!x, tensor<64x64xf32>) -> !x
    %b = kern.call nowait @linear(%a, %w) at [2560] : (!x, tensor<64x64xf32>) -> !x
    %c = kern.call nowait @linear(%x, %w) at [5120] : (!x, tensor<64x64xf32>) -> !x
    // expected-error @below {{touches bytes [2496, 5056) of the arena while others have bytes [0, 2560) of the arena in a nowait call of @linear}}
    %d = kern.call @linear(%x, %w) at [2496] : (!x, tensor<64x64xf32>) -> !x
    return
  }
}

// -----

// Rows of a sum are the same worker's only where it reads them as rows: a linear reads them all.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  kern.func @add(%x: !x, %y: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  kern.func @linear(%x: !x, %w: tensor<64x64xf32>) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 64, head_tile = 1, value_parts = 1> {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : !x -> !x
    kern.yield %a : !x
  }
  func.func @step(%x: !x, %w: tensor<64x64xf32>) attributes {nn.entry = "serve"} {
    %a = kern.call nowait @add(%x, %x) at [0] : (!x, !x) -> !x
    %b = kern.call nowait @add(%a, %x) at [2560] : (!x, !x) -> !x
    // expected-error @below {{touches bytes [2560, 5120) of the arena while others have bytes [2560, 5120) of the arena in a nowait call of @add}}
    %c = kern.call @linear(%b, %w) at [5120] : (!x, tensor<64x64xf32>) -> !x
    return
  }
}

// -----

// Sampled logits lie in the step, all in one place.
!v = tensor<?x64xf32, #nn.rows<output>>
!logits = tensor<?x100xf32, #nn.rows<output>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  kern.func @linear_head(%v: !v, %w: tensor<100x64xf32>) -> !logits
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 64, head_tile = 1, value_parts = 1> {
    %a = nn.linear %v, %w : tensor<100x64xf32> order tree<1> : !v -> !logits
    kern.yield %a : !logits
  }
  func.func @step(%v: !v, %w: tensor<100x64xf32>, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = kern.call nowait @linear_head(%v, %w) at [0] : (!v, tensor<100x64xf32>) -> !logits
    // expected-error @below {{touches the step's logits while others have the step's logits in a nowait call of @linear_head}}
    %1 = kern.call @linear_head(%v, %w) at [0] : (!v, tensor<100x64xf32>) -> !logits
    nn.sample %0, %b : !logits
    nn.sample %1, %b : !logits
    return
  }
}

// -----

// What the step captures is no value.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  kern.func @capture(%x: !x, %b: !nn.batch)
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    nn.capture %x, %b embed : !x
    kern.yield
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    kern.call nowait @capture(%x, %b) at [] : (!x, !nn.batch) -> ()
    // expected-error @below {{touches the cache, a capture or partials that others have in a nowait call of @capture}}
    kern.call @capture(%x, %b) at [] : (!x, !nn.batch) -> ()
    return
  }
}

// -----

// Workers meet before layers.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  kern.func @add(%x: !x, %y: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    %y = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    nn.yield %y : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    // expected-error @below {{scheduled form: the call is nowait, and 'nn.layers' follows; workers must meet first, as group-launches leaves it}}
    %a = kern.call nowait @add(%x, %x) at [0] : (!x, !x) -> !x
    %y = nn.layers %a, %b [@layer[0 to 2]] : !x
    %z = kern.call @add(%y, %y) at [2560] : (!x, !x) -> !x
    return
  }
}

// -----

// Row by row on the same worker, and apart: no diagnostic.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1>,
                   mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>,
                   mem.peak = 0 : i64} {
  kern.func @add(%x: !x, %y: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  func.func @step(%x: !x) attributes {nn.entry = "serve"} {
    %a = kern.call nowait @add(%x, %x) at [0] : (!x, !x) -> !x
    %b = kern.call @add(%a, %x) at [2560] : (!x, !x) -> !x
    return
  }
}
