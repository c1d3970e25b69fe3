// RUN: k2c-copy-opt %s --verify-form=form=scheduled --split-input-file --verify-diagnostics

// Two may read at the same time; the copy has what all layers read.
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
  nn.layer @layer(%l: index, %x: !x, %y: !x, %t: !x, %b: !nn.batch) -> (!x, !x) attributes {mem.arguments = array<i64: 2560, 5120, 0>} {
    %0 = kern.call @add(%y, %t) at [5120] : (!x, !x) -> !x
    nn.yield %x, %0 : !x, !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %c = kern.call @add(%x, %x) at [2560] : (!x, !x) -> !x
    %d = kern.call @add(%x, %x) at [5120] : (!x, !x) -> !x
    %w, %e = copy.start %t at [0, 7680] : !x -> !x
    %z:2 = nn.layers %c, %d reads %t, %b [@layer[0 to 2]] : !x, !x reads !x
    copy.wait %w
    return
  }
}

// -----

// What is carried is written, the second value of several, too.
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
  nn.layer @layer(%l: index, %x: !x, %y: !x, %t: !x, %b: !nn.batch) -> (!x, !x) attributes {mem.arguments = array<i64: 2560, 5120, 0>} {
    nn.yield %x, %y : !x, !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %c = kern.call @add(%x, %x) at [2560] : (!x, !x) -> !x
    %d = kern.call @add(%x, %x) at [5120] : (!x, !x) -> !x
    %w, %e = copy.start %d at [0, 7680] : !x -> !x
    // expected-error @below {{scheduled form: 'nn.layers' touches bytes [5120, 7680) of the arena while 'copy.start' has bytes [5120, 7680) of the arena; wait for its token first}}
    %z:2 = nn.layers %c, %d reads %t, %b [@layer[0 to 2]] : !x, !x reads !x
    copy.wait %w
    return
  }
}

// -----

// The second value and its argument lie apart.
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
  nn.layer @layer(%l: index, %x: !x, %y: !x, %t: !x, %b: !nn.batch) -> (!x, !x) attributes {mem.arguments = array<i64: 2560, 7680, 0>} {
    nn.yield %x, %y : !x, !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %c = kern.call @add(%x, %x) at [2560] : (!x, !x) -> !x
    %d = kern.call @add(%x, %x) at [5120] : (!x, !x) -> !x
    // expected-error @below {{scheduled form: forwards bytes [5120, 7680) of the arena, but layer @layer takes bytes [7680, 10240) of the arena; one place has to be both}}
    %z:2 = nn.layers %c, %d reads %t, %b [@layer[0 to 2]] : !x, !x reads !x
    return
  }
}

// -----

// So does the one that is read.
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
  nn.layer @layer(%l: index, %x: !x, %y: !x, %t: !x, %b: !nn.batch) -> (!x, !x) attributes {mem.arguments = array<i64: 2560, 5120, 7680>} {
    nn.yield %x, %y : !x, !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %c = kern.call @add(%x, %x) at [2560] : (!x, !x) -> !x
    %d = kern.call @add(%x, %x) at [5120] : (!x, !x) -> !x
    // expected-error @below {{scheduled form: forwards bytes [0, 2560) of the arena, but layer @layer takes bytes [7680, 10240) of the arena; one place has to be both}}
    %z:2 = nn.layers %c, %d reads %t, %b [@layer[0 to 2]] : !x, !x reads !x
    return
  }
}

// -----

// A layer without places.
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
  nn.layer @layer(%l: index, %x: !x, %y: !x, %t: !x, %b: !nn.batch) -> (!x, !x) {
    nn.yield %x, %y : !x, !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %c = kern.call @add(%x, %x) at [2560] : (!x, !x) -> !x
    %d = kern.call @add(%x, %x) at [5120] : (!x, !x) -> !x
    // expected-error @below {{scheduled form: forwards bytes [2560, 5120) of the arena, but layer @layer takes a value without an offset; one place has to be both}}
    %z:2 = nn.layers %c, %d reads %t, %b [@layer[0 to 2]] : !x, !x reads !x
    return
  }
}

// -----

// What is yielded does not lie where the next layer takes it.
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
  nn.layer @layer(%l: index, %x: !x, %y: !x, %t: !x, %b: !nn.batch) -> (!x, !x) attributes {mem.arguments = array<i64: 2560, 5120, 0>} {
    %0 = kern.call @add(%y, %t) at [7680] : (!x, !x) -> !x
    // expected-error @below {{scheduled form: forwards bytes [7680, 10240) of the arena, but the next layer takes bytes [5120, 7680) of the arena; one place has to be both}}
    nn.yield %x, %0 : !x, !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %c = kern.call @add(%x, %x) at [2560] : (!x, !x) -> !x
    %d = kern.call @add(%x, %x) at [5120] : (!x, !x) -> !x
    %z:2 = nn.layers %c, %d reads %t, %b [@layer[0 to 2]] : !x, !x reads !x
    return
  }
}

// -----

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
  nn.layer @layer(%l: index, %x: !x, %y: !x, %t: !x, %b: !nn.batch) -> (!x, !x) attributes {mem.arguments = array<i64: 2560, 5120, 0>} {
    // expected-error @below {{scheduled form: forwards bytes [5120, 7680) of the arena, but the next layer takes bytes [2560, 5120) of the arena; one place has to be both}}
    nn.yield %y, %x : !x, !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %c = kern.call @add(%x, %x) at [2560] : (!x, !x) -> !x
    %d = kern.call @add(%x, %x) at [5120] : (!x, !x) -> !x
    %z:2 = nn.layers %c, %d reads %t, %b [@layer[0 to 2]] : !x, !x reads !x
    return
  }
}
