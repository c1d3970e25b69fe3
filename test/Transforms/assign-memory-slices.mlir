// RUN: k2c-opt %s --attach-plan="without=buffer-reuse" --assign-memory | FileCheck %s
// RUN: k2c-opt %s --assign-memory | FileCheck %s --check-prefix=REUSE

// Rows of a slice take 8 * 256 bytes, those of a step 16 * 256: they have a bound of their own.
!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
// CHECK: module attributes {{{.*}}mem.peak = 24576 : i64
// REUSE: module attributes {mem.peak = 10240 : i64
module attributes {nn.limits = #nn.limits<token = 8 of 16, seq = 3, context = 64, output = 3>} {
  kern.func @double(%x: !all) -> !all {
    %y = nn.add %x, %x : !all
    kern.yield %y : !all
  }
  kern.func @add_partials(%p0: !x, %p1: !x) -> !x {
    %y = nn.add_partials %p0, %p1 : !x, !x -> !x
    kern.yield %y : !x
  }
  func.func @step(%x: !x, %b: !nn.batch) attributes {nn.entry = "serve"} {
    // What is gathered lies behind what is sent.
    // CHECK: dist.gather_slices %{{.*}} site 0 at [2048]
    // REUSE: dist.gather_slices %{{.*}} site 0 at [2048]
    %all = dist.gather_slices %x site 0 : !x -> !all
    %p = kern.call @double(%all) : (!all) -> !all
    // Each result of a scatter has a place, none of which is in what is sent: the exchange reads that up to its end.
    // CHECK: kern.call @double({{.*}}) at [6144]
    // CHECK: dist.scatter_slices %{{.*}} site 1 at [10240, 12288]
    // REUSE: kern.call @double({{.*}}) at [6144]
    // REUSE: dist.scatter_slices %{{.*}} site 1 at [0, 2048]
    %p0, %p1 = dist.scatter_slices %p site 1 : !all -> !x, !x
    // CHECK: kern.call @add_partials({{.*}}) at [14336]
    %y = kern.call @add_partials(%p0, %p1) : (!x, !x) -> !x
    %z = dist.gather_slices %y site 2 : !x -> !all
    %u = kern.call @double(%z) : (!all) -> !all
    return
  }
}
