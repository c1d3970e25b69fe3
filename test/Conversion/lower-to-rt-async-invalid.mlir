// RUN: k2c-copy-opt %s --lower-to-rt --split-input-file --verify-diagnostics

// Work that goes on beside launches has no entry of the runtime.
!x = tensor<?x64xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    // expected-error @below {{lower-to-rt: no program has 'copy.start'; it has rt, calls, scf.for, scf.if and arith.constant, arith.cmpi, arith.select, arith.addi, arith.subi, arith.muli, arith.divsi, arith.remsi, arith.maxsi, arith.minsi}}
    %token, %y = copy.start %x at [0, 2560] : !x -> !x
    copy.wait %token
    nn.yield %x : !x
  }
}
