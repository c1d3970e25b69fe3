// RUN: k2c-opt %s --emit-kernels --verify-diagnostics

!x = tensor<?x64xf32, #nn.rows<token>>
// expected-error @below {{emit-kernels: the kernel has no tile; run choose-tiles first}}
kern.func @add(%x: !x, %y: !x) -> !x {
  %s = nn.add %x, %y : !x
  kern.yield %s : !x
}
