// RUN: k2c-opt %s --split-input-file | k2c-opt --split-input-file | FileCheck %s

// CHECK: dist.plan = #dist.plan<layout = "dp=1", expanded_from = 64>
// CHECK-SAME: dist.topology = #dist.topology<"host", ranks = 1>
module attributes {
  dist.topology = #dist.topology<"host", ranks = 1>,
  dist.plan = #dist.plan<layout = "dp=1", expanded_from = 64, tile_choice = 0>
} {}

// -----

// CHECK: dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1, without = ["fusion", "prefetch-weights"], tile_choice = 2>
// CHECK-SAME: dist.topology = #dist.topology<"two-nodes", ranks = 1, numa = [4, 4]>
module attributes {
  dist.topology = #dist.topology<"two-nodes", ranks = 1, numa = [4, 4]>,
  dist.plan = #dist.plan<layout = "dp=1", expanded_from = -1, without = ["fusion", "prefetch-weights"], tile_choice = 2>
} {}

// -----

// CHECK: dist.plan = #dist.plan<layout = "ep=8,dp=8", expanded_from = -1, route_limit = 2, locality_penalty = 0.25, halves_from = 64>
module attributes {
  dist.plan = #dist.plan<layout = "ep=8,dp=8", expanded_from = -1, route_limit = 2, locality_penalty = 0.25, halves_from = 64>
} {}

// -----

// CHECK: dist.topology = #dist.topology<"cpu4x2", ranks = 8 on 4 nodes>
module attributes {dist.topology = #dist.topology<"cpu4x2", ranks = 8 on 4 nodes>} {}

// -----

// Rows that are counted when they come, then what goes back, of which the program knows the counts.
!message = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
!arrived = tensor<?x320xi8, #nn.rows<message, site = 0, max = 512>>
!sums = tensor<?x64xf32, #nn.rows<subtree, site = 1, max = 4096>>
!counts = !dist.counts<members = 8>
// CHECK-LABEL: func.func @exchange
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<?x320xi8, #message>, %[[S:[a-z0-9]+]]: tensor<?x64xf32, #subtree>
// CHECK-SAME: !dist.counts<members = 8>
func.func @exchange(%rows: !message, %sums: !sums, %sent: !counts, %returned: !counts, %back_counts: !counts) {
  // CHECK: %[[ARRIVED:arrived]], %[[CAME:came]] = dist.all_to_all %[[M]] to %{{.*}} over ep site 0 quota 64 : tensor<?x320xi8, #message>, !dist.counts<members = 8> -> tensor<?x320xi8, #message>, !dist.counts<members = 8>
  %in, %came = dist.all_to_all %rows to %sent over ep site 0 quota 64 : !message, !counts -> !arrived, !counts
  // CHECK: dist.all_to_all %[[S]] to %{{.*}} from %{{.*}} over ep site 1 : tensor<?x64xf32, #subtree>, !dist.counts<members = 8>, !dist.counts<members = 8> -> tensor<?x64xf32, #subtree>
  %back = dist.all_to_all %sums to %back_counts from %returned over ep site 1 : !sums, !counts, !counts -> !sums
  // CHECK: over ep site 1 at [4096] : tensor
  %placed = dist.all_to_all %sums to %back_counts from %returned over ep site 1 at [4096] : !sums, !counts, !counts -> !sums
  return
}

// -----

// CHECK: dist.plan = #dist.plan<layout = "ep=4,dp=4,pp=2", expanded_from = -1, stages = [0, 31, 61]>
module attributes {
  dist.plan = #dist.plan<layout = "ep=4,dp=4,pp=2", expanded_from = -1, stages = [0, 31, 61]>
} {}

// -----

// Rows that the stage before sends lie where those lie that enter here.
// CHECK-LABEL: func.func @stage
func.func @stage(%entering: tensor<?x64xf32, #nn.rows<entering>>) {
  // CHECK: %[[X:received]] = dist.receive %{{.*}} site 4 : tensor<?x64xf32, #entering> -> tensor<?x64xf32, #tok>
  %x = dist.receive %entering site 4 : tensor<?x64xf32, #nn.rows<entering>> -> tensor<?x64xf32, #nn.rows<token>>
  // CHECK: dist.send %[[X]] site 5 to 4 : tensor<?x64xf32, #tok>
  dist.send %x site 5 to 4 : tensor<?x64xf32, #nn.rows<token>>
  return
}

// -----

// Ranks of a tensor-parallel group bring their slices of a step together, and give each what is of its own.
#tok = #nn.rows<token>
// CHECK-LABEL: func.func @slices
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32, #tok>, %[[P:[a-z0-9]+]]: tensor<?x64xf32, #gathered>
func.func @slices(%x: tensor<?x64xf32, #tok>, %p: tensor<?x64xf32, #nn.rows<gathered>>) {
  // CHECK: %{{gathered}} = dist.gather_slices %[[X]] site 2 : tensor<?x64xf32, #tok> -> tensor<?x64xf32, #gathered>
  %all = dist.gather_slices %x site 2 : tensor<?x64xf32, #tok> -> tensor<?x64xf32, #nn.rows<gathered>>
  // CHECK: %{{part}}, %{{part_[0-9]+}} = dist.scatter_slices %[[P]] site 3 : tensor<?x64xf32, #gathered> -> tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok>
  %p0, %p1 = dist.scatter_slices %p site 3 : tensor<?x64xf32, #nn.rows<gathered>>
      -> tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok>
  // CHECK: dist.gather_slices %{{.*}} site 4 at [4096] : tensor
  %placed = dist.gather_slices %x site 4 at [4096] : tensor<?x64xf32, #tok> -> tensor<?x64xf32, #nn.rows<gathered>>
  // CHECK: dist.scatter_slices %{{.*}} site 5 at [0, 8192] : tensor
  %q0, %q1 = dist.scatter_slices %p site 5 at [0, 8192] : tensor<?x64xf32, #nn.rows<gathered>>
      -> tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok>
  return
}

// -----

// Rows that all ranks of a stage work on, and what each makes of them.
#output = #nn.rows<output>
#message = #nn.rows<message, site = 0, max = 32>
#recv = #nn.rows<recv, site = 0, max = 32>
#back = #nn.rows<subtree, site = 1, max = 32>
!counts = !dist.counts<members = 2>
// CHECK-LABEL: func.func @shared
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32, #output>
func.func @shared(%x: tensor<?x64xf32, #output>, %in: tensor<?x64xf32, #message>, %parts: tensor<?x32xf32, #back>,
                  %came: !counts) {
  // CHECK: %[[SENT:sent]], %[[RETURNED:returned]] = dist.share_plan %[[X]] : tensor<?x64xf32, #output> -> !dist.counts<members = 2>, !dist.counts<members = 2>
  %sent, %returned = dist.share_plan %x : tensor<?x64xf32, #output> -> !counts, !counts
  // CHECK: %[[ALL:all]] = dist.close_gaps %{{.*}}, %{{.*}} : tensor<?x64xf32, #message>, !dist.counts<members = 2> -> tensor<?x64xf32, #recv>
  %all = dist.close_gaps %in, %came : tensor<?x64xf32, #message>, !counts -> tensor<?x64xf32, #recv>
  // CHECK: %{{back}} = dist.share_return %[[ALL]], %{{.*}} : tensor<?x64xf32, #recv>, !dist.counts<members = 2> -> !dist.counts<members = 2>
  %back = dist.share_return %all, %came : tensor<?x64xf32, #recv>, !counts -> !counts
  // CHECK: %{{joined}} = dist.join_columns %{{.*}}, %[[RETURNED]] : tensor<?x32xf32, #subtree>, !dist.counts<members = 2> -> tensor<?x64xf32, #output>
  %joined = dist.join_columns %parts, %returned : tensor<?x32xf32, #back>, !counts -> tensor<?x64xf32, #output>
  return
}
