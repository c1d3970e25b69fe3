// RUN: k2c-opt %s --group-launches --split-input-file --verify-diagnostics

// expected-error @below {{group-launches: the module has no nn.limits, so no buffer has a bound}}
module {
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  // expected-error @below {{the kernel has no tile; run choose-tiles first}}
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  func.func @step(%x: !x) {
    %s = kern.call @add(%x, %x) : (!x, !x) -> !x
    return
  }
}
