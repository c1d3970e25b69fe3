// RUN: k2c-opt %s --lower-to-rt --split-input-file --verify-diagnostics

!e = tensor<?x2xi32, #nn.rows<token>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 0, max = 40>>
!counts = !dist.counts<members = 2>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  kern.func @route_plan(%e: !e, %l: index) -> (tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts) tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 0, head_tile = 1, value_parts = 1> {
    %r, %s, %b = moe.route_plan %e layer %l among 0 to 3 experts 12 slots 12 within world to rank held 6 : !e -> tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts
    kern.yield %r, %s, %b : tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts
  }
  nn.layer @layer(%l: index, %x: !sums, %e: !e, %b: !nn.batch) -> (!sums, !e) attributes {mem.arguments = array<i64: 0, 10240>} {
    %r:3 = kern.call @route_plan(%e, %l) at [10368, 10624, 10688] : (!e, index) -> (tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts)
    // expected-error @below {{lower-to-rt: the collective has 0 offsets of its 1 results; run assign-memory first}}
    %y = dist.all_to_all %x to %r#1 from %r#2 over ep site 0 : !sums, !counts, !counts -> !sums
    nn.yield %x, %e : !sums, !e
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

// The counts of what came have a place, too.
!e = tensor<?x2xi32, #nn.rows<token>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 0, max = 40>>
!counts = !dist.counts<members = 2>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  kern.func @route_plan(%e: !e, %l: index) -> (tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts) tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 0, head_tile = 1, value_parts = 1> {
    %r, %s, %b = moe.route_plan %e layer %l among 0 to 3 experts 12 slots 12 within world to rank held 6 : !e -> tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts
    kern.yield %r, %s, %b : tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts
  }
  nn.layer @layer(%l: index, %x: !sums, %e: !e, %b: !nn.batch) -> (!sums, !e) attributes {mem.arguments = array<i64: 0, 10240>} {
    %r:3 = kern.call @route_plan(%e, %l) at [10368, 10624, 10688] : (!e, index) -> (tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts)
    // expected-error @below {{lower-to-rt: the collective has 1 offsets of its 2 results; run assign-memory first}}
    %y, %c = dist.all_to_all %x to %r#1 over ep site 0 quota 10 at [10752] : !sums, !counts -> !sums, !counts
    nn.yield %x, %e : !sums, !e
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

!e = tensor<?x2xi32, #nn.rows<token>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 0, max = 40>>
!counts = !dist.counts<members = 2>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  kern.func @route_plan(%e: !e, %l: index) -> (tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts) tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 0, head_tile = 1, value_parts = 1> {
    %r, %s, %b = moe.route_plan %e layer %l among 0 to 3 experts 12 slots 12 within world to rank held 6 : !e -> tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts
    kern.yield %r, %s, %b : tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts
  }
  nn.layer @layer(%l: index, %x: !sums, %e: !e, %b: !nn.batch) -> (!sums, !e) attributes {mem.arguments = array<i64: 0, 10240>} {
    %r:3 = kern.call @route_plan(%e, %l) at [10368, 10624, 10688] : (!e, index) -> (tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts)
    %y = dist.all_to_all %x to %r#1 from %r#2 over ep site 0 at [10752] : !sums, !counts, !counts -> !sums
    // expected-error @below {{lower-to-rt: a second op is site 0; give it a number of its own}}
    %z = dist.all_to_all %x to %r#1 from %r#2 over ep site 0 at [10752] : !sums, !counts, !counts -> !sums
    nn.yield %x, %e : !sums, !e
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

!e = tensor<?x2xi32, #nn.rows<token>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 0, max = 40>>
!counts = !dist.counts<members = 2>
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  kern.func @route_plan(%e: !e, %l: index) -> (tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts) tile<generic, lanes = 8, mr = 1, nr = 2, prefetch = 0, rows_block = 0, head_tile = 1, value_parts = 1> {
    %r, %s, %b = moe.route_plan %e layer %l among 0 to 3 experts 12 slots 12 within world to rank held 6 : !e -> tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts
    kern.yield %r, %s, %b : tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts
  }
  nn.layer @layer(%l: index, %x: !sums, %e: !e, %b: !nn.batch) -> (!sums, !e) attributes {mem.arguments = array<i64: 0, 10240>} {
    %r:3 = kern.call @route_plan(%e, %l) at [10368, 10624, 10688] : (!e, index) -> (tensor<?x3x2xi32, #nn.rows<token>>, !counts, !counts)
    %y = dist.all_to_all %x to %r#1 from %r#2 over ep site 0 at [10752] : !sums, !counts, !counts -> !sums
    // expected-error @below {{lower-to-rt: site 2 is one of 2; number sites from 0 without gaps}}
    %z = dist.all_to_all %x to %r#1 from %r#2 over ep site 2 at [10752] : !sums, !counts, !counts -> !sums
    nn.yield %x, %e : !sums, !e
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

// So have slices: each result of a scatter.
!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
module attributes {nn.limits = #nn.limits<token = 10 of 20, seq = 3, context = 64, output = 3>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    %all = dist.gather_slices %x site 0 at [2560] : !x -> !all
    // expected-error @below {{lower-to-rt: the collective has 1 offsets of its 2 results; run assign-memory first}}
    %p0, %p1 = dist.scatter_slices %all site 1 at [7680] : !all -> !x, !x
    nn.yield %x : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
module attributes {nn.limits = #nn.limits<token = 10 of 20, seq = 3, context = 64, output = 3>, mem.certificate = #mem.certificate<weights = 0, cache = 0, arena = 0, scratch = 0, logits = 0>} {
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x attributes {mem.arguments = array<i64: 0>} {
    // expected-error @below {{lower-to-rt: the collective has 0 offsets of its 1 results; run assign-memory first}}
    %all = dist.gather_slices %x site 0 : !x -> !all
    nn.yield %x : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}
