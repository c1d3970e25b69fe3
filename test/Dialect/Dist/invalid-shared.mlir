// RUN: k2c-opt %s --split-input-file --verify-diagnostics

!counts = !dist.counts<members = 2>
func.func @share_plan_c1(%x: tensor<?x64xf32, #nn.rows<gathered>>) {
  // expected-error @below {{'dist.share_plan' op [C1] expects an input of rows of a step, got #nn.rows<gathered>}}
  %s, %r = dist.share_plan %x : tensor<?x64xf32, #nn.rows<gathered>> -> !counts, !counts
  return
}

// -----

!counts = !dist.counts<members = 2>
func.func @share_plan_c2(%x: tensor<?x64xf32, #nn.rows<token>>) {
  // expected-error @below {{'dist.share_plan' op [C2] expects counts of the same members, got '!dist.counts<members = 2>' and '!dist.counts<members = 3>'}}
  %s, %r = dist.share_plan %x : tensor<?x64xf32, #nn.rows<token>> -> !counts, !dist.counts<members = 3>
  return
}

// -----

#recv = #nn.rows<recv, site = 0, max = 32>
!counts = !dist.counts<members = 2>
func.func @close_gaps_c1_input(%x: tensor<?x64xf32, #nn.rows<token>>, %c: !counts) {
  // expected-error @below {{'dist.close_gaps' op [C1] expects the input in row space message, got token}}
  %y = dist.close_gaps %x, %c : tensor<?x64xf32, #nn.rows<token>>, !counts -> tensor<?x64xf32, #recv>
  return
}

// -----

#message = #nn.rows<message, site = 0, max = 32>
!counts = !dist.counts<members = 2>
func.func @close_gaps_c1_site(%x: tensor<?x64xf32, #message>, %c: !counts) {
  // expected-error @below {{'dist.close_gaps' op [C1] expects rows that arrived at site 0, got #nn.rows<recv, site = 1, max = 32>}}
  %y = dist.close_gaps %x, %c : tensor<?x64xf32, #message>, !counts -> tensor<?x64xf32, #nn.rows<recv, site = 1, max = 32>>
  return
}

// -----

#message = #nn.rows<message, site = 0, max = 32>
#recv = #nn.rows<recv, site = 0, max = 32>
!counts = !dist.counts<members = 2>
func.func @close_gaps_c2_element(%x: tensor<?x64xf32, #message>, %c: !counts) {
  // expected-error @below {{'dist.close_gaps' op [C2] expects the result of type 'f32', got 'bf16'}}
  %y = dist.close_gaps %x, %c : tensor<?x64xf32, #message>, !counts -> tensor<?x64xbf16, #recv>
  return
}

// -----

#message = #nn.rows<message, site = 0, max = 32>
#recv = #nn.rows<recv, site = 0, max = 32>
!counts = !dist.counts<members = 2>
func.func @close_gaps_c2_columns(%x: tensor<?x64xf32, #message>, %c: !counts) {
  // expected-error @below {{'dist.close_gaps' op [C2] expects result columns of shape [64], got [32]}}
  %y = dist.close_gaps %x, %c : tensor<?x64xf32, #message>, !counts -> tensor<?x32xf32, #recv>
  return
}

// -----

#message = #nn.rows<message, site = 0, max = 32>
!counts = !dist.counts<members = 2>
func.func @share_return_c1(%x: tensor<?x64xf32, #message>, %c: !counts) {
  // expected-error @below {{'dist.share_return' op [C1] expects the input in row space recv, got message}}
  %y = dist.share_return %x, %c : tensor<?x64xf32, #message>, !counts -> !counts
  return
}

// -----

#recv = #nn.rows<recv, site = 0, max = 32>
!counts = !dist.counts<members = 2>
func.func @share_return_c2(%x: tensor<?x64xf32, #recv>, %c: !counts) {
  // expected-error @below {{'dist.share_return' op [C2] expects counts of the same members, got '!dist.counts<members = 2>' and '!dist.counts<members = 3>'}}
  %y = dist.share_return %x, %c : tensor<?x64xf32, #recv>, !counts -> !dist.counts<members = 3>
  return
}

// -----

#recv = #nn.rows<recv, site = 0, max = 32>
!counts = !dist.counts<members = 2>
func.func @join_columns_c1_input(%x: tensor<?x32xf32, #recv>, %c: !counts) {
  // expected-error @below {{'dist.join_columns' op [C1] expects the input in row space subtree, got recv}}
  %y = dist.join_columns %x, %c : tensor<?x32xf32, #recv>, !counts -> tensor<?x64xf32, #nn.rows<token>>
  return
}

// -----

#recv = #nn.rows<recv, site = 0, max = 32>
#back = #nn.rows<subtree, site = 1, max = 32>
!counts = !dist.counts<members = 2>
func.func @join_columns_c1_result(%x: tensor<?x32xf32, #back>, %c: !counts) {
  // expected-error @below {{'dist.join_columns' op [C1] expects the result of rows of a step, got #nn.rows<recv, site = 0, max = 32>}}
  %y = dist.join_columns %x, %c : tensor<?x32xf32, #back>, !counts -> tensor<?x64xf32, #recv>
  return
}

// -----

#back = #nn.rows<subtree, site = 1, max = 32>
!counts = !dist.counts<members = 2>
func.func @join_columns_c2_element(%x: tensor<?x32xf32, #back>, %c: !counts) {
  // expected-error @below {{'dist.join_columns' op [C2] expects the result of type 'f32', got 'bf16'}}
  %y = dist.join_columns %x, %c : tensor<?x32xf32, #back>, !counts -> tensor<?x64xbf16, #nn.rows<token>>
  return
}

// -----

#back = #nn.rows<subtree, site = 1, max = 32>
!counts = !dist.counts<members = 2>
func.func @join_columns_c2_rank(%x: tensor<?x4x8xf32, #back>, %c: !counts) {
  // expected-error @below {{'dist.join_columns' op [C2] expects the input of rank 2, got 3}}
  %y = dist.join_columns %x, %c : tensor<?x4x8xf32, #back>, !counts -> tensor<?x64xf32, #nn.rows<token>>
  return
}

// -----

#back = #nn.rows<subtree, site = 1, max = 32>
!counts = !dist.counts<members = 2>
func.func @join_columns_c2_columns(%x: tensor<?x32xf32, #back>, %c: !counts) {
  // expected-error @below {{'dist.join_columns' op [C2] expects result columns of shape [64], got [96]}}
  %y = dist.join_columns %x, %c : tensor<?x32xf32, #back>, !counts -> tensor<?x96xf32, #nn.rows<token>>
  return
}
