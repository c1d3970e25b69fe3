// RUN: k2c-opt %s | k2c-opt | FileCheck %s
// RUN: k2c-opt %s --mlir-print-op-generic | k2c-opt | FileCheck %s

// A layer of 384 experts on 8 ranks, 64 tokens a step and rank: 48 experts on each, 512 rows that may arrive.
#tok = #nn.rows<token>
#arrived = #nn.rows<recv, site = 0, max = 512>
!x = tensor<?x64xf32, #tok>
!e = tensor<?x8xi32, #tok>
!w = tensor<?x8xf32, #tok>
!arrived = tensor<?x64xf32, #arrived>
!chosen = tensor<?x8xi32, #arrived>
!weights = tensor<?x8xf32, #arrived>
!slots = tensor<?x64xf32, #nn.rows<slot, 8, site = 0, max = 512>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
!counts = !dist.counts<members = 8>
!permutation = !moe.permutation<experts = 48, top = 8, site = 0, max = 512>

nn.weights @down "layers.{layer}.mlp.experts.{expert}.down_proj.weight" over (layer = 1 to 61, expert = 0 to 384) held 48 : tensor<384x64x64xbf16>

// A token's row goes to the ranks of its experts.
// CHECK-LABEL: func.func @send
func.func @send(%l: index, %n: !x, %e: !e, %w: !w) -> tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>> {
  // CHECK: %[[PLACES:slots]] = moe.locate %{{.*}} layer %{{.*}} among 1 to 61 experts 384 slots 384 held 96 : tensor<?x8xi32, #tok> -> tensor<?x8xi32, #tok>
  %s = moe.locate %e layer %l among 1 to 61 experts 384 slots 384 held 96 : !e -> !e
  // CHECK: %[[ROUTES:routes]], %[[SENT:sent]], %[[RETURNED:returned]] = moe.route_plan %[[PLACES]] layer %{{.*}} among 1 to 61 experts 384 slots 384 within world to rank held 48 : tensor<?x8xi32, #tok> -> tensor<?x3x8xi32, #tok>, !dist.counts<members = 8>, !dist.counts<members = 8>
  %routes, %sent, %returned = moe.route_plan %s layer %l among 1 to 61 experts 384 slots 384 within world to rank held 48
      : !e -> tensor<?x3x8xi32, #tok>, !counts, !counts
  // CHECK: moe.pack %{{.*}}, %{{.*}}, %[[ROUTES]] : tensor<?x64xf32, #tok>, tensor<?x8xf32, #tok>, tensor<?x3x8xi32, #tok> -> tensor<?x320xi8, #message>
  %m = moe.pack %n, %w, %routes : !x, !w, tensor<?x3x8xi32, #tok>
      -> tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
  return %m : tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
}

// The ranks compute with the experts that they hold, and add what they can.
// CHECK-LABEL: func.func @compute
func.func @compute(%l: index, %m: tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>, %came: !counts) -> !sums {
  // CHECK: %[[ROWS:rows]], %[[SLOTS:slots]], %[[WEIGHTS:weights]] = moe.unpack %{{.*}}, %{{.*}} : tensor<?x320xi8, #message>, !dist.counts<members = 8> -> tensor<?x64xf32, #recv>, tensor<?x8xi32, #recv>, tensor<?x8xf32, #recv>
  %x, %s, %w = moe.unpack %m, %came : tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>, !counts
      -> !arrived, !chosen, !weights
  // CHECK: moe.permutation %[[SLOTS]] : tensor<?x8xi32, #recv> -> !permutation
  %p = moe.permutation %s : !chosen -> !permutation
  // CHECK: moe.permute %[[ROWS]], %{{.*}} : tensor<?x64xf32, #recv>, !permutation -> tensor<?x64xf32, #slot>
  %in = moe.permute %x, %p : !arrived, !permutation -> !slots
  // CHECK: weighted %[[WEIGHTS]] : tensor<?x8xf32, #recv>
  %d = moe.grouped_linear %in, %p, @down[%l] weighted %w : !weights : !slots, !permutation -> !slots
  // CHECK: %[[SUMS:sums]], %[[BACK:back]] = moe.return_plan %[[SLOTS]], %{{.*}} layer %{{.*}} among 1 to 61 experts 384 slots 384 by rank held 48 : tensor<?x8xi32, #recv>, !dist.counts<members = 8> -> tensor<?x2xi32, #recv>, !dist.counts<members = 8>
  %sums, %back = moe.return_plan %s, %came layer %l among 1 to 61 experts 384 slots 384 by rank held 48
      : !chosen, !counts -> tensor<?x2xi32, #arrived>, !counts
  // CHECK: moe.reduce_subtrees %{{.*}}, %{{.*}}, %[[SLOTS]], %[[SUMS]] layer %{{.*}} among 1 to 61 experts 384 slots 384 order tree<128> : tensor<?x64xf32, #slot>, !permutation, tensor<?x8xi32, #recv>, tensor<?x2xi32, #recv> -> tensor<?x64xf32, #subtree>
  %u = moe.reduce_subtrees %d, %p, %s, %sums layer %l among 1 to 61 experts 384 slots 384 order tree<128>
      : !slots, !permutation, !chosen, tensor<?x2xi32, #arrived> -> !sums
  return %u : !sums
}

// In two hops, a rank of the node adds what came back from the others, and sends it on.
// CHECK-LABEL: func.func @onward
func.func @onward(%l: index, %s: !chosen, %came: !counts, %b: !sums)
    -> tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>> {
  // CHECK: %[[ROUTES:routes]], %{{.*}}, %{{.*}} = moe.route_plan %{{.*}} layer %{{.*}} among 1 to 61 experts 384 slots 384 within node to rank held 48 : tensor<?x8xi32, #recv> -> tensor<?x3x8xi32, #recv>, !dist.counts<members = 2>, !dist.counts<members = 2>
  %routes, %sent, %returned = moe.route_plan %s layer %l among 1 to 61 experts 384 slots 384 within node to rank held 48
      : !chosen -> tensor<?x3x8xi32, #arrived>, !dist.counts<members = 2>, !dist.counts<members = 2>
  // CHECK: %[[SUMS:sums]], %{{.*}} = moe.return_plan %{{.*}}, %{{.*}} layer %{{.*}} among 1 to 61 experts 384 slots 384 by node held 96 :
  %sums, %back = moe.return_plan %s, %came layer %l among 1 to 61 experts 384 slots 384 by node held 96
      : !chosen, !counts -> tensor<?x2xi32, #arrived>, !counts
  // CHECK: moe.merge_subtrees %{{.*}}, %[[ROUTES]], %{{.*}}, %[[SUMS]] layer %{{.*}} among 1 to 61 experts 384 slots 384 held 96 order tree<128> : tensor<?x64xf32, #subtree>, tensor<?x3x8xi32, #recv>, tensor<?x8xi32, #recv>, tensor<?x2xi32, #recv> -> tensor<?x64xf32, #subtree1>
  %u = moe.merge_subtrees %b, %routes, %s, %sums layer %l among 1 to 61 experts 384 slots 384 held 96 order tree<128>
      : !sums, tensor<?x3x8xi32, #arrived>, !chosen, tensor<?x2xi32, #arrived> -> tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
  return %u : tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
}

// What is left of the tree is added where the token is.
// CHECK-LABEL: func.func @receive
func.func @receive(%u: !sums, %routes: tensor<?x3x8xi32, #tok>, %e: !e) -> !x {
  // CHECK: moe.combine %{{.*}}, %{{.*}}, %{{.*}} experts 384 order tree<128> : tensor<?x64xf32, #subtree>, tensor<?x3x8xi32, #tok>, tensor<?x8xi32, #tok> -> tensor<?x64xf32, #tok>
  %r = moe.combine %u, %routes, %e experts 384 order tree<128> : !sums, tensor<?x3x8xi32, #tok>, !e -> !x
  return %r : !x
}

// Ranks that have parts of the same experts get each row that arrived at one of them, and what they make of its choices
// comes back there.
// CHECK-LABEL: func.func @to_parts
func.func @to_parts(%l: index, %s: !chosen, %w: !weights, %sums: tensor<?x2xi32, #arrived>, %d: !slots, %p: !permutation,
                    %b: tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 8192>>)
    -> (!sums, tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>) {
  // CHECK: %[[ROUTES:routes]], %{{.*}}, %[[RETURNED:returned]] = moe.route_plan %{{.*}} layer %{{.*}} among 1 to 61 experts 384 slots 384 within rank to part held 48 : tensor<?x8xi32, #recv> -> tensor<?x3x8xi32, #recv>, !dist.counts<members = 2>, !dist.counts<members = 2>
  %routes, %sent, %returned = moe.route_plan %s layer %l among 1 to 61 experts 384 slots 384 within rank to part held 48
      : !chosen -> tensor<?x3x8xi32, #arrived>, !dist.counts<members = 2>, !dist.counts<members = 2>
  // CHECK: moe.reduce_subtrees %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} layer %{{.*}} among 1 to 61 experts 384 slots 384 by part order tree<128> :
  %v = moe.reduce_subtrees %d, %p, %s, %sums layer %l among 1 to 61 experts 384 slots 384 by part order tree<128>
      : !slots, !permutation, !chosen, tensor<?x2xi32, #arrived> -> !sums
  // CHECK: %[[ADDED:added]] = moe.add_parts %{{.*}}, %[[RETURNED]], %[[ROUTES]] weighted %{{.*}} order tree<4> : tensor<?x64xf32, #subtree{{[0-9]*}}>, !dist.counts<members = 2>, tensor<?x3x8xi32, #recv>, tensor<?x8xf32, #recv> -> tensor<?x64xf32, #subtree{{[0-9]*}}>
  %y = moe.add_parts %b, %returned, %routes weighted %w order tree<4>
      : tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 8192>>, !dist.counts<members = 2>,
        tensor<?x3x8xi32, #arrived>, !weights -> tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>
  // CHECK: moe.merge_subtrees %[[ADDED]], %[[ROUTES]], %{{.*}}, %{{.*}} layer %{{.*}} among 1 to 61 experts 384 slots 384 by rank held 48 order tree<128> :
  %u = moe.merge_subtrees %y, %routes, %s, %sums layer %l among 1 to 61 experts 384 slots 384 by rank held 48 order tree<128>
      : tensor<?x64xf32, #nn.rows<subtree, site = 2, max = 4096>>, tensor<?x3x8xi32, #arrived>, !chosen,
        tensor<?x2xi32, #arrived> -> tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
  return %v, %u : !sums, tensor<?x64xf32, #nn.rows<subtree, site = 3, max = 4096>>
}
