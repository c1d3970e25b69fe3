// RUN: k2c-opt %s --assign-memory --split-input-file --verify-diagnostics

// What the loop carries is read after the next is written in its place.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  func.func @step(%x: !x, %n: index, %one: index) attributes {nn.entry = "serve"} {
    // expected-error @below {{assign-memory: 'scf.for' still reads what it carries when it writes the next; add to it last}}
    %r = scf.for %l = %one to %n step %one iter_args(%i = %x) -> (!x) {
      %0 = kern.call @add(%i, %i) : (!x, !x) -> !x
      %1 = kern.call @add(%i, %0) : (!x, !x) -> !x
      scf.yield %0 : !x
    }
    return
  }
}

// -----

// Two that change places would need a third.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  func.func @step(%x: !x, %y: !x, %n: index, %one: index) attributes {nn.entry = "serve"} {
    // expected-error @below {{assign-memory: 'scf.for' forwards two values that would lie in one place; add to one of them first}}
    %r:2 = scf.for %l = %one to %n step %one iter_args(%i = %x, %j = %y) -> (!x, !x) {
      scf.yield %j, %i : !x, !x
    }
    return
  }
}

// -----

// Both would be the result, and both are there.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  func.func @step(%x: !x, %y: !x, %if: i1) attributes {nn.entry = "serve"} {
    // expected-error @below {{assign-memory: 'scf.if' forwards two values that would lie in one place}}
    %r = scf.if %if -> !x {
      scf.yield %x : !x
    } else {
      scf.yield %y : !x
    }
    return
  }
}

// -----

// One end forwards one value as both results, so they have one place; the other has a value for each.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  func.func @step(%x: !x, %if: i1) attributes {nn.entry = "serve"} {
    // expected-error @below {{assign-memory: 'scf.if' forwards two values that would lie in one place}}
    %r:2 = scf.if %if -> (!x, !x) {
      %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
      scf.yield %0, %0 : !x, !x
    } else {
      %1 = kern.call @add(%x, %x) : (!x, !x) -> !x
      %2 = kern.call @add(%x, %1) : (!x, !x) -> !x
      scf.yield %1, %2 : !x, !x
    }
    return
  }
}

// -----

// The loop writes over what it begins with.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  func.func @step(%x: !x, %n: index, %one: index) attributes {nn.entry = "serve"} {
    %r = scf.for %l = %one to %n step %one iter_args(%i = %x) -> (!x) {
      %0 = kern.call @add(%i, %i) : (!x, !x) -> !x
      scf.yield %0 : !x
    }
    // expected-error @below {{assign-memory: reads the argument of 'scf.for' after its result took the place; read it before}}
    %1 = kern.call @add(%x, %r) : (!x, !x) -> !x
    return
  }
}

// -----

// Layers in a loop write over their argument in the first iteration, and the second reads it.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x {
    nn.yield %x : !x
  }
  func.func @step(%x: !x, %b: !nn.batch, %n: index, %one: index) attributes {nn.entry = "serve"} {
    scf.for %l = %one to %n step %one {
      // expected-error @below {{assign-memory: reads the argument of 'nn.layers' after its result took the place; read it before}}
      %y = nn.layers %x, %b [@layer[0 to 2]] : !x
    }
    return
  }
}

// -----

// The places of blocks that branch to one another are not known.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // expected-error @below {{assign-memory: the function has several blocks; loops and branches are ops with regions}}
  func.func @step(%x: !x) attributes {nn.entry = "serve"} {
    cf.br ^end(%x : !x)
  ^end(%y: !x):
    return
  }
}

// -----

// The loop writes over all that lies with what it begins with, the other name of a join, too.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  func.func @step(%x: !x, %b: !nn.batch, %n: index, %one: index) attributes {nn.entry = "serve"} {
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %2 = mla.merge_forms %0, %1, %b : !x
    %r = scf.for %l = %one to %n step %one iter_args(%i = %2) -> (!x) {
      %3 = kern.call @add(%i, %i) : (!x, !x) -> !x
      scf.yield %3 : !x
    }
    // expected-error @below {{assign-memory: reads the argument of 'scf.for' after its result took the place; read it before}}
    %4 = kern.call @add(%0, %r) : (!x, !x) -> !x
    return
  }
}
