// RUN: k2c-opt %s --assign-memory --split-input-file --verify-diagnostics

// Each way in which a layer may still read its argument when its result takes the argument's place.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // %1 reads the argument after %0 took its place; the result itself was added element by element.
  // expected-error @below {{assign-memory: layer 'later' still reads what it carries in place 0 when it writes the next; add the residual last}}
  nn.layer @later(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @add(%0, %x) : (!x, !x) -> !x
    nn.yield %0 : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %y = nn.layers %x, %b [@later[0 to 2]] : !x
    return
  }
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // Both calls run at the same time.
  // expected-error @below {{assign-memory: layer 'same_group' still reads what it carries in place 0 when it writes the next; add the residual last}}
  nn.layer @same_group(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %0 = kern.call nowait @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @add(%x, %x) : (!x, !x) -> !x
    nn.yield %1 : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %y = nn.layers %x, %b [@same_group[0 to 2]] : !x
    return
  }
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @norm_add(%x: !x, %w: tensor<64xf32>) -> !x {
    %n = nn.rms_norm %x, %w : tensor<64xf32> eps 1.0e-06 : !x
    %s = nn.add %n, %x : !x
    kern.yield %s : !x
  }
  nn.weights @w "w" : tensor<64xf32>
  // One kernel adds the argument and reads it as a whole, too.
  // expected-error @below {{assign-memory: layer 'both_ways' still reads what it carries in place 0 when it writes the next; add the residual last}}
  nn.layer @both_ways(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %0 = kern.call @norm_add(%x, @w) : (!x) -> !x
    nn.yield %0 : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %y = nn.layers %x, %b [@both_ways[0 to 2]] : !x
    return
  }
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // Of the result of a join it is not known who wrote it last.
  // expected-error @below {{assign-memory: layer 'join' still reads what it carries in place 0 when it writes the next; add the residual last}}
  nn.layer @join(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @add(%0, %0) : (!x, !x) -> !x
    %2 = mla.merge_forms %0, %1, %b : !x
    nn.yield %2 : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %y = nn.layers %x, %b [@join[0 to 2]] : !x
    return
  }
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  // The argument is read under another name, that of a join.
  // expected-error @below {{assign-memory: layer 'joined' still reads what it carries in place 0 when it writes the next; add the residual last}}
  nn.layer @joined(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = mla.merge_forms %x, %0, %b : !x
    %2 = kern.call @add(%1, %1) : (!x, !x) -> !x
    %3 = kern.call @add(%1, %2) : (!x, !x) -> !x
    nn.yield %2 : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %y = nn.layers %x, %b [@joined[0 to 2]] : !x
    return
  }
}
