// RUN: k2c-copy-opt %s --verify-form=form=scheduled --split-input-file --verify-diagnostics

// A call reads what a copy is writing.
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
    %a = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %t, %y = copy.start %a at [0, 2560] : !x -> !x
    // expected-error @below {{scheduled form: 'kern.call' touches bytes [2560, 5120) of the arena while 'copy.start' has bytes [2560, 5120) of the arena; wait for its token first}}
    %b = kern.call @add(%y, %y) at [5120] : (!x, !x) -> !x
    copy.wait %t
    return
  }
}

// -----

// A call writes into what a copy is reading. Who reads it beside the copy, and who comes behind the wait, is no error.
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
    %a = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %t, %y = copy.start %a at [0, 2560] : !x -> !x
    %b = kern.call @add(%a, %a) at [5120] : (!x, !x) -> !x
    // expected-error @below {{'kern.call' touches bytes [1280, 3840) of the arena while 'copy.start' has bytes [0, 2560) of the arena}}
    %c = kern.call @add(%b, %b) at [1280] : (!x, !x) -> !x
    copy.wait %t
    %d = kern.call @add(%y, %y) at [0] : (!x, !x) -> !x
    return
  }
}

// -----

// A wait in one branch is none: the other does not wait.
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
  func.func @step(%x: !x, %if: i1) attributes {nn.entry = "serve"} {
    %a = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    // expected-error @below {{scheduled form: nothing that is sure to run waits for 'copy.start'; take its token in the region of the start}}
    %t, %y = copy.start %a at [0, 2560] : !x -> !x
    scf.if %if {
      copy.wait %t
    }
    return
  }
}

// -----

// The copy of one turn goes on in the next, up to the wait.
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
  func.func @step(%x: !x, %n: index, %one: index) attributes {nn.entry = "serve"} {
    %a = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %t, %y = copy.start %a at [0, 2560] : !x -> !x
    %last = scf.for %l = %one to %n step %one iter_args(%before = %t) -> (!copy.token) {
      // expected-error @below {{'kern.call' touches bytes [5120, 7680) of the arena while 'copy.start' has bytes [5120, 7680) of the arena}}
      %b = kern.call @add(%x, %x) at [5120] : (!x, !x) -> !x
      copy.wait %before
      %next, %z = copy.start %a at [0, 5120] : !x -> !x
      scf.yield %next : !copy.token
    }
    copy.wait %last
    return
  }
}

// -----

// What lies nobody knows where may lie anywhere.
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
    %a = builtin.unrealized_conversion_cast to !x
    %t, %y = copy.start %x at [0, 2560] : !x -> !x
    // expected-error @below {{'kern.call' touches a value without an offset while 'copy.start' has bytes [2560, 5120) of the arena}}
    %b = kern.call @add(%a, %a) at [5120] : (!x, !x) -> !x
    copy.wait %t
    return
  }
}

// -----

// Calls of a loop are held to the rules of groups, too.
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
  func.func @step(%x: !x, %n: index, %one: index) attributes {nn.entry = "serve"} {
    %r = scf.for %l = %one to %n step %one iter_args(%i = %x) -> (!x) {
      %a = kern.call nowait @add(%x, %x) at [0] : (!x, !x) -> !x
      // expected-error @below {{touches bytes [1280, 3840) of the arena while others have bytes [0, 2560) of the arena in a nowait call of @add}}
      %b = kern.call @add(%x, %x) at [1280] : (!x, !x) -> !x
      scf.yield %i : !x
    }
    return
  }
}

// -----

// A function that ends does not wait.
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
  func.func @step(%x: !x) -> !copy.token attributes {nn.entry = "serve"} {
    // expected-error @below {{nothing that is sure to run waits for 'copy.start'}}
    %t, %y = copy.start %x at [0, 2560] : !x -> !x
    return %t : !copy.token
  }
}

// -----

// A loop carries rows from one place, and takes them in another.
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
  func.func @step(%x: !x, %n: index, %one: index) attributes {nn.entry = "serve"} {
    %a = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %r = scf.for %l = %one to %n step %one iter_args(%i = %a) -> (!x) {
      %b = kern.call @add(%i, %i) at [2560] : (!x, !x) -> !x
      // expected-error @below {{scheduled form: forwards bytes [2560, 5120) of the arena, but 'scf.for' takes bytes [0, 2560) of the arena; one place has to be both}}
      scf.yield %b : !x
    }
    return
  }
}

// -----

// Layers touch what their functions write.
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
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 5120>} {
    %a = kern.call @add(%x, %x) at [2560] : (!x, !x) -> !x
    %y = kern.call @add(%x, %a) at [5120] : (!x, !x) -> !x
    nn.yield %y : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %a = kern.call @add(%x, %x) at [0] : (!x, !x) -> !x
    %c = kern.call @add(%x, %x) at [5120] : (!x, !x) -> !x
    %t, %y = copy.start %a at [0, 2560] : !x -> !x
    // expected-error @below {{'nn.layers' touches bytes [2560, 5120) of the arena while 'copy.start' has bytes [2560, 5120) of the arena}}
    %z = nn.layers %c, %b [@layer[0 to 2]] : !x
    copy.wait %t
    return
  }
}
