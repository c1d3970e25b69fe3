// RUN: k2c-opt %s --split-input-file --verify-diagnostics

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @route_plan_c4_parts_of_a_node(%l: index, %s: !chosen) {
  // expected-error @below {{'moe.route_plan' op [C4] expects members of 384 slots within node, got 2 of 96 to part}}
  %routes, %sent, %returned = moe.route_plan %s layer %l among 1 to 61 experts 384 slots 384 within node to part held 96 : !chosen -> !routes, !counts, !counts
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @route_plan_c4_slots_of_a_part(%l: index, %s: !chosen) {
  // expected-error @below {{'moe.route_plan' op [C4] expects members of 384 slots within rank, got 2 of 385 to part}}
  %routes, %sent, %returned = moe.route_plan %s layer %l among 1 to 61 experts 384 slots 384 within rank to part held 385 : !chosen -> !routes, !counts, !counts
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @reduce_subtrees_c5(%l: index, %d: !slots, %p: !permutation, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.reduce_subtrees' op [C5] expects a rank or a part, got node}}
  %u = moe.reduce_subtrees %d, %p, %s, %q layer %l among 1 to 61 experts 384 slots 384 by node : !slots, !permutation, !chosen, !pairs -> !out
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @merge_subtrees_c5(%l: index, %b: !out, %r: !routes, %s: !chosen, %q: !pairs) {
  // expected-error @below {{'moe.merge_subtrees' op [C5] expects a node or a rank, got part}}
  %u = moe.merge_subtrees %b, %r, %s, %q layer %l among 1 to 61 experts 384 slots 384 by part held 48 : !out, !routes, !chosen, !pairs -> !back
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @add_parts_c1_routes(%b: !back, %c: !counts, %r: tensor<?x3x8xi32, #tok>, %w: !weights) {
  // expected-error @below {{'moe.add_parts' op [C1] expects routes in row space recv, got token}}
  %y = moe.add_parts %b, %c, %r weighted %w order tree<4> : !back, !counts, tensor<?x3x8xi32, #tok>, !weights -> !out
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @add_parts_c1_weights(%b: !back, %c: !counts, %r: !routes, %w: tensor<?x8xf32, #tok>) {
  // expected-error @below {{'moe.add_parts' op [C1] expects router weights in row space #nn.rows<recv, site = 0, max = 512>, got #nn.rows<token>}}
  %y = moe.add_parts %b, %c, %r weighted %w order tree<4> : !back, !counts, !routes, tensor<?x8xf32, #tok> -> !out
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @add_parts_c1_input(%b: tensor<?x64xf32, #arrived>, %c: !counts, %r: !routes, %w: !weights) {
  // expected-error @below {{'moe.add_parts' op [C1] expects the input in row space subtree, got recv}}
  %y = moe.add_parts %b, %c, %r weighted %w order tree<4> : tensor<?x64xf32, #arrived>, !counts, !routes, !weights -> !out
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @add_parts_c1_result(%b: !back, %c: !counts, %r: !routes, %w: !weights) {
  // expected-error @below {{'moe.add_parts' op [C1] expects outputs of what came back at site 2, got #nn.rows<subtree, site = 3, max = 4096>}}
  %y = moe.add_parts %b, %c, %r weighted %w order tree<4> : !back, !counts, !routes, !weights -> tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @add_parts_c2_element(%b: tensor<?x64xbf16, #back>, %c: !counts, %r: !routes, %w: !weights) {
  // expected-error @below {{'moe.add_parts' op [C2] expects the input of type 'f32', got 'bf16'}}
  %y = moe.add_parts %b, %c, %r weighted %w order tree<4> : tensor<?x64xbf16, #back>, !counts, !routes, !weights -> !out
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @add_parts_c2_columns(%b: !back, %c: !counts, %r: !routes, %w: !weights) {
  // expected-error @below {{'moe.add_parts' op [C2] expects result columns of shape [64], got [48]}}
  %y = moe.add_parts %b, %c, %r weighted %w order tree<4> : !back, !counts, !routes, !weights -> tensor<?x48xf32, #out>
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @add_parts_c3(%b: !back, %c: !dist.counts<members = 3>, %r: !routes, %w: !weights) {
  // expected-error @below {{'moe.add_parts' op [C3] expects members that are a power of two, two or more, got 3}}
  %y = moe.add_parts %b, %c, %r weighted %w order tree<4> : !back, !dist.counts<members = 3>, !routes, !weights -> !out
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @add_parts_c4_routes(%b: !back, %c: !counts, %r: tensor<?x2x8xi32, #arrived>, %w: !weights) {
  // expected-error @below {{'moe.add_parts' op [C4] expects routes of shape [3, 8], got [2, 8]}}
  %y = moe.add_parts %b, %c, %r weighted %w order tree<4> : !back, !counts, tensor<?x2x8xi32, #arrived>, !weights -> !out
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @add_parts_c4_weights(%b: !back, %c: !counts, %r: !routes, %w: tensor<?x8xbf16, #arrived>) {
  // expected-error @below {{'moe.add_parts' op [C4] expects router weights of type 'f32', got 'bf16'}}
  %y = moe.add_parts %b, %c, %r weighted %w order tree<4> : !back, !counts, !routes, tensor<?x8xbf16, #arrived> -> !out
  return
}

// -----

#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
#back = #nn.rows<subtree, site = 2, max = 8192>
#out = #nn.rows<subtree, site = 2, max = 4096>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!pairs = tensor<?x2xi32, #arrived>
!routes = tensor<?x3x8xi32, #arrived>
!back = tensor<?x64xf32, #back>
!out = tensor<?x64xf32, #out>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>
!counts = !dist.counts<members = 2>
func.func @add_parts_c3_order(%b: !back, %c: !counts, %r: !routes, %w: !weights) {
  // expected-error @below {{'moe.add_parts' op [C3] expects an order of leaves that 2 members divide, got 1}}
  %y = moe.add_parts %b, %c, %r weighted %w order tree<1> : !back, !counts, !routes, !weights -> !out
  return
}
