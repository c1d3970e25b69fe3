// RUN: k2c-opt %s --group-launches | FileCheck %s

// Forms of latent attention: the kernels of both write one buffer, each the rows of its own segments.
!c = tensor<?x32xf32, #nn.rows<token>>
!o = tensor<?x4x32xf32, #nn.rows<token>>
!qr = tensor<?x4x16xf32, #nn.rows<token>>
!q = tensor<?x4x48xf32, #nn.rows<token>>
!w = tensor<4x32x32xf32>
!kv = !mla.view<latent = 32 x f32, rope = 16 x f32>

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  nn.pool @cache over (layer = 0 to 2) planes (latent = 32 x f32, rope = 16 x f32) page 64 group 0
  kern.func @append(%l: index, %c: !c, %r: tensor<?x16xf32, #nn.rows<token>>, %b: !nn.batch) -> !kv
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %kv = mla.append @cache[%l], %c, %r, %b : !c, tensor<?x16xf32, #nn.rows<token>> -> !kv
    kern.yield %kv : !kv
  }
  kern.func @linear(%x: !c, %w: !w) -> !o
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %a = nn.linear %x, %w : !w order tree<1> : !c -> !o
    kern.yield %a : !o
  }
  kern.func @add(%x: !o, %y: !o) -> !o
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !o
    kern.yield %s : !o
  }
  kern.func @linear_output(%x: !o, %w: !w, %b: !nn.batch) -> !o
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %a = mla.expand_output %x, %w : !w, %b order tree<1> : !o -> !o
    kern.yield %a : !o
  }
  kern.func @absorbed(%q: !o, %r: !qr, %kv: !kv, %b: !nn.batch) -> !o
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %a = mla.attention_absorbed %q, %r, %kv, %b scale 1.25e-1 order softmax<block = 64, split = by_position> : !o, !qr, !kv -> !o
    kern.yield %a : !o
  }
  kern.func @expanded(%q: !q, %kv: !kv, %uk: !w, %uv: !w, %b: !nn.batch) -> !o
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %a = mla.attention_expanded %q, %kv, %uk : !w, %uv : !w, %b scale 1.25e-1 order softmax<block = 64, split = by_position> : !q, !kv -> !o
    kern.yield %a : !o
  }

  // The join stands behind both and before what reads it.
  // CHECK-LABEL: func.func @forms_apart
  func.func @forms_apart(%o: !o, %q: !q, %kv: !kv, %w: !w, %b: !nn.batch) {
    // CHECK-NEXT: %[[A:.*]] = kern.call nowait @linear_output(
    // CHECK-NEXT: %[[E:.*]] = kern.call @expanded(
    // CHECK-NEXT: %[[M:.*]] = mla.merge_forms %[[A]], %[[E]]
    // CHECK-NEXT: kern.call @add(%[[M]], %[[M]])
    %0 = kern.call @linear_output(%o, %w, %b) : (!o, !w, !nn.batch) -> !o
    %1 = kern.call @expanded(%q, %kv, %w, %w, %b) : (!q, !kv, !w, !w, !nn.batch) -> !o
    %2 = mla.merge_forms %0, %1, %b : !o
    %3 = kern.call @add(%2, %2) : (!o, !o) -> !o
    return
  }
  // CHECK-LABEL: func.func @one_form_twice
  func.func @one_form_twice(%o: !o, %w: !w, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @linear_output(
    // CHECK-NEXT: kern.call @linear_output(
    %0 = kern.call @linear_output(%o, %w, %b) : (!o, !w, !nn.batch) -> !o
    %1 = kern.call @linear_output(%o, %w, %b) : (!o, !w, !nn.batch) -> !o
    %2 = mla.merge_forms %0, %1, %b : !o
    return
  }
  // CHECK-LABEL: func.func @all_rows_first
  func.func @all_rows_first(%c: !c, %q: !q, %kv: !kv, %w: !w, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @linear(
    // CHECK-NEXT: kern.call @expanded(
    %0 = kern.call @linear(%c, %w) : (!c, !w) -> !o
    %1 = kern.call @expanded(%q, %kv, %w, %w, %b) : (!q, !kv, !w, !w, !nn.batch) -> !o
    %2 = mla.merge_forms %0, %1, %b : !o
    return
  }
  // CHECK-LABEL: func.func @all_rows_second
  func.func @all_rows_second(%c: !c, %q: !q, %kv: !kv, %w: !w, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @expanded(
    // CHECK-NEXT: kern.call @linear(
    %0 = kern.call @expanded(%q, %kv, %w, %w, %b) : (!q, !kv, !w, !w, !nn.batch) -> !o
    %1 = kern.call @linear(%c, %w) : (!c, !w) -> !o
    %2 = mla.merge_forms %1, %0, %b : !o
    return
  }

  // A form reads every row, whichever it writes.
  // CHECK-LABEL: func.func @reads_the_other
  func.func @reads_the_other(%q: !q, %kv: !kv, %w: !w, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @expanded(
    // CHECK-NEXT: kern.call @linear_output(
    %0 = kern.call @expanded(%q, %kv, %w, %w, %b) : (!q, !kv, !w, !w, !nn.batch) -> !o
    %1 = kern.call @linear_output(%0, %w, %b) : (!o, !w, !nn.batch) -> !o
    return
  }
  // CHECK-LABEL: func.func @writes_what_the_other_reads
  func.func @writes_what_the_other_reads(%o: !o, %q: !q, %kv: !kv, %w: !w, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @linear_output(
    // CHECK-NEXT: kern.call @expanded(
    %0 = kern.call @linear_output(%o, %w, %b) : (!o, !w, !nn.batch) -> !o
    %1 = kern.call @expanded(%q, %kv, %w, %w, %b) : (!q, !kv, !w, !w, !nn.batch) -> !o
    %2 = mla.merge_forms %o, %1, %b : !o
    return
  }

  // Both forms read the cache.
  // CHECK-LABEL: func.func @append_absorbed
  func.func @append_absorbed(%l: index, %c: !c, %r: tensor<?x16xf32, #nn.rows<token>>, %o: !o, %qr: !qr, %kv: !kv, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @append(
    // CHECK-NEXT: kern.call @absorbed(
    // CHECK-NEXT: kern.call @append(
    %0 = kern.call @append(%l, %c, %r, %b) : (index, !c, tensor<?x16xf32, #nn.rows<token>>, !nn.batch) -> !kv
    %1 = kern.call @absorbed(%o, %qr, %kv, %b) : (!o, !qr, !kv, !nn.batch) -> !o
    %2 = kern.call @append(%l, %c, %r, %b) : (index, !c, tensor<?x16xf32, #nn.rows<token>>, !nn.batch) -> !kv
    return
  }
  // CHECK-LABEL: func.func @append_expanded
  func.func @append_expanded(%l: index, %c: !c, %r: tensor<?x16xf32, #nn.rows<token>>, %q: !q, %kv: !kv, %w: !w, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @append(
    // CHECK-NEXT: kern.call @expanded(
    // CHECK-NEXT: kern.call @append(
    %0 = kern.call @append(%l, %c, %r, %b) : (index, !c, tensor<?x16xf32, #nn.rows<token>>, !nn.batch) -> !kv
    %1 = kern.call @expanded(%q, %kv, %w, %w, %b) : (!q, !kv, !w, !w, !nn.batch) -> !o
    %2 = kern.call @append(%l, %c, %r, %b) : (index, !c, tensor<?x16xf32, #nn.rows<token>>, !nn.batch) -> !kv
    return
  }
}
