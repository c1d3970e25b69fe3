// RUN: k2c-opt %s --rt-to-llvm --split-input-file --verify-diagnostics

// expected-error @below {{rt-to-llvm: expects one rt.program, found 0; run lower-to-rt first}}
module {}

// -----

// expected-error @below {{rt-to-llvm: expects one rt.program, found 2; run lower-to-rt first}}
module {
  func.func @step() {
    return
  }
  rt.program @one entries {serve = @step} arena 0 scratch 0
  rt.program @two entries {serve = @step} arena 0 scratch 0
}

// -----

func.func @step() {
  %t = rt.rows token
  // expected-error @below {{rt-to-llvm: no program has 'arith.shli'; it has rt, calls, scf.for, scf.if and arith.constant, arith.cmpi, arith.select, arith.addi, arith.subi, arith.muli, arith.divsi, arith.remsi, arith.maxsi, arith.minsi}}
  %d = arith.shli %t, %t : i64
  return
}
rt.program @program entries {serve = @step} arena 0 scratch 0

// -----

func.func @step() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{rt-to-llvm: no program has 'arith.shli'; it has rt, calls, scf.for, scf.if and arith.constant, arith.cmpi, arith.select, arith.addi, arith.subi, arith.muli, arith.divsi, arith.remsi, arith.maxsi, arith.minsi}}
    %d = arith.shli %i, %i : index
  }
  return
}
rt.program @program entries {serve = @step} arena 0 scratch 0

// -----

func.func @step() {
  %t = rt.rows token
  %c = arith.cmpi eq, %t, %t : i64
  // expected-error @below {{rt-to-llvm: 'scf.if' has 1 results, and no program forwards values; run lower-to-rt first}}
  %r = scf.if %c -> i64 {
    scf.yield %t : i64
  } else {
    scf.yield %t : i64
  }
  return
}
rt.program @program entries {serve = @step} arena 0 scratch 0

// -----

func.func @step() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{rt-to-llvm: 'scf.for' has 1 results, and no program forwards values; run lower-to-rt first}}
  %r = scf.for %l = %c0 to %c1 step %c1 iter_args(%i = %c0) -> index {
    scf.yield %i : index
  }
  return
}
rt.program @program entries {serve = @step} arena 0 scratch 0

// -----

func.func @step() {
  // expected-error @below {{rt-to-llvm: 'arith.constant' computes with a 'i128'; numbers of a program are index, i64 and i1}}
  %wide = arith.constant 18446744073709551616 : i128
  return
}
rt.program @program entries {serve = @step} arena 0 scratch 0

// -----

func.func @step() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{rt-to-llvm: a loop counts in signed 64 bits by a constant step of 1 or more}}
  scf.for unsigned %i = %c0 to %c1 step %c1 {
  }
  return
}
rt.program @program entries {serve = @step} arena 0 scratch 0

// -----

// expected-error @below {{rt-to-llvm: function 'f' takes a 'i32'; functions of a program take addresses, indices and i64}}
func.func private @f(%n: i32) {
  return
}
func.func @step() {
  return
}
rt.program @program entries {serve = @step} arena 0 scratch 0

// -----

func.func @step() {
  %c0 = arith.constant 0 : index
  %end = arith.constant 9223372036854775807 : index
  %by = arith.constant 2 : index
  // expected-error @below {{rt-to-llvm: the loop's end 9223372036854775807 and step 2 overflow the 64 bits that it counts in}}
  scf.for %i = %c0 to %end step %by {
  }
  return
}
rt.program @program entries {serve = @step} arena 0 scratch 0
