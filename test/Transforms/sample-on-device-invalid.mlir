// RUN: k2c-opt %s --sample-on-device --verify-diagnostics

// Behind form-kernels no op could join a kernel any more.
!l = tensor<?x1000xf32, #nn.rows<output>>
// expected-error @below {{sample-on-device: expects the distributed form or one before it, and this is of the scheduled form; take the module from before form-kernels}}
kern.func @copy(%x: !l) -> !l {
  kern.yield %x : !l
}
