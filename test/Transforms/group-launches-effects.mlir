// RUN: k2c-opt %s --group-launches --split-input-file | FileCheck %s

// What two calls may share without a barrier, one function for each case. A call that needs none before the next is
// `open`.
!x = tensor<?x32xf32, #nn.rows<token>>
!w = tensor<32x32xf32>
!h = tensor<?x2x16xf32, #nn.rows<token>>
!s = tensor<?x4xf32, #nn.rows<token>>
!e = tensor<?x2xi32, #nn.rows<token>>
!ew = tensor<?x2xf32, #nn.rows<token>>
!slots = tensor<?x32xf32, #nn.rows<slot, 2>>
!permutation = !moe.permutation<experts = 4, top = 2>
!kv = !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
!kv1 = !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32, group = 1>
!v = tensor<?x32xf32, #nn.rows<output>>
!logits = tensor<?x100xf32, #nn.rows<output>>

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  nn.pool @cache over (layer = 0 to 2) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
  nn.pool @recent over (layer = 0 to 2) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 1
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x32xf32>) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %x = nn.embed %w : tensor<100x32xf32>, %b : !x
    kern.yield %x : !x
  }
  // One panel of columns and one row an item: the grid of an addition, but rows are not read as rows.
  kern.func @linear(%x: !x, %w: !w) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %a = nn.linear %x, %w : !w order tree<1> : !x -> !x
    kern.yield %a : !x
  }
  kern.func @add(%x: !x, %y: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  kern.func @add_pairs(%x: !x, %y: !x) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 2, head_tile = 1, value_parts = 1> {
    %s = nn.add %x, %y : !x
    kern.yield %s : !x
  }
  kern.func @capture(%x: !x, %b: !nn.batch)
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    nn.capture %x, %b embed : !x
    kern.yield
  }
  kern.func @append(%l: index, %k: !h, %v: !h, %b: !nn.batch) -> !kv
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %kv = nn.append @cache[%l], %k, %v, %b : !h, !h -> !kv
    kern.yield %kv : !kv
  }
  kern.func @append_recent(%l: index, %k: !h, %v: !h, %b: !nn.batch) -> !kv1
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %kv = nn.append @recent[%l], %k, %v, %b : !h, !h -> !kv1
    kern.yield %kv : !kv1
  }
  kern.func @attention(%q: !h, %kv: !kv, %b: !nn.batch) -> !h
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %o = nn.attention %q, %kv, %b scale 2.5e-1 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    kern.yield %o : !h
  }
  kern.func @split(%q: !h, %kv: !kv, %b: !nn.batch) -> !h
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1, split_tokens = 2> {
    %o = nn.attention %q, %kv, %b scale 2.5e-1 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    kern.yield %o : !h
  }
  kern.func @routing(%s: !s, %b: !nn.batch, %l: index) -> (!e, !ew)
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %e, %w = moe.routing %s, %b layer %l among 0 to 2 score softmax top 2 groups 1 of 1 scale 1.0 : !s -> !e, !ew
    kern.yield %e, %w : !e, !ew
  }
  kern.func @permutation(%e: !e) -> !permutation
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 0, head_tile = 1, value_parts = 1> {
    %p = moe.permutation %e : !e -> !permutation
    kern.yield %p : !permutation
  }
  kern.func @permute(%x: !x, %p: !permutation) -> !slots
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = moe.permute %x, %p : !x, !permutation -> !slots
    kern.yield %s : !slots
  }
  kern.func @unpermute(%x: !slots, %p: !permutation, %e: !e) -> !x
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %y = moe.unpermute %x, %p, %e order tree<4> : !slots, !permutation, !e -> !x
    kern.yield %y : !x
  }
  kern.func @gated_act(%g: tensor<?x2x32xf32, #nn.rows<slot, 2>>) -> !slots
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %a = nn.gated_act %g act silu : tensor<?x2x32xf32, #nn.rows<slot, 2>> -> !slots
    kern.yield %a : !slots
  }
  kern.func @norm_slots(%x: !slots, %g: tensor<32xf32>) -> !slots
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %s = nn.rms_norm %x, %g : tensor<32xf32> eps 1.0e-06 : !slots
    kern.yield %s : !slots
  }
  kern.func @linear_head(%x: !v, %w: tensor<100x32xf32>) -> !logits
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %l = nn.linear %x, %w : tensor<100x32xf32> order tree<1> : !v -> !logits
    kern.yield %l : !logits
  }

  // Caches. Two appends may write one page.
  // CHECK-LABEL: func.func @append_append
  func.func @append_append(%l: index, %k: !h, %v: !h, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @append
    // CHECK-NEXT: kern.call @append
    %0 = kern.call @append(%l, %k, %k, %b) : (index, !h, !h, !nn.batch) -> !kv
    %1 = kern.call @append(%l, %v, %v, %b) : (index, !h, !h, !nn.batch) -> !kv
    return
  }
  // CHECK-LABEL: func.func @append_attention
  func.func @append_attention(%l: index, %k: !h, %kv: !kv, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @append
    // CHECK-NEXT: kern.call @attention
    %0 = kern.call @append(%l, %k, %k, %b) : (index, !h, !h, !nn.batch) -> !kv
    %1 = kern.call @attention(%k, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    return
  }
  // A worker that is done appends while another still attends.
  // CHECK-LABEL: func.func @attention_append
  func.func @attention_append(%l: index, %k: !h, %kv: !kv, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @attention
    // CHECK-NEXT: kern.call @append
    %0 = kern.call @attention(%k, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    %1 = kern.call @append(%l, %k, %k, %b) : (index, !h, !h, !nn.batch) -> !kv
    return
  }
  // Caches of another group are other memory.
  // CHECK-LABEL: func.func @attention_append_of_groups
  func.func @attention_append_of_groups(%l: index, %k: !h, %kv: !kv, %b: !nn.batch) {
    // CHECK-NEXT: kern.call nowait @attention
    // CHECK-NEXT: kern.call @append_recent
    %0 = kern.call @attention(%k, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    %1 = kern.call @append_recent(%l, %k, %k, %b) : (index, !h, !h, !nn.batch) -> !kv1
    return
  }
  // CHECK-LABEL: func.func @attention_attention
  func.func @attention_attention(%q: !h, %kv: !kv, %b: !nn.batch) {
    // CHECK-NEXT: kern.call nowait @attention
    // CHECK-NEXT: kern.call @attention
    %0 = kern.call @attention(%q, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    %1 = kern.call @attention(%q, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    return
  }
  // Calls of a kernel that splits its sequences share the place of its partials; those of another have their own.
  // CHECK-LABEL: func.func @split_split
  func.func @split_split(%q: !h, %kv: !kv, %b: !nn.batch) {
    // CHECK-NEXT: kern.call nowait @attention
    // CHECK-NEXT: kern.call @split
    // CHECK-NEXT: kern.call @split
    %0 = kern.call @attention(%q, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    %1 = kern.call @split(%q, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    %2 = kern.call @split(%q, %kv, %b) : (!h, !kv, !nn.batch) -> !h
    return
  }

  // Captures. Routes and hidden states are captured apart, each once a group; none is a cache.
  // CHECK-LABEL: func.func @routing_routing
  func.func @routing_routing(%s: !s, %l: index, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @routing
    // CHECK-NEXT: kern.call @routing
    %0:2 = kern.call @routing(%s, %b, %l) : (!s, !nn.batch, index) -> (!e, !ew)
    %1:2 = kern.call @routing(%s, %b, %l) : (!s, !nn.batch, index) -> (!e, !ew)
    return
  }
  // CHECK-LABEL: func.func @capture_capture
  func.func @capture_capture(%x: !x, %b: !nn.batch) {
    // CHECK-NEXT: kern.call @capture
    // CHECK-NEXT: kern.call @capture
    kern.call @capture(%x, %b) : (!x, !nn.batch) -> ()
    kern.call @capture(%x, %b) : (!x, !nn.batch) -> ()
    return
  }
  // CHECK-LABEL: func.func @all_apart
  func.func @all_apart(%x: !x, %s: !s, %k: !h, %l: index, %b: !nn.batch) {
    // CHECK-NEXT: kern.call nowait @append
    // CHECK-NEXT: kern.call nowait @routing
    // CHECK-NEXT: kern.call @capture
    %0 = kern.call @append(%l, %k, %k, %b) : (index, !h, !h, !nn.batch) -> !kv
    %1:2 = kern.call @routing(%s, %b, %l) : (!s, !nn.batch, index) -> (!e, !ew)
    kern.call @capture(%x, %b) : (!x, !nn.batch) -> ()
    return
  }
  // CHECK-LABEL: func.func @all_apart_reversed
  func.func @all_apart_reversed(%x: !x, %s: !s, %k: !h, %l: index, %b: !nn.batch) {
    // CHECK-NEXT: kern.call nowait @capture
    // CHECK-NEXT: kern.call nowait @routing
    // CHECK-NEXT: kern.call @append
    kern.call @capture(%x, %b) : (!x, !nn.batch) -> ()
    %1:2 = kern.call @routing(%s, %b, %l) : (!s, !nn.batch, index) -> (!e, !ew)
    %0 = kern.call @append(%l, %k, %k, %b) : (index, !h, !h, !nn.batch) -> !kv
    return
  }

  // Plans are written and read as rows are, and combining destroys its slots.
  // CHECK-LABEL: func.func @plan
  func.func @plan(%x: !x, %e: !e) {
    // CHECK-NEXT: kern.call @permutation
    // CHECK-NEXT: kern.call @permute
    %0 = kern.call @permutation(%e) : (!e) -> !permutation
    %1 = kern.call @permute(%x, %0) : (!x, !permutation) -> !slots
    return
  }
  // CHECK-LABEL: func.func @destroyed
  func.func @destroyed(%x: !slots, %p: !permutation, %e: !e) {
    // CHECK-NEXT: kern.call @unpermute
    // CHECK-NEXT: kern.call @unpermute
    %0 = kern.call @unpermute(%x, %p, %e) : (!slots, !permutation, !e) -> !x
    %1 = kern.call @unpermute(%x, %p, %e) : (!slots, !permutation, !e) -> !x
    return
  }

  // Row by row: both must take row i as item i, of grids of one size.
  // CHECK-LABEL: func.func @row_by_row
  func.func @row_by_row(%x: !x) {
    // CHECK-NEXT: kern.call nowait @add(
    // CHECK-NEXT: kern.call @add(
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @add(%0, %x) : (!x, !x) -> !x
    return
  }
  // %3 follows %2 into the last group, though there are calls of its kind in the first.
  // CHECK-LABEL: func.func @row_by_row_in_order
  func.func @row_by_row_in_order(%x: !x, %w: !w) {
    // CHECK-NEXT: kern.call @add(
    // CHECK-NEXT: kern.call @linear(
    // CHECK-NEXT: kern.call nowait @add(
    // CHECK-NEXT: kern.call @add(
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @linear(%0, %w) : (!x, !w) -> !x
    %2 = kern.call @add(%1, %1) : (!x, !x) -> !x
    %3 = kern.call @add(%2, %x) : (!x, !x) -> !x
    return
  }
  // CHECK-LABEL: func.func @rows_of_an_item
  func.func @rows_of_an_item(%x: !x) {
    // CHECK-NEXT: kern.call @add(
    // CHECK-NEXT: kern.call @add_pairs(
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @add_pairs(%0, %x) : (!x, !x) -> !x
    return
  }
  // CHECK-LABEL: func.func @slots_of_a_token
  func.func @slots_of_a_token(%x: tensor<?x2x32xf32, #nn.rows<slot, 2>>, %g: tensor<32xf32>) {
    // CHECK-NEXT: kern.call @gated_act(
    // CHECK-NEXT: kern.call @norm_slots(
    %0 = kern.call @gated_act(%x) : (tensor<?x2x32xf32, #nn.rows<slot, 2>>) -> !slots
    %1 = kern.call @norm_slots(%0, %g) : (!slots, tensor<32xf32>) -> !slots
    return
  }
  // CHECK-LABEL: func.func @first_not_by_row
  func.func @first_not_by_row(%x: !x, %w: !w) {
    // CHECK-NEXT: kern.call @linear(
    // CHECK-NEXT: kern.call @add(
    %0 = kern.call @linear(%x, %w) : (!x, !w) -> !x
    %1 = kern.call @add(%0, %0) : (!x, !x) -> !x
    return
  }
  // CHECK-LABEL: func.func @second_not_by_row
  func.func @second_not_by_row(%x: !x, %w: !w) {
    // CHECK-NEXT: kern.call @add(
    // CHECK-NEXT: kern.call @linear(
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    %1 = kern.call @linear(%0, %w) : (!x, !w) -> !x
    return
  }

  // What a layer yields takes the place of what it carried: what reads one and writes the other is not row by row.
  nn.weights @t "t" : tensor<100x32xf32>
  nn.weights @w "w" : tensor<32x32xf32>
  // CHECK-LABEL: nn.layer @argument_result
  nn.layer @argument_result(%l: index, %x: !x, %y: !x, %b: !nn.batch) -> !x {
    // CHECK-NEXT: kern.call @capture(
    // CHECK-NEXT: kern.call @add(
    kern.call @capture(%x, %b) : (!x, !nn.batch) -> ()
    %0 = kern.call @add(%y, %y) : (!x, !x) -> !x
    nn.yield %0 : !x
  }
  // CHECK-LABEL: nn.layer @result_argument
  nn.layer @result_argument(%l: index, %x: !x, %y: !x, %b: !nn.batch) -> !x {
    // CHECK-NEXT: kern.call @add(
    // CHECK-NEXT: kern.call @capture(
    %0 = kern.call @add(%y, %y) : (!x, !x) -> !x
    kern.call @capture(%x, %b) : (!x, !nn.batch) -> ()
    nn.yield %0 : !x
  }
  // CHECK-LABEL: nn.layer @result_alone
  nn.layer @result_alone(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // CHECK-NEXT: kern.call @embedding(
    // CHECK-NEXT: kern.call nowait @linear(
    // CHECK-NEXT: kern.call @linear(
    %0 = kern.call @embedding(%b, @t) : (!nn.batch) -> !x
    %1 = kern.call @linear(%0, @w) : (!x) -> !x
    %2 = kern.call @linear(%0, @w) : (!x) -> !x
    nn.yield %2 : !x
  }
  // CHECK-LABEL: nn.layer @argument_alone
  nn.layer @argument_alone(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // CHECK-NEXT: kern.call nowait @linear(
    // CHECK-NEXT: kern.call @linear(
    %0 = kern.call @linear(%x, @w) : (!x) -> !x
    %1 = kern.call @linear(%x, @w) : (!x) -> !x
    nn.yield %x : !x
  }
  // Of several values it takes the place of its own alone.
  // CHECK-LABEL: nn.layer @other_argument
  nn.layer @other_argument(%l: index, %x: !x, %y: !x, %b: !nn.batch) -> (!x, !x) {
    // CHECK-NEXT: kern.call nowait @capture(
    // CHECK-NEXT: kern.call @add(
    kern.call @capture(%y, %b) : (!x, !nn.batch) -> ()
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    nn.yield %0, %y : !x, !x
  }
  // CHECK-LABEL: nn.layer @own_argument
  nn.layer @own_argument(%l: index, %x: !x, %y: !x, %b: !nn.batch) -> (!x, !x) {
    // CHECK-NEXT: kern.call @capture(
    // CHECK-NEXT: kern.call @add(
    kern.call @capture(%y, %b) : (!x, !nn.batch) -> ()
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    nn.yield %x, %0 : !x, !x
  }
  // CHECK-LABEL: nn.layer @only_read
  nn.layer @only_read(%l: index, %x: !x, %t: !x, %b: !nn.batch) -> !x {
    // CHECK-NEXT: kern.call nowait @capture(
    // CHECK-NEXT: kern.call @add(
    kern.call @capture(%t, %b) : (!x, !nn.batch) -> ()
    %0 = kern.call @add(%x, %x) : (!x, !x) -> !x
    nn.yield %0 : !x
  }

  // Sampled logits lie in the step, which is no buffer: neither one of them all, nor that of an argument without bytes.
  // CHECK-LABEL: func.func @sampled
  func.func @sampled(%v: !v, %w: tensor<100x32xf32>, %b: !nn.batch) {
    // CHECK-NEXT: kern.call nowait @linear_head(
    // CHECK-NEXT: kern.call @linear_head(
    %0 = kern.call @linear_head(%v, %w) : (!v, tensor<100x32xf32>) -> !logits
    %1 = kern.call @linear_head(%v, %w) : (!v, tensor<100x32xf32>) -> !logits
    nn.sample %0, %b : !logits
    nn.sample %1, %b : !logits
    return
  }
  kern.func @output_rows(%x: !x, %b: !nn.batch) -> !v
      tile<generic, lanes = 8, mr = 1, nr = 4, prefetch = 0, rows_block = 1, head_tile = 1, value_parts = 1> {
    %v = nn.output_rows %x, %b : !x -> !v
    kern.yield %v : !v
  }
  // CHECK-LABEL: func.func @sampled_beside_result
  func.func @sampled_beside_result(%b: !nn.batch, %t: tensor<100x32xf32>, %w: !w) -> !x {
    // CHECK-NEXT: kern.call @embedding(
    // CHECK-NEXT: kern.call @output_rows(
    // CHECK-NEXT: kern.call nowait @linear_head(
    // CHECK-NEXT: kern.call @linear(
    %0 = kern.call @embedding(%b, %t) : (!nn.batch, tensor<100x32xf32>) -> !x
    %1 = kern.call @output_rows(%0, %b) : (!x, !nn.batch) -> !v
    %2 = kern.call @linear_head(%1, %t) : (!v, tensor<100x32xf32>) -> !logits
    %3 = kern.call @linear(%0, %w) : (!x, !w) -> !x
    nn.sample %2, %b : !logits
    return %3 : !x
  }
}
