// RUN: k2c-opt %s --lower-to-rt --split-input-file --verify-diagnostics

// expected-error @below {{lower-to-rt: the module has no nn.limits or no mem.certificate; run certify-memory first}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  // expected-error @below {{lower-to-rt: the kernel has no tile; run choose-tiles first}}
  kern.func @k(%x: tensor<?x64xf32, #nn.rows<token>>) -> tensor<?x64xf32, #nn.rows<token>> {
    %s = nn.add %x, %x : tensor<?x64xf32, #nn.rows<token>>
    kern.yield %s : tensor<?x64xf32, #nn.rows<token>>
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> tensor<?x64xf32, #nn.rows<token>> tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : tensor<?x64xf32, #nn.rows<token>>
    kern.yield %x : tensor<?x64xf32, #nn.rows<token>>
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // expected-error @below {{lower-to-rt: the call has no offsets; run assign-memory first}}
    %x = kern.call @embedding(%b, @embed) : (!nn.batch) -> tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  // expected-error @below {{lower-to-rt: function 'step' takes a 'tensor<?x64xf32, #nn.rows<token>>', which has no place; only layers of an nn.layers list take rows, and weights are families}}
  func.func @step(%x: tensor<?x64xf32, #nn.rows<token>>) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // expected-error @below {{lower-to-rt: 'arith.constant' computes with a 'tensor<2xi32>'; numbers of a program are index, i64 and i1}}
    %c = arith.constant dense<1> : tensor<2xi32>
    return
  }
}

// -----

// A branch gives nothing but rows.
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = rt.rows token
    %c = arith.cmpi eq, %t, %t : i64
    // expected-error @below {{lower-to-rt: 'scf.if' forwards a 'i64', which has no place; only rows are forwarded}}
    %r = scf.if %c -> i64 {
      scf.yield %t : i64
    } else {
      scf.yield %t : i64
    }
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{lower-to-rt: 'scf.for' forwards a 'index', which has no place; only rows are forwarded}}
    %r = scf.for %l = %c0 to %c1 step %c1 iter_args(%i = %c0) -> index {
      scf.yield %i : index
    }
    return
  }
}

// -----

// A branch lowers what is in it, too.
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %c = arith.constant true
    scf.if %c {
    } else {
      // expected-error @below {{lower-to-rt: no program has 'scf.execute_region'; it has rt, calls, scf.for, scf.if and arith.constant, arith.cmpi, arith.select, arith.addi, arith.subi, arith.muli, arith.divsi, arith.remsi, arith.maxsi, arith.minsi}}
      scf.execute_region {
        scf.yield
      }
    }
    return
  }
}

// -----

// Weights are those of the function's own layer.
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  nn.weights @embed "{layer}.embed" over (layer = 0 to 2) : tensor<100x64xbf16>
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> tensor<?x64xf32, #nn.rows<token>> tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : tensor<?x64xf32, #nn.rows<token>>
    kern.yield %x : tensor<?x64xf32, #nn.rows<token>>
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %c1 = arith.constant 1 : index
    // expected-error @below {{lower-to-rt: the call takes an index that is not that of its function's layer; call the kernel in the function of that layer}}
    %x = kern.call @embedding(%b, @embed[%c1]) at [0] : (!nn.batch) -> tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  rt.weight_slots @embed.rows of @embed first 0 count 1 bytes 6400 layout #rt.row_major<bf16, 3200>
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> tensor<?x64xf32, #nn.rows<token>> tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : tensor<?x64xf32, #nn.rows<token>>
    kern.yield %x : tensor<?x64xf32, #nn.rows<token>>
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // expected-error @below {{lower-to-rt: the call reads @embed as #rt.row_major<bf16, 6400>, for which there are no slots; run assign-slots first}}
    %x = kern.call @embedding(%b, @embed) at [0] : (!nn.batch) -> tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  // expected-error @below {{lower-to-rt: a second function is the entry 'serve'; give it a name of its own}}
  func.func @other(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %end = arith.constant 4 : index
    %by = arith.constant 1 : index
    // expected-error @below {{lower-to-rt: a loop counts in signed 64 bits by a constant step of 1 or more}}
    scf.for unsigned %i = %end to %end step %by {
    }
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %end = arith.constant 4 : index
    %by = arith.constant 0 : index
    // expected-error @below {{lower-to-rt: a loop counts in signed 64 bits by a constant step of 1 or more}}
    scf.for %i = %end to %end step %by {
    }
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // expected-error @below {{lower-to-rt: 'arith.constant' computes with a 'i32'; numbers of a program are index, i64 and i1}}
    %end = arith.constant 4 : i32
    scf.for %i = %end to %end step %end : i32 {
    }
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = rt.rows token
    // expected-error @below {{lower-to-rt: no program has 'arith.remui'; it has rt, calls, scf.for, scf.if and arith.constant, arith.cmpi, arith.select, arith.addi, arith.subi, arith.muli, arith.divsi, arith.remsi, arith.maxsi, arith.minsi}}
    %r = arith.remui %t, %t : i64
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %t = rt.rows token
    // expected-error @below {{lower-to-rt: 'arith.remsi' divides by what may be 0; a program divides by a constant of 1 or more}}
    %r = arith.remsi %t, %t : i64
    return
  }
}
