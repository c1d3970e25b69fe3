// RUN: k2c-opt %s --assign-memory --split-input-file --verify-diagnostics

// Results may not change places: the next layer would find each where the other was.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  // expected-error @below {{assign-memory: layer 'swap' yields for place 0 what lies in place 1; rows do not change places, so add to what is carried in each}}
  nn.layer @swap(%layer: index, %x: !x, %y: !x, %b: !nn.batch) -> (!x, !x) {
    nn.yield %y, %x : !x, !x
  }
  func.func @step(%x: !x, %y: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %z:2 = nn.layers %x, %y, %b [@swap[0 to 2]] : !x, !x
    return
  }
}

// -----

// One value has one place.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // expected-error @below {{assign-memory: layer 'twice' yields for place 1 what lies in place 0; rows do not change places, so add to what is carried in each}}
  nn.layer @twice(%layer: index, %x: !x, %y: !x, %b: !nn.batch) -> (!x, !x) {
    %0 = kern.call @add(%x, %y) : (!x, !x) -> !x
    nn.yield %0, %0 : !x, !x
  }
  func.func @step(%x: !x, %y: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %z:2 = nn.layers %x, %y, %b [@twice[0 to 2]] : !x, !x
    return
  }
}

// -----

// What is only read stays where it is.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  // expected-error @below {{assign-memory: layer 'read' yields for place 0 what lies in place 1; rows do not change places, so add to what is carried in each}}
  nn.layer @read(%layer: index, %x: !x, %t: !x, %b: !nn.batch) -> !x {
    nn.yield %t : !x
  }
  func.func @step(%x: !x, %y: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %z = nn.layers %x reads %y, %b [@read[0 to 2]] : !x reads !x
    return
  }
}

// -----

// The second value is read after the next of it is written; the first may be.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // expected-error @below {{assign-memory: layer 'second' still reads what it carries in place 1 when it writes the next; add the residual last}}
  nn.layer @second(%layer: index, %x: !x, %y: !x, %b: !nn.batch) -> (!x, !x) {
    %0 = kern.call @add(%y, %y) : (!x, !x) -> !x
    %1 = kern.call @add(%x, %y) : (!x, !x) -> !x
    nn.yield %1, %0 : !x, !x
  }
  func.func @step(%x: !x, %y: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %z:2 = nn.layers %x, %y, %b [@second[0 to 2]] : !x, !x
    return
  }
}

// -----

// A list that carries one value twice, and one that reads what it writes.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  nn.layer @same(%layer: index, %x: !x, %y: !x, %b: !nn.batch) -> (!x, !x) {
    nn.yield %x, %y : !x, !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    // expected-error @below {{assign-memory: 'nn.layers' takes two values that would lie in one place, and writes it; add to one of them first}}
    %z:2 = nn.layers %x, %x, %b [@same[0 to 2]] : !x, !x
    return
  }
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  nn.layer @same(%layer: index, %x: !x, %y: !x, %b: !nn.batch) -> !x {
    nn.yield %x : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    // expected-error @below {{assign-memory: 'nn.layers' takes two values that would lie in one place, and writes it; add to one of them first}}
    %z = nn.layers %x reads %x, %b [@same[0 to 2]] : !x reads !x
    return
  }
}

// -----

// Two names of one place, those of a join.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  nn.layer @same(%layer: index, %x: !x, %y: !x, %b: !nn.batch) -> (!x, !x) {
    nn.yield %x, %y : !x, !x
  }
  func.func @step(%x: !x, %y: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = mla.merge_forms %x, %y, %b : !x
    // expected-error @below {{assign-memory: 'nn.layers' takes two values that would lie in one place, and writes it; add to one of them first}}
    %z:2 = nn.layers %x, %y, %b [@same[0 to 2]] : !x, !x
    return
  }
}

// -----

// What lies where a carried value lies is written over with it.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  nn.layer @layer(%layer: index, %x: !x, %b: !nn.batch) -> !x {
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    nn.yield %0 : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %2 = mla.merge_forms %0, %1, %b : !x
    %3 = nn.layers %2, %b [@layer[0 to 2]] : !x
    // expected-error @below {{assign-memory: reads the argument of 'nn.layers' after its result took the place; read it before}}
    %4 = kern.call @add(%3, %0) : (!x, !x) -> !x
    return
  }
}

// -----

// Every value that is carried is written over, the second, too; what is only read is not.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @capture(%x: !x, %b: !nn.batch) {
    nn.capture %x, %b embed : !x
    kern.yield
  }
  nn.layer @layer(%layer: index, %x: !x, %y: !x, %t: !x, %b: !nn.batch) -> (!x, !x) {
    nn.yield %x, %y : !x, !x
  }
  func.func @step(%x: !x, %y: !x, %t: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %z:2 = nn.layers %x, %y reads %t, %b [@layer[0 to 2]] : !x, !x reads !x
    kern.call @capture(%t, %b) : (!x, !nn.batch) -> ()
    // expected-error @below {{assign-memory: reads the argument of 'nn.layers' after its result took the place; read it before}}
    kern.call @capture(%y, %b) : (!x, !nn.batch) -> ()
    return
  }
}

// -----

// Logits that are sampled lie in the step, where no layer can write.
!x = tensor<?x64xf32, #nn.rows<output>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  nn.layer @layer(%layer: index, %x: !x, %b: !nn.batch) -> !x {
    nn.yield %x : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    // expected-error @below {{assign-memory: rows that layers take and yield lie in the arena, and these do not: they are sampled, or have no columns}}
    %z = nn.layers %x, %b [@layer[0 to 2]] : !x
    nn.sample %x, %b : !x
    return
  }
}

// -----

!x = tensor<?x64xf32, #nn.rows<output>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  // expected-error @below {{assign-memory: rows that layers take and yield lie in the arena, and these do not: they are sampled, or have no columns}}
  nn.layer @taken(%layer: index, %x: !x, %t: !x, %b: !nn.batch) -> !x {
    nn.sample %t, %b : !x
    nn.yield %x : !x
  }
  func.func @step(%x: !x, %y: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %z = nn.layers %x reads %y, %b [@taken[0 to 2]] : !x reads !x
    return
  }
}

// -----

!x = tensor<?x64xf32, #nn.rows<output>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // expected-error @below {{assign-memory: rows that layers take and yield lie in the arena, and these do not: they are sampled, or have no columns}}
  nn.layer @yielded(%layer: index, %x: !x, %t: !x, %b: !nn.batch) -> !x {
    %0 = kern.call @add(%x, %t) : (!x, !x) -> !x
    nn.sample %0, %b : !x
    nn.yield %0 : !x
  }
  func.func @step(%x: !x, %y: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %z = nn.layers %x reads %y, %b [@yielded[0 to 2]] : !x reads !x
    return
  }
}
