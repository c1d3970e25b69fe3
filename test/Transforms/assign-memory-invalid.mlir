// RUN: k2c-opt %s --assign-memory --split-input-file --verify-diagnostics

// expected-error @below {{assign-memory: the module has no nn.limits, so no buffer has a bound}}
module {}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @norm(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64xf32>) -> tensor<?x64xf32, #nn.rows<token>> {
    %s = nn.rms_norm %x, %w : tensor<64xf32> eps 1.0e-06 : tensor<?x64xf32, #nn.rows<token>>
    kern.yield %s : tensor<?x64xf32, #nn.rows<token>>
  }
  nn.weights @w "w" : tensor<64xf32>
  // A norm reads a row as a whole: its result cannot take the row's place.
  // expected-error @below {{assign-memory: layer 'layer' still reads what it carries in place 0 when it writes the next; add the residual last}}
  nn.layer @layer(%l: index, %x: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) -> tensor<?x64xf32, #nn.rows<token>> {
    %y = kern.call @norm(%x, @w) : (tensor<?x64xf32, #nn.rows<token>>) -> tensor<?x64xf32, #nn.rows<token>>
    nn.yield %y : tensor<?x64xf32, #nn.rows<token>>
  }
  func.func @step(%x: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %y = nn.layers %x, %b [@layer[0 to 2]] : tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @capture(%x: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) {
    nn.capture %x, %b embed : tensor<?x64xf32, #nn.rows<token>>
    kern.yield
  }
  nn.layer @layer(%l: index, %x: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) -> tensor<?x64xf32, #nn.rows<token>> {
    nn.yield %x : tensor<?x64xf32, #nn.rows<token>>
  }
  func.func @step(%x: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %y = nn.layers %x, %b [@layer[0 to 2]] : tensor<?x64xf32, #nn.rows<token>>
    // expected-error @below {{assign-memory: reads the argument of 'nn.layers' after its result took the place; read it before}}
    kern.call @capture(%x, %b) : (tensor<?x64xf32, #nn.rows<token>>, !nn.batch) -> ()
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  nn.layer @layer(%l: index, %x: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) -> tensor<?x64xf32, #nn.rows<token>> {
    nn.yield %x : tensor<?x64xf32, #nn.rows<token>>
  }
  func.func @step(%x: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %y = nn.layers %x, %b [@layer[0 to 2]] : tensor<?x64xf32, #nn.rows<token>>
    // expected-error @below {{assign-memory: layer 'layer' is in two lists of layers, and has one set of offsets; give each list its own function}}
    %z = nn.layers %y, %b [@layer[2 to 4]] : tensor<?x64xf32, #nn.rows<token>>
    return
  }
}
