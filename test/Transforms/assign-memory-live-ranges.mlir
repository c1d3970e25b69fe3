// RUN: k2c-opt %s --assign-memory --split-input-file | FileCheck %s
// RUN: k2c-opt %s --assign-memory --split-input-file --remarks-filter=assign-memory 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// How long a buffer lives, and who shares it. A row of 64 f32 in 10 token rows is 2560 bytes.
!x = tensor<?x64xf32, #nn.rows<token>>
!h = tensor<?x2x16xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>

// The peak of the module: the 10240 bytes of its largest entry, and behind them the partials of two kernels, 8192 bytes
// each: 2 tokens x 2 heads x 16 partials x 2 cache lines.
// CHECK: module attributes {mem.peak = 26624 : i64
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xf32>) -> !x {
    %x = nn.embed %w : tensor<100x64xf32>, %b : !x
    kern.yield %x : !x
  }
  kern.func @add(%x: !x, %y: !x) -> !x {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  kern.func @split(%q: !h, %kv: !kv, %b: !nn.batch) -> !h
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1, split_tokens = 2> {
    %o = nn.attention %q, %kv, %b scale 2.5e-1 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    kern.yield %o : !h
  }
  kern.func @split_too(%q: !h, %kv: !kv, %b: !nn.batch) -> !h
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1, split_tokens = 2> {
    %o = nn.attention %q, %kv, %b scale 5.0e-1 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    kern.yield %o : !h
  }
  kern.func @whole(%q: !h, %kv: !kv, %b: !nn.batch) -> !h
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %o = nn.attention %q, %kv, %b scale 2.5e-1 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    kern.yield %o : !h
  }

  // merge_forms joins its operands: the buffer lives from the first of them, whichever is named first.
  // CHECK-LABEL: func.func @absorbed_first
  func.func @absorbed_first(%b: !nn.batch, %w: tensor<100x64xf32>) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [2560]
    // CHECK-NEXT: kern.call @add({{.*}}) at [5120]
    // CHECK-NEXT: kern.call @add({{.*}}) at [0]
    %0 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %1 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %2 = kern.call @add(%1, %1) : (!x, !x) -> !x
    %3 = kern.call @add(%2, %2) : (!x, !x) -> !x
    %4 = mla.merge_forms %0, %3, %b : !x
    // CHECK: kern.call @add({{.*}}) at [2560]
    %5 = kern.call @add(%4, %4) : (!x, !x) -> !x
    return
  }
  // CHECK-LABEL: func.func @expanded_first
  func.func @expanded_first(%b: !nn.batch, %w: tensor<100x64xf32>) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [5120]
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    // CHECK-NEXT: kern.call @add({{.*}}) at [2560]
    // CHECK-NEXT: kern.call @add({{.*}}) at [5120]
    %0 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %1 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %2 = kern.call @add(%1, %1) : (!x, !x) -> !x
    %3 = kern.call @add(%2, %2) : (!x, !x) -> !x
    %4 = mla.merge_forms %3, %0, %b : !x
    return
  }
  // The joined buffer lives as long as the join is read.
  // CHECK-LABEL: func.func @join_is_read
  func.func @join_is_read(%b: !nn.batch, %w: tensor<100x64xf32>) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    %0 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %1 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %2 = mla.merge_forms %0, %1, %b : !x
    // CHECK: kern.call @embedding({{.*}}) at [2560]
    %3 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    // CHECK-NEXT: kern.call @add({{.*}}) at [5120]
    %4 = kern.call @add(%2, %3) : (!x, !x) -> !x
    return
  }
  // A join of joins is one buffer, a join with itself is no other; what was joined away is none.
  // CHECK-LABEL: func.func @joins
  // REMARK: function 'joins': 2 buffers, peak 5.00 KiB (5.12 KB)
  func.func @joins(%b: !nn.batch, %w: tensor<100x64xf32>) attributes {nn.entry = "serve"} {
    // CHECK-COUNT-3: kern.call @embedding({{.*}}) at [0]
    %0 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %1 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %2 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %3 = mla.merge_forms %1, %2, %b : !x
    %4 = mla.merge_forms %0, %3, %b : !x
    %5 = mla.merge_forms %4, %4, %b : !x
    // CHECK: kern.call @add({{.*}}) at [2560]
    %6 = kern.call @add(%5, %3) : (!x, !x) -> !x
    return
  }

  // Calls of a group live at the same time: the second takes no place of what the first reads, the third does.
  // CHECK-LABEL: func.func @group
  func.func @group(%b: !nn.batch, %w: tensor<100x64xf32>) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    // CHECK-NEXT: kern.call nowait @add({{.*}}) at [2560]
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [5120]
    // CHECK-NEXT: kern.call @add({{.*}}) at [0]
    %0 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %1 = kern.call nowait @add(%0, %0) : (!x, !x) -> !x
    %2 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %3 = kern.call @add(%1, %2) : (!x, !x) -> !x
    return
  }
  // A join of forms is no barrier: %3 runs beside %2, which reads %0.
  // CHECK-LABEL: func.func @join_in_a_group
  func.func @join_in_a_group(%x: !x, %y: !x, %b: !nn.batch, %w: tensor<100x64xf32>) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [2560]
    // CHECK-NEXT: kern.call nowait @add({{.*}}) at [5120]
    %0 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %1 = kern.call nowait @add(%0, %0) : (!x, !x) -> !x
    %2 = mla.merge_forms %x, %y, %b : !x
    // CHECK: kern.call @embedding({{.*}}) at [7680]
    %3 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    // CHECK-NEXT: kern.call @add({{.*}}) at [2560]
    %4 = kern.call @add(%2, %3) : (!x, !x) -> !x
    return
  }
  // What nobody reads has a place of its own while it is written.
  // CHECK-LABEL: func.func @nobody_reads
  func.func @nobody_reads(%b: !nn.batch, %w: tensor<100x64xf32>) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call nowait @embedding({{.*}}) at [0]
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [2560]
    %0 = kern.call nowait @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %1 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    return
  }
  // A hole of the very size is taken.
  // CHECK-LABEL: func.func @hole
  func.func @hole(%b: !nn.batch, %w: tensor<100x64xf32>) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [0]
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [2560]
    // CHECK-NEXT: kern.call @add({{.*}}) at [5120]
    // CHECK-NEXT: kern.call @add({{.*}}) at [2560]
    %0 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %1 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    %2 = kern.call @add(%0, %1) : (!x, !x) -> !x
    %3 = kern.call @add(%0, %2) : (!x, !x) -> !x
    %4 = kern.call @add(%2, %3) : (!x, !x) -> !x
    return
  }

  // Bounds of the other row spaces: 3 sequences, as many output rows, 2 received rows, 5 rows of a subtree, 10
  // tokens of bf16; each of 64 elements: 768, 768, 512, 1280 and 1280 bytes, all read at the end.
  // CHECK-LABEL: func.func @bounds
  func.func @bounds(%s: tensor<?x64xf32, #nn.rows<seq>>, %v: tensor<?x64xf32, #nn.rows<output>>, %r: tensor<?x64xf32, #nn.rows<recv, site = 1, max = 2>>,
                    %t: tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 5>>, %n: tensor<?x64xbf16, #nn.rows<token>>,
                    %b: !nn.batch, %w: tensor<100x64xf32>) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @embedding({{.*}}) at [4608]
    %0 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    kern.call @after(%s, %v, %r, %t, %n) : (tensor<?x64xf32, #nn.rows<seq>>, tensor<?x64xf32, #nn.rows<output>>, tensor<?x64xf32, #nn.rows<recv, site = 1, max = 2>>, tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 5>>, tensor<?x64xbf16, #nn.rows<token>>) -> ()
    return
  }
  kern.func @after(%s: tensor<?x64xf32, #nn.rows<seq>>, %v: tensor<?x64xf32, #nn.rows<output>>, %r: tensor<?x64xf32, #nn.rows<recv, site = 1, max = 2>>,
                     %t: tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 5>>, %n: tensor<?x64xbf16, #nn.rows<token>>) {
    kern.yield
  }

  // Only entries are placed.
  // CHECK-LABEL: func.func @no_entry
  func.func @no_entry(%b: !nn.batch, %w: tensor<100x64xf32>) {
    // CHECK-NEXT: kern.call @embedding(%{{.*}}, %{{.*}}) :
    %0 = kern.call @embedding(%b, %w) : (!nn.batch, tensor<100x64xf32>) -> !x
    return
  }

  // Partials lie behind all entries, those of each kernel behind those of the last; all calls of one share them.
  // CHECK-LABEL: func.func @partials
  // CHECK-SAME: mem.peak = 2560 : i64
  func.func @partials(%q: !h, %kv: !kv, %b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: kern.call @split({{.*}} partials 10240
    // CHECK-NEXT: kern.call @split_too({{.*}} partials 18432
    // CHECK-NEXT: kern.call @split({{.*}} partials 10240
    // CHECK-NEXT: kern.call @whole
    // CHECK-NOT: partials
    %0 = kern.call @split(%q, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    %1 = kern.call @split_too(%0, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    %2 = kern.call @split(%1, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    %3 = kern.call @whole(%2, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    return
  }
}
