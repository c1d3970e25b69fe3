// RUN: k2c-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'#dist.topology' [C1] expects at least one rank of 'host', got 0}}
module attributes {dist.topology = #dist.topology<"host", ranks = 0>} {}

// -----

// expected-error @below {{'#dist.topology' [C3] expects nodes that divide the 8 ranks of 'host', got 3}}
module attributes {dist.topology = #dist.topology<"host", ranks = 8 on 3 nodes>} {}

// -----

// expected-error @below {{'#dist.topology' [C3] expects nodes that divide the 8 ranks of 'host', got 0}}
module attributes {dist.topology = #dist.topology<"host", ranks = 8 on 0 nodes>} {}

// -----

// expected-error @below {{'#dist.topology' [C2] expects cores on every NUMA node of 'host', got 0}}
module attributes {dist.topology = #dist.topology<"host", ranks = 1, numa = [4, 0]>} {}

// -----

// expected-error @below {{'#dist.plan' [C1] expects expanded_from >= -1, got -2}}
module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = -2>} {}

// -----

// expected-error @below {{'#dist.plan' [C2] expects a tile_choice that is not negative, got -1}}
module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = 0, tile_choice = -1>} {}

// -----

// expected-error @below {{'#dist.plan' [C3] expects names of passes in without, got 7 : i64}}
module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = 0, without = ["fusion", 7]>} {}

// -----

// Attributes of the dialect are these two, on modules.
// expected-error @below {{'dist.x' is no attribute of dist}}
module attributes {dist.x = #dist.topology<"host", ranks = 1>} {}

// -----

// expected-error @below {{'#dist.plan' [C4] expects a route_limit that is not negative, got -1}}
module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = 0, route_limit = -1>} {}

// -----

// expected-error @below {{'#dist.plan' [C5] expects a locality_penalty above 0 and at most 1, got 1.5}}
module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = 0, locality_penalty = 1.5>} {}

// -----

// expected-error @below {{'#dist.plan' [C6] expects halves_from that is not negative, got -1}}
module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2", expanded_from = 0, halves_from = -1>} {}

// -----

// expected-error @below {{'dist.plan' expects #dist.plan on a module, got #dist.topology<"host", ranks = 1> on 'builtin.module'}}
module attributes {dist.plan = #dist.topology<"host", ranks = 1>} {}

// -----

// expected-error @below {{'dist.topology' expects #dist.topology on a module, got #dist.topology<"host", ranks = 1> on 'func.func'}}
func.func @f() attributes {dist.topology = #dist.topology<"host", ranks = 1>} { return }

// -----

// expected-error @below {{'!dist.counts' [C1] expects members, got 0}}
func.func private @f(!dist.counts<members = 0>)

// -----

!rows = tensor<?x320xi8, #nn.rows<message, site = 0, max = 64>>
!counts = !dist.counts<members = 2>
func.func @all_to_all_c1(%x: !rows, %to: !counts) {
  // expected-error @below {{'dist.all_to_all' op [C1] expects a site that is not negative, got -1}}
  %r, %c = dist.all_to_all %x to %to over ep site -1 quota 8 : !rows, !counts -> !rows, !counts
  return
}

// -----

!rows = tensor<?x320xi8, #nn.rows<message, site = 0, max = 64>>
!counts = !dist.counts<members = 2>
func.func @all_to_all_c2_neither(%x: !rows, %to: !counts) {
  // expected-error @below {{'dist.all_to_all' op [C2] expects a positive quota or the counts of what comes, and not both, got a quota of 0 and none}}
  %r = dist.all_to_all %x to %to over ep site 0 : !rows, !counts -> !rows
  return
}

// -----

!rows = tensor<?x320xi8, #nn.rows<message, site = 0, max = 64>>
!counts = !dist.counts<members = 2>
func.func @all_to_all_c2_both(%x: !rows, %to: !counts) {
  // expected-error @below {{'dist.all_to_all' op [C2] expects a positive quota or the counts of what comes, and not both, got a quota of 8 and counts}}
  %r, %c = dist.all_to_all %x to %to from %to over ep site 0 quota 8 : !rows, !counts, !counts -> !rows, !counts
  return
}

// -----

!rows = tensor<?x320xi8, #nn.rows<message, site = 0, max = 64>>
!counts = !dist.counts<members = 2>
func.func @all_to_all_c2_negative(%x: !rows, %to: !counts) {
  // expected-error @below {{'dist.all_to_all' op [C2] expects a positive quota or the counts of what comes, and not both, got a quota of -8 and counts}}
  %r = dist.all_to_all %x to %to from %to over ep site 0 quota -8 : !rows, !counts, !counts -> !rows
  return
}

// -----

!rows = tensor<?x320xi8, #nn.rows<message, site = 0, max = 64>>
!counts = !dist.counts<members = 2>
func.func @all_to_all_c3_none(%x: !rows, %to: !counts) {
  // expected-error @below {{'dist.all_to_all' op [C3] expects counts of what came, got none}}
  %r = dist.all_to_all %x to %to over ep site 0 quota 8 : !rows, !counts -> !rows
  return
}

// -----

!rows = tensor<?x320xi8, #nn.rows<message, site = 0, max = 64>>
!counts = !dist.counts<members = 2>
func.func @all_to_all_c3_some(%x: !rows, %to: !counts) {
  // expected-error @below {{'dist.all_to_all' op [C3] expects no counts of what came, got some}}
  %r, %c = dist.all_to_all %x to %to from %to over ep site 0 : !rows, !counts, !counts -> !rows, !counts
  return
}

// -----

!rows = tensor<?x320xi8, #nn.rows<message, site = 0, max = 64>>
!counts = !dist.counts<members = 2>
func.func @all_to_all_c3_members(%x: !rows, %to: !counts) {
  // expected-error @below {{'dist.all_to_all' op [C3] expects counts of what came of type '!dist.counts<members = 2>', got '!dist.counts<members = 3>'}}
  %r, %c = dist.all_to_all %x to %to over ep site 0 quota 8 : !rows, !counts -> !rows, !dist.counts<members = 3>
  return
}

// -----

!rows = tensor<?x320xi8, #nn.rows<message, site = 0, max = 64>>
!counts = !dist.counts<members = 2>
func.func @all_to_all_c4_element(%x: !rows, %to: !counts) {
  // expected-error @below {{'dist.all_to_all' op [C4] expects the result of type 'i8', got 'f32'}}
  %r = dist.all_to_all %x to %to from %to over ep site 0 : !rows, !counts, !counts -> tensor<?x320xf32, #nn.rows<message, site = 0, max = 64>>
  return
}

// -----

!rows = tensor<?x320xi8, #nn.rows<message, site = 0, max = 64>>
!counts = !dist.counts<members = 2>
func.func @all_to_all_c4_columns(%x: !rows, %to: !counts) {
  // expected-error @below {{'dist.all_to_all' op [C4] expects result columns of shape [320], got [160]}}
  %r = dist.all_to_all %x to %to from %to over ep site 0 : !rows, !counts, !counts -> tensor<?x160xi8, #nn.rows<message, site = 0, max = 64>>
  return
}

// -----

!rows = tensor<?x320xi8, #nn.rows<message, site = 0, max = 64>>
!counts = !dist.counts<members = 2>
func.func @all_to_all_c5(%x: !rows, %to: !counts, %from: !dist.counts<members = 3>) {
  // expected-error @below {{'dist.all_to_all' op [C5] expects counts of the same members, got '!dist.counts<members = 2>' and '!dist.counts<members = 3>'}}
  %r = dist.all_to_all %x to %to from %from over ep site 0 : !rows, !counts, !dist.counts<members = 3> -> !rows
  return
}

// -----

// expected-error @below {{'#dist.plan' [C7] expects two stages or more, the first from layer 0 and none empty, got array<i64: 0, 61>}}
module attributes {dist.plan = #dist.plan<layout = "pp=2", expanded_from = 0, stages = [0, 61]>} {}

// -----

// expected-error @below {{'#dist.plan' [C7] expects two stages or more, the first from layer 0 and none empty, got array<i64: 0, 31, 31, 61>}}
module attributes {dist.plan = #dist.plan<layout = "pp=3", expanded_from = 0, stages = [0, 31, 31, 61]>} {}

// -----

func.func @receive_c1(%e: tensor<?x64xf32, #nn.rows<entering>>) {
  // expected-error @below {{'dist.receive' op [C1] expects a site that is not negative, got -1}}
  %x = dist.receive %e site -1 : tensor<?x64xf32, #nn.rows<entering>> -> tensor<?x64xf32, #nn.rows<token>>
  return
}

// -----

func.func @receive_c2(%e: tensor<?x64xf32, #nn.rows<entering>>) {
  // expected-error @below {{'dist.receive' op [C2] expects result columns of shape [64], got [32]}}
  %x = dist.receive %e site 0 : tensor<?x64xf32, #nn.rows<entering>> -> tensor<?x32xf32, #nn.rows<token>>
  return
}

// -----

func.func @receive_c2_rows(%e: tensor<?x64xf32, #nn.rows<token>>) {
  // expected-error @below {{'dist.receive' op [C2] expects the input in row space entering, got token}}
  %x = dist.receive %e site 0 : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
  return
}

// -----

func.func @send_c1(%x: tensor<?x64xf32, #nn.rows<token>>) {
  // expected-error @below {{'dist.send' op [C1] expects sites that are not negative, got -2}}
  dist.send %x site 0 to -2 : tensor<?x64xf32, #nn.rows<token>>
  return
}

// -----

func.func @send_c2(%e: tensor<?x64xf32, #nn.rows<entering>>) {
  // expected-error @below {{'dist.send' op [C2] expects the input in row space token, got entering}}
  dist.send %e site 0 to 1 : tensor<?x64xf32, #nn.rows<entering>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
func.func @gather_slices_c1(%x: !x) {
  // expected-error @below {{'dist.gather_slices' op [C1] expects a site that is not negative, got -1}}
  %y = dist.gather_slices %x site -1 : !x -> !all
  return
}

// -----

!all = tensor<?x64xf32, #nn.rows<gathered>>
func.func @gather_slices_c2_input(%x: !all) {
  // expected-error @below {{'dist.gather_slices' op [C2] expects the input in row space token, got gathered}}
  %y = dist.gather_slices %x site 0 : !all -> !all
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @gather_slices_c2_result(%x: !x) {
  // expected-error @below {{'dist.gather_slices' op [C2] expects a result in row space gathered, got token}}
  %y = dist.gather_slices %x site 0 : !x -> !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @gather_slices_c2_element(%x: !x) {
  // expected-error @below {{'dist.gather_slices' op [C2] expects a result of type 'f32', got 'bf16'}}
  %y = dist.gather_slices %x site 0 : !x -> tensor<?x64xbf16, #nn.rows<gathered>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @gather_slices_c2_columns(%x: !x) {
  // expected-error @below {{'dist.gather_slices' op [C2] expects result columns of shape [64], got [32]}}
  %y = dist.gather_slices %x site 0 : !x -> tensor<?x32xf32, #nn.rows<gathered>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
func.func @scatter_slices_c1(%p: !all) {
  // expected-error @below {{'dist.scatter_slices' op [C1] expects a site that is not negative, got -1}}
  %p0, %p1 = dist.scatter_slices %p site -1 : !all -> !x, !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @scatter_slices_c2_input(%p: !x) {
  // expected-error @below {{'dist.scatter_slices' op [C2] expects the input in row space gathered, got token}}
  %p0, %p1 = dist.scatter_slices %p site 0 : !x -> !x, !x
  return
}

// -----

// Each result is looked at, not the first alone.
!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
func.func @scatter_slices_c2_result(%p: !all) {
  // expected-error @below {{'dist.scatter_slices' op [C2] expects a result in row space token, got gathered}}
  %p0, %p1 = dist.scatter_slices %p site 0 : !all -> !x, !all
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
func.func @scatter_slices_c2_element(%p: !all) {
  // expected-error @below {{'dist.scatter_slices' op [C2] expects a result of type 'f32', got 'bf16'}}
  %p0, %p1 = dist.scatter_slices %p site 0 : !all -> !x, tensor<?x64xbf16, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
func.func @scatter_slices_c2_columns(%p: !all) {
  // expected-error @below {{'dist.scatter_slices' op [C2] expects result columns of shape [64], got [32]}}
  %p0, %p1 = dist.scatter_slices %p site 0 : !all -> tensor<?x32xf32, #nn.rows<token>>, !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
func.func @scatter_slices_c3(%p: !all) {
  // expected-error @below {{'dist.scatter_slices' op [C3] expects two results or more, got 1}}
  %p0 = dist.scatter_slices %p site 0 : !all -> !x
  return
}
