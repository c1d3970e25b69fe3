// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'!moe.permutation' [C2] expects a bound of the rows of site 0, got none}}
func.func private @f(!moe.permutation<experts = 4, top = 8, site = 0>)

// -----

// expected-error @below {{'!moe.permutation' [C1] expects 0 < top <= 4 experts, got 0}}
func.func private @f(!moe.permutation<experts = 4, top = 0, site = 0, max = 512>)

// -----

!e = tensor<?x8xi32, #nn.rows<token>>
!out = tensor<?x8xi32, #nn.rows<output>>
func.func @locate_c1_experts(%l: index, %e: !out) {
  // expected-error @below {{'moe.locate' op [C1] expects experts in row space token, got output}}
  %s = moe.locate %e layer %l among 1 to 61 experts 384 slots 384 held 96 : !out -> !e
  return
}

// -----

!e = tensor<?x8xi32, #nn.rows<token>>
!out = tensor<?x8xi32, #nn.rows<output>>
func.func @locate_c1_result(%l: index, %e: !e) {
  // expected-error @below {{'moe.locate' op [C1] expects the result in row space token, got output}}
  %s = moe.locate %e layer %l among 1 to 61 experts 384 slots 384 held 96 : !e -> !out
  return
}

// -----

!e = tensor<?x8xi32, #nn.rows<token>>
!w = tensor<?x8xf32, #nn.rows<token>>
func.func @locate_c2_experts(%l: index, %w: !w) {
  // expected-error @below {{'moe.locate' op [C2] expects experts of type 'i32', got 'f32'}}
  %s = moe.locate %w layer %l among 1 to 61 experts 384 slots 384 held 96 : !w -> !e
  return
}

// -----

!e = tensor<?x8xi32, #nn.rows<token>>
!six = tensor<?x6xi32, #nn.rows<token>>
func.func @locate_c2_result(%l: index, %e: !e) {
  // expected-error @below {{'moe.locate' op [C2] expects the result of shape [8], got [6]}}
  %s = moe.locate %e layer %l among 1 to 61 experts 384 slots 384 held 96 : !e -> !six
  return
}

// -----

!e = tensor<?x8xi32, #nn.rows<token>>
func.func @locate_c3(%l: index, %e: !e) {
  // expected-error @below {{'moe.locate' op [C3] expects a slot for each of 384 experts, got 376}}
  %s = moe.locate %e layer %l among 1 to 61 experts 384 slots 376 held 94 : !e -> !e
  return
}

// -----

!e = tensor<?x8xi32, #nn.rows<token>>
func.func @locate_c4(%l: index, %e: !e) {
  // expected-error @below {{'moe.locate' op [C4] expects slots of a node that divide 384 slots, got 100}}
  %s = moe.locate %e layer %l among 1 to 61 experts 384 slots 384 held 100 : !e -> !e
  return
}

// -----

#tok = #nn.rows<token>
!routes = tensor<?x3x8xi32, #tok>
!counts = !dist.counts<members = 8>
func.func @route_plan_c1_experts(%l: index, %e: tensor<?x8xi32, #nn.rows<output>>) {
  // expected-error @below {{'moe.route_plan' op [C1] expects rows of tokens or rows that arrived, got #nn.rows<output>}}
  %r, %s, %b = moe.route_plan %e layer %l among 1 to 61 experts 384 slots 384 within world to rank held 48 : tensor<?x8xi32, #nn.rows<output>> -> !routes, !counts, !counts
  return
}

// -----

#tok = #nn.rows<token>
!e = tensor<?x8xi32, #tok>
!counts = !dist.counts<members = 8>
func.func @route_plan_c1_routes(%l: index, %e: !e) {
  // expected-error @below {{'moe.route_plan' op [C1] expects routes in row space #nn.rows<token>, got #nn.rows<output>}}
  %r, %s, %b = moe.route_plan %e layer %l among 1 to 61 experts 384 slots 384 within world to rank held 48 : !e -> tensor<?x3x8xi32, #nn.rows<output>>, !counts, !counts
  return
}

// -----

#tok = #nn.rows<token>
!w = tensor<?x8xf32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!counts = !dist.counts<members = 8>
func.func @route_plan_c2(%l: index, %e: !w) {
  // expected-error @below {{'moe.route_plan' op [C2] expects choices of type 'i32', got 'f32'}}
  %r, %s, %b = moe.route_plan %e layer %l among 1 to 61 experts 384 slots 384 within world to rank held 48 : !w -> !routes, !counts, !counts
  return
}

// -----

#tok = #nn.rows<token>
!e = tensor<?x8xi32, #tok>
!counts = !dist.counts<members = 8>
func.func @route_plan_c3(%l: index, %e: !e) {
  // expected-error @below {{'moe.route_plan' op [C3] expects routes of shape [3, 8], got [2, 8]}}
  %r, %s, %b = moe.route_plan %e layer %l among 1 to 61 experts 384 slots 384 within world to rank held 48 : !e -> tensor<?x2x8xi32, #tok>, !counts, !counts
  return
}

// -----

#tok = #nn.rows<token>
!e = tensor<?x8xi32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!counts = !dist.counts<members = 8>
func.func @route_plan_c4(%l: index, %e: !e) {
  // expected-error @below {{'moe.route_plan' op [C4] expects a slot for each of 385 experts, got 384}}
  %r, %s, %b = moe.route_plan %e layer %l among 1 to 61 experts 385 slots 384 within world to rank held 48 : !e -> !routes, !counts, !counts
  return
}

// -----

!e = tensor<?x8xi32, #nn.rows<token>>
!routes = tensor<?x3x8xi32, #nn.rows<token>>
!counts = !dist.counts<members = 8>
func.func @route_plan_c4_world(%l: index, %e: !e) {
  // expected-error @below {{'moe.route_plan' op [C4] expects members of 384 slots within world, got 8 of 47 to rank}}
  %r, %s, %b = moe.route_plan %e layer %l among 1 to 61 experts 384 slots 384 within world to rank held 47 : !e -> !routes, !counts, !counts
  return
}

// -----

!e = tensor<?x8xi32, #nn.rows<token>>
!routes = tensor<?x3x8xi32, #nn.rows<token>>
!counts = !dist.counts<members = 8>
func.func @route_plan_c4_node(%l: index, %e: !e) {
  // expected-error @below {{'moe.route_plan' op [C4] expects members of 384 slots within node, got 8 of 49 to rank}}
  %r, %s, %b = moe.route_plan %e layer %l among 1 to 61 experts 384 slots 384 within node to rank held 49 : !e -> !routes, !counts, !counts
  return
}

// -----

!e = tensor<?x8xi32, #nn.rows<token>>
!routes = tensor<?x3x8xi32, #nn.rows<token>>
!counts = !dist.counts<members = 8>
func.func @route_plan_c4_member(%l: index, %e: !e) {
  // expected-error @below {{'moe.route_plan' op [C4] expects members of 384 slots within node, got 8 of 48 to node}}
  %r, %s, %b = moe.route_plan %e layer %l among 1 to 61 experts 384 slots 384 within node to node held 48 : !e -> !routes, !counts, !counts
  return
}

// -----

#tok = #nn.rows<token>
!e = tensor<?x8xi32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!counts = !dist.counts<members = 8>
func.func @route_plan_c5(%l: index, %e: !e) {
  // expected-error @below {{'moe.route_plan' op [C5] expects counts of the same members, got '!dist.counts<members = 8>' and '!dist.counts<members = 4>'}}
  %r, %s, %b = moe.route_plan %e layer %l among 1 to 61 experts 384 slots 384 within world to rank held 48 : !e -> !routes, !counts, !dist.counts<members = 4>
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
!w = tensor<?x8xf32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!messages = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
!out = tensor<?x64xf32, #nn.rows<output>>
func.func @pack_c1_input(%x: !out, %w: !w, %r: !routes) {
  // expected-error @below {{'moe.pack' op [C1] expects rows of tokens or rows that arrived, got #nn.rows<output>}}
  %m = moe.pack %x, %w, %r : !out, !w, !routes -> !messages
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
!x = tensor<?x64xf32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!messages = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
!weights = tensor<?x8xf32, #arrived>
func.func @pack_c1_weights(%x: !x, %w: !weights, %r: !routes) {
  // expected-error @below {{'moe.pack' op [C1] expects weights in row space #nn.rows<token>, got #nn.rows<recv, site = 0, max = 512>}}
  %m = moe.pack %x, %w, %r : !x, !weights, !routes -> !messages
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!w = tensor<?x8xf32, #tok>
!messages = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
func.func @pack_c1_routes(%x: !x, %w: !w, %r: tensor<?x3x8xi32, #nn.rows<output>>) {
  // expected-error @below {{'moe.pack' op [C1] expects routes in row space #nn.rows<token>, got #nn.rows<output>}}
  %m = moe.pack %x, %w, %r : !x, !w, tensor<?x3x8xi32, #nn.rows<output>> -> !messages
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!w = tensor<?x8xf32, #tok>
!routes = tensor<?x3x8xi32, #tok>
func.func @pack_c1_result(%x: !x, %w: !w, %r: !routes) {
  // expected-error @below {{'moe.pack' op [C1] expects the result in row space message, got token}}
  %m = moe.pack %x, %w, %r : !x, !w, !routes -> tensor<?x320xi8, #tok>
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!e = tensor<?x8xi32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!messages = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
func.func @pack_c2(%x: !x, %w: !e, %r: !routes) {
  // expected-error @below {{'moe.pack' op [C2] expects weights of type 'f32', got 'i32'}}
  %m = moe.pack %x, %w, %r : !x, !e, !routes -> !messages
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!w = tensor<?x8xf32, #tok>
!messages = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
func.func @pack_c3(%x: !x, %w: !w, %r: tensor<?x3x6xi32, #tok>) {
  // expected-error @below {{'moe.pack' op [C3] expects routes of shape [3, 8], got [3, 6]}}
  %m = moe.pack %x, %w, %r : !x, !w, tensor<?x3x6xi32, #tok> -> !messages
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!w = tensor<?x8xf32, #tok>
!routes = tensor<?x3x8xi32, #tok>
func.func @pack_c4_element(%x: !x, %w: !w, %r: !routes) {
  // expected-error @below {{'moe.pack' op [C4] expects a message of type 'i8', got 'f32'}}
  %m = moe.pack %x, %w, %r : !x, !w, !routes -> tensor<?x320xf32, #nn.rows<message, site = 0, max = 512>>
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!w = tensor<?x8xf32, #tok>
!routes = tensor<?x3x8xi32, #tok>
func.func @pack_c4(%x: !x, %w: !w, %r: !routes) {
  // expected-error @below {{'moe.pack' op [C4] expects a message of shape [320], got [256]}}
  %m = moe.pack %x, %w, %r : !x, !w, !routes -> tensor<?x256xi8, #nn.rows<message, site = 0, max = 512>>
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!arrived = tensor<?x64xf32, #arrived>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!counts = !dist.counts<members = 8>
func.func @unpack_c1_input(%m: tensor<?x320xi8, #arrived>, %c: !counts) {
  // expected-error @below {{'moe.unpack' op [C1] expects the input in row space message, got recv}}
  %y, %s, %w = moe.unpack %m, %c : tensor<?x320xi8, #arrived>, !counts -> !arrived, !chosen, !weights
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!messages = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!counts = !dist.counts<members = 8>
func.func @unpack_c1_results(%m: !messages, %c: !counts) {
  // expected-error @below {{'moe.unpack' op [C1] expects rows that arrived at site 0, got #nn.rows<recv, site = 2, max = 512>}}
  %y, %s, %w = moe.unpack %m, %c : !messages, !counts -> tensor<?x64xf32, #nn.rows<recv, site = 2, max = 512>>, !chosen, !weights
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!messages = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
!arrived = tensor<?x64xf32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!counts = !dist.counts<members = 8>
func.func @unpack_c2(%m: !messages, %c: !counts) {
  // expected-error @below {{'moe.unpack' op [C2] expects slots of shape [8], got [6]}}
  %y, %s, %w = moe.unpack %m, %c : !messages, !counts -> !arrived, tensor<?x6xi32, #arrived>, !weights
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!messages = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
!arrived = tensor<?x64xf32, #arrived>
!chosen = tensor<?x8xi32, #arrived>
!counts = !dist.counts<members = 8>
func.func @unpack_c3(%m: !messages, %c: !counts) {
  // expected-error @below {{'moe.unpack' op [C3] expects weights of type 'f32', got 'i32'}}
  %y, %s, %w = moe.unpack %m, %c : !messages, !counts -> !arrived, !chosen, !chosen
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!messages = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!counts = !dist.counts<members = 8>
func.func @unpack_c4(%m: !messages, %c: !counts) {
  // expected-error @below {{'moe.unpack' op [C4] expects a message of shape [192], got [320]}}
  %y, %s, %w = moe.unpack %m, %c : !messages, !counts -> tensor<?x32xf32, #arrived>, !chosen, !weights
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
!e = tensor<?x8xi32, #tok>
!pairs = tensor<?x2xi32, #arrived>
!counts = !dist.counts<members = 8>
func.func @return_plan_c1_slots(%l: index, %s: !e, %c: !counts) {
  // expected-error @below {{'moe.return_plan' op [C1] expects slots in row space recv, got token}}
  %q, %b = moe.return_plan %s, %c layer %l among 1 to 61 experts 384 slots 384 by rank held 48 : !e, !counts -> !pairs, !counts
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
!chosen = tensor<?x8xi32, #arrived>
!counts = !dist.counts<members = 8>
func.func @return_plan_c1_sums(%l: index, %s: !chosen, %c: !counts) {
  // expected-error @below {{'moe.return_plan' op [C1] expects sums in row space #nn.rows<recv, site = 0, max = 512>, got #nn.rows<token>}}
  %q, %b = moe.return_plan %s, %c layer %l among 1 to 61 experts 384 slots 384 by rank held 48 : !chosen, !counts -> tensor<?x2xi32, #tok>, !counts
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!counts = !dist.counts<members = 8>
func.func @return_plan_c2_slots(%l: index, %s: !weights, %c: !counts) {
  // expected-error @below {{'moe.return_plan' op [C2] expects slots of type 'i32', got 'f32'}}
  %q, %b = moe.return_plan %s, %c layer %l among 1 to 61 experts 384 slots 384 by rank held 48 : !weights, !counts -> !pairs, !counts
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!chosen = tensor<?x8xi32, #arrived>
!counts = !dist.counts<members = 8>
func.func @return_plan_c2_sums(%l: index, %s: !chosen, %c: !counts) {
  // expected-error @below {{'moe.return_plan' op [C2] expects sums of shape [2], got [3]}}
  %q, %b = moe.return_plan %s, %c layer %l among 1 to 61 experts 384 slots 384 by rank held 48 : !chosen, !counts -> tensor<?x3xi32, #arrived>, !counts
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!chosen = tensor<?x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!counts = !dist.counts<members = 8>
func.func @return_plan_c3(%l: index, %s: !chosen, %c: !counts) {
  // expected-error @below {{'moe.return_plan' op [C3] expects counts of the same members, got '!dist.counts<members = 8>' and '!dist.counts<members = 4>'}}
  %q, %b = moe.return_plan %s, %c layer %l among 1 to 61 experts 384 slots 384 by rank held 48 : !chosen, !counts -> !pairs, !dist.counts<members = 4>
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
!x = tensor<?x64xf32, #tok>
!chosen = tensor<?x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @reduce_subtrees_c1_input(%l: index, %d: !x, %p: !permutation, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.reduce_subtrees' op [C1] expects the input in row space #nn.rows<slot, 8, site = 0, max = 512>, got #nn.rows<token>}}
  %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 61 experts 384 slots 384 : !x, !permutation, !chosen, !pairs -> !sums
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
!e = tensor<?x8xi32, #tok>
!pairs = tensor<?x2xi32, #arrived>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @reduce_subtrees_c1_choices(%l: index, %d: !slots, %p: !permutation, %s: !e, %q: !pairs) {
  // expected-error @below {{'moe.reduce_subtrees' op [C1] expects choices in row space #nn.rows<recv, site = 0, max = 512>, got #nn.rows<token>}}
  %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 61 experts 384 slots 384 : !slots, !permutation, !e, !pairs -> !sums
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
!chosen = tensor<?x8xi32, #arrived>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @reduce_subtrees_c1_sums(%l: index, %d: !slots, %p: !permutation, %s: !chosen, %q: tensor<?x2xi32, #tok>) {
  // expected-error @below {{'moe.reduce_subtrees' op [C1] expects sums in row space #nn.rows<recv, site = 0, max = 512>, got #nn.rows<token>}}
  %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 61 experts 384 slots 384 : !slots, !permutation, !chosen, tensor<?x2xi32, #tok> -> !sums
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!arrived = tensor<?x64xf32, #arrived>
!chosen = tensor<?x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @reduce_subtrees_c1_result(%l: index, %d: !slots, %p: !permutation, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.reduce_subtrees' op [C1] expects the result in row space subtree, got recv}}
  %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 61 experts 384 slots 384 : !slots, !permutation, !chosen, !pairs -> !arrived
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!chosen = tensor<?x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @reduce_subtrees_c2(%l: index, %d: !slots, %p: !permutation, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.reduce_subtrees' op [C2] expects result columns of shape [64], got [48]}}
  %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 61 experts 384 slots 384 : !slots, !permutation, !chosen, !pairs -> tensor<?x48xf32, #nn.rows<subtree, site = 1, max = 4096>>
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!chosen = tensor<?x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @reduce_subtrees_c2_element(%l: index, %d: !slots, %p: !permutation, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.reduce_subtrees' op [C2] expects the result of type 'f32', got 'bf16'}}
  %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 61 experts 384 slots 384 : !slots, !permutation, !chosen, !pairs -> tensor<?x64xbf16, #nn.rows<subtree, site = 1, max = 4096>>
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!chosen = tensor<?x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @reduce_subtrees_c3(%l: index, %d: !slots, %p: !permutation, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.reduce_subtrees' op [C3] expects the 4 leaves of 380 experts, got 8}}
  %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 61 experts 380 slots 384 order tree<8> : !slots, !permutation, !chosen, !pairs -> !sums
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!pairs = tensor<?x2xi32, #arrived>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @reduce_subtrees_c4_choices(%l: index, %d: !slots, %p: !permutation, %s: tensor<?x6xi32, #arrived>, %q: !pairs) {
  // expected-error @below {{'moe.reduce_subtrees' op [C4] expects choices of shape [8], got [6]}}
  %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 61 experts 384 slots 384 : !slots, !permutation, tensor<?x6xi32, #arrived>, !pairs -> !sums
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!chosen = tensor<?x8xi32, #arrived>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @reduce_subtrees_c4_sums(%l: index, %d: !slots, %p: !permutation, %s: !chosen, %q: tensor<?x3xi32, #arrived>) {
  // expected-error @below {{'moe.reduce_subtrees' op [C4] expects sums of shape [2], got [3]}}
  %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 61 experts 384 slots 384 : !slots, !permutation, !chosen, tensor<?x3xi32, #arrived> -> !sums
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!e = tensor<?x8xi32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
func.func @combine_c1_input(%u: !slots, %r: !routes, %e: !e) {
  // expected-error @below {{'moe.combine' op [C1] expects the input in row space subtree, got slot}}
  %y = moe.combine %u, %r, %e experts 384 : !slots, !routes, !e -> !x
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!e = tensor<?x8xi32, #tok>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
func.func @combine_c1_routes(%u: !sums, %r: tensor<?x3x8xi32, #nn.rows<output>>, %e: !e) {
  // expected-error @below {{'moe.combine' op [C1] expects routes in row space token, got output}}
  %y = moe.combine %u, %r, %e experts 384 : !sums, tensor<?x3x8xi32, #nn.rows<output>>, !e -> !x
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
!x = tensor<?x64xf32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!chosen = tensor<?x8xi32, #arrived>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
func.func @combine_c1_choices(%u: !sums, %r: !routes, %e: !chosen) {
  // expected-error @below {{'moe.combine' op [C1] expects choices in row space token, got recv}}
  %y = moe.combine %u, %r, %e experts 384 : !sums, !routes, !chosen -> !x
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
!e = tensor<?x8xi32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!arrived = tensor<?x64xf32, #arrived>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
func.func @combine_c1_result(%u: !sums, %r: !routes, %e: !e) {
  // expected-error @below {{'moe.combine' op [C1] expects the result in row space token, got recv}}
  %y = moe.combine %u, %r, %e experts 384 : !sums, !routes, !e -> !arrived
  return
}

// -----

#tok = #nn.rows<token>
!e = tensor<?x8xi32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
func.func @combine_c2(%u: !sums, %r: !routes, %e: !e) {
  // expected-error @below {{'moe.combine' op [C2] expects result columns of shape [64], got [48]}}
  %y = moe.combine %u, %r, %e experts 384 : !sums, !routes, !e -> tensor<?x48xf32, #tok>
  return
}

// -----

#tok = #nn.rows<token>
!e = tensor<?x8xi32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
func.func @combine_c2_element(%u: !sums, %r: !routes, %e: !e) {
  // expected-error @below {{'moe.combine' op [C2] expects the result of type 'f32', got 'bf16'}}
  %y = moe.combine %u, %r, %e experts 384 : !sums, !routes, !e -> tensor<?x64xbf16, #tok>
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!e = tensor<?x8xi32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
func.func @combine_c3(%u: !sums, %r: !routes, %e: !e) {
  // expected-error @below {{'moe.combine' op [C3] expects the 4 leaves of 380 experts, got 8}}
  %y = moe.combine %u, %r, %e experts 380 order tree<8> : !sums, !routes, !e -> !x
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!w = tensor<?x8xf32, #tok>
!routes = tensor<?x3x8xi32, #tok>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
func.func @combine_c4_choices(%u: !sums, %r: !routes, %e: !w) {
  // expected-error @below {{'moe.combine' op [C4] expects choices of type 'i32', got 'f32'}}
  %y = moe.combine %u, %r, %e experts 384 : !sums, !routes, !w -> !x
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!e = tensor<?x8xi32, #tok>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
func.func @combine_c4_routes(%u: !sums, %r: tensor<?x3x6xi32, #tok>, %e: !e) {
  // expected-error @below {{'moe.combine' op [C4] expects routes of shape [3, 8], got [3, 6]}}
  %y = moe.combine %u, %r, %e experts 384 : !sums, tensor<?x3x6xi32, #tok>, !e -> !x
  return
}

// -----

#tok = #nn.rows<token>
!e = tensor<?x8xi32, #tok>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @permutation_c3_site(%e: !e) {
  // expected-error @below {{'moe.permutation' op [C3] expects the experts in row space #nn.rows<recv, site = 0, max = 512>, got #nn.rows<token>}}
  %p = moe.permutation %e : !e -> !permutation
  return
}

// -----

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @permute_c1_site(%x: !x, %p: !permutation) {
  // expected-error @below {{'moe.permute' op [C1] expects the input in row space #nn.rows<recv, site = 0, max = 512>, got #nn.rows<token>}}
  %s = moe.permute %x, %p : !x, !permutation -> !slots
  return
}

// -----

#tok = #nn.rows<token>
!w = tensor<?x8xf32, #tok>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
func.func @grouped_linear_c3_site(%s: !slots, %p: !permutation, %m: tensor<48x64x64xf32>, %w: !w) {
  // expected-error @below {{'moe.grouped_linear' op [C3] expects router weights in row space #nn.rows<recv, site = 0, max = 512>, got #nn.rows<token>}}
  %g = moe.grouped_linear %s, %p, %m : tensor<48x64x64xf32> weighted %w : !w : !slots, !permutation -> !slots
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!chosen = tensor<?x8xi32, #arrived>
!counts = !dist.counts<members = 8>
func.func @return_plan_c4_world(%l: index, %s: !chosen, %c: !counts) {
  // expected-error @below {{'moe.return_plan' op [C4] expects a part, a rank or a node with some of 384 slots, got world with 384}}
  %q, %b = moe.return_plan %s, %c layer %l among 1 to 61 experts 384 slots 384 by world held 384 : !chosen, !counts -> tensor<?x2xi32, #arrived>, !counts
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!chosen = tensor<?x8xi32, #arrived>
!counts = !dist.counts<members = 8>
func.func @return_plan_c4_held(%l: index, %s: !chosen, %c: !counts) {
  // expected-error @below {{'moe.return_plan' op [C4] expects a part, a rank or a node with some of 384 slots, got rank with 385}}
  %q, %b = moe.return_plan %s, %c layer %l among 1 to 61 experts 384 slots 384 by rank held 385 : !chosen, !counts -> tensor<?x2xi32, #arrived>, !counts
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = tensor<?x64xf32, #arrived>
func.func @merge_subtrees_c1_input(%l: index, %b: !other, %r: !routes, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.merge_subtrees' op [C1] expects the input in row space subtree, got recv}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128> : !other, !routes, !chosen, !pairs -> !merged
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = tensor<?x8xi32, #nn.rows<token>>
func.func @merge_subtrees_c1_choices(%l: index, %b: !sums, %r: !routes, %s: !other, %q: !pairs) {
  // expected-error @below {{'moe.merge_subtrees' op [C1] expects choices in row space recv, got token}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128> : !sums, !routes, !other, !pairs -> !merged
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = tensor<?x3x8xi32, #nn.rows<token>>
func.func @merge_subtrees_c1_routes(%l: index, %b: !sums, %r: !other, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.merge_subtrees' op [C1] expects routes in row space #nn.rows<recv, site = 0, max = 512>, got #nn.rows<token>}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128> : !sums, !other, !chosen, !pairs -> !merged
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = tensor<?x2xi32, #nn.rows<token>>
func.func @merge_subtrees_c1_sums(%l: index, %b: !sums, %r: !routes, %s: !chosen, %q: !other) {
  // expected-error @below {{'moe.merge_subtrees' op [C1] expects sums in row space #nn.rows<recv, site = 0, max = 512>, got #nn.rows<token>}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128> : !sums, !routes, !chosen, !other -> !merged
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = tensor<?x64xf32, #arrived>
func.func @merge_subtrees_c1_result(%l: index, %b: !sums, %r: !routes, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.merge_subtrees' op [C1] expects the result in row space subtree, got recv}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128> : !sums, !routes, !chosen, !pairs -> !other
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = tensor<?x64xbf16, #nn.rows<subtree, site = 3, max = 4096>>
func.func @merge_subtrees_c2_element(%l: index, %b: !sums, %r: !routes, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.merge_subtrees' op [C2] expects the result of type 'f32', got 'bf16'}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128> : !sums, !routes, !chosen, !pairs -> !other
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = tensor<?x48xf32, #nn.rows<subtree, site = 3, max = 4096>>
func.func @merge_subtrees_c2_columns(%l: index, %b: !sums, %r: !routes, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.merge_subtrees' op [C2] expects result columns of shape [64], got [48]}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128> : !sums, !routes, !chosen, !pairs -> !other
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = i32
func.func @merge_subtrees_c3(%l: index, %b: !sums, %r: !routes, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.merge_subtrees' op [C3] expects the 4 leaves of 380 experts, got 128}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 380 slots 384 held 96 order tree<128> : !sums, !routes, !chosen, !pairs -> !merged
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = tensor<?x8xf32, #arrived>
func.func @merge_subtrees_c4_choices(%l: index, %b: !sums, %r: !routes, %s: !other, %q: !pairs) {
  // expected-error @below {{'moe.merge_subtrees' op [C4] expects choices of type 'i32', got 'f32'}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128> : !sums, !routes, !other, !pairs -> !merged
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = tensor<?x2x8xi32, #arrived>
func.func @merge_subtrees_c4_routes(%l: index, %b: !sums, %r: !other, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.merge_subtrees' op [C4] expects routes of shape [3, 8], got [2, 8]}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128> : !sums, !other, !chosen, !pairs -> !merged
  return
}

// -----

#arrived = #nn.rows<recv, site = 0, max = 512>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
!merged = tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
!chosen = tensor<?x8xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!other = tensor<?x3xi32, #arrived>
func.func @merge_subtrees_c4_sums(%l: index, %b: !sums, %r: !routes, %s: !chosen, %q: !other) {
  // expected-error @below {{'moe.merge_subtrees' op [C4] expects sums of shape [2], got [3]}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128> : !sums, !routes, !chosen, !other -> !merged
  return
}
