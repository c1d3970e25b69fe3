// RUN: k2c-opt %s --form-kernels --split-input-file | FileCheck %s

// What joins a kernel and what does not, one function for each case.
!x = tensor<?x64xf32, #nn.rows<token>>
!h = tensor<?x4x16xf32, #nn.rows<token>>
!g = tensor<?x2x96xf32, #nn.rows<token>>
!a = tensor<?x96xf32, #nn.rows<token>>
!slots = tensor<?x64xf32, #nn.rows<slot, 2>>
!permutation = !moe.permutation<experts = 4, top = 2>
!v = tensor<?x64xf32, #nn.rows<output>>

nn.weights @n "n" : tensor<64xf32>
nn.weights @nh "nh" : tensor<16xf32>
nn.weights @w "w" : tensor<64x64xf32>
nn.weights @v "v" : tensor<64x64xf32>
nn.weights @gu "gu" : tensor<2x96x64xf32>
nn.weights @egu "egu" : tensor<4x2x96x64xf32>
nn.weights @ew "ew" : tensor<4x64x64xf32>

// Views: a reshape moves into its reader.
// CHECK-LABEL: func.func @reshape(
func.func @reshape(%x: !x) -> !h {
  // CHECK-NEXT: kern.call @linear_w(
  // CHECK-NEXT: kern.call @rms_norm(
  // CHECK-NEXT: return
  %0 = nn.linear %x, @w order tree<1> : !x -> !x
  %1 = nn.reshape %0 : !x -> !h
  %2 = nn.rms_norm %1, @nh eps 1.0e-06 : !h
  return %2 : !h
}
// Sampling and the joining of forms are no kernels.
// CHECK-LABEL: func.func @sample(
func.func @sample(%v: !v, %b: !nn.batch) {
  // CHECK-NEXT: kern.call @linear_w
  // CHECK-NEXT: nn.sample
  %0 = nn.linear %v, @w order tree<1> : !v -> !v
  nn.sample %0, %b : !v
  return
}
// CHECK-LABEL: func.func @merge_forms(
func.func @merge_forms(%x: !x, %y: !x, %b: !nn.batch) -> !x {
  // CHECK-NEXT: mla.merge_forms
  %0 = mla.merge_forms %x, %y, %b : !x
  return %0 : !x
}

// Prologues: a norm into a linear, no other op, and into no other op.
// CHECK-LABEL: func.func @norm_linear(
func.func @norm_linear(%x: !x) -> !x {
  // CHECK-NEXT: kern.call @linear_w{{.*}}@n, @w)
  // CHECK-NEXT: return
  %0 = nn.rms_norm %x, @n eps 1.0e-06 : !x
  %1 = nn.linear %0, @w order tree<1> : !x -> !x
  return %1 : !x
}
// CHECK-LABEL: func.func @clip_linear(
func.func @clip_linear(%x: !x) -> !x {
  // CHECK-NEXT: kern.call @clip
  // CHECK-NEXT: kern.call @linear_w
  %0 = nn.clip %x limit 8.0 : !x
  %1 = nn.linear %0, @w order tree<1> : !x -> !x
  return %1 : !x
}
// CHECK-LABEL: func.func @norm_clip(
func.func @norm_clip(%x: !x) -> !x {
  // CHECK-NEXT: kern.call @rms_norm
  // CHECK-NEXT: kern.call @clip
  %0 = nn.rms_norm %x, @n eps 1.0e-06 : !x
  %1 = nn.clip %0 limit 8.0 : !x
  return %1 : !x
}
// CHECK-LABEL: func.func @norm_grouped(
func.func @norm_grouped(%x: !slots, %p: !permutation) -> !slots {
  // CHECK-NEXT: kern.call @rms_norm
  // CHECK-NEXT: kern.call @grouped_linear_ew
  %0 = nn.rms_norm %x, @n eps 1.0e-06 : !slots
  %1 = moe.grouped_linear %0, %p, @ew order tree<1> : !slots, !permutation -> !slots
  return %1 : !slots
}

// Epilogues: gated activation or addition into a linear or a grouped one that nothing else reads.
// CHECK-LABEL: func.func @grouped_act(
func.func @grouped_act(%x: !slots, %p: !permutation) -> tensor<?x96xf32, #nn.rows<slot, 2>> {
  // CHECK-NEXT: kern.call @grouped_linear_egu
  // CHECK-NEXT: return
  %0 = moe.grouped_linear %x, %p, @egu order tree<1> : !slots, !permutation -> tensor<?x2x96xf32, #nn.rows<slot, 2>>
  %1 = nn.gated_act %0 act silu : tensor<?x2x96xf32, #nn.rows<slot, 2>> -> tensor<?x96xf32, #nn.rows<slot, 2>>
  return %1 : tensor<?x96xf32, #nn.rows<slot, 2>>
}
// CHECK-LABEL: func.func @linear_clip(
func.func @linear_clip(%x: !x) -> !x {
  // CHECK-NEXT: kern.call @linear_w
  // CHECK-NEXT: kern.call @clip
  %0 = nn.linear %x, @w order tree<1> : !x -> !x
  %1 = nn.clip %0 limit 8.0 : !x
  return %1 : !x
}
// CHECK-LABEL: func.func @clip_add(
func.func @clip_add(%x: !x) -> !x {
  // CHECK-NEXT: kern.call @clip
  // CHECK-NEXT: kern.call @add
  %0 = nn.clip %x limit 8.0 : !x
  %1 = nn.add %0, %x : !x
  return %1 : !x
}
// CHECK-LABEL: func.func @read_twice(
func.func @read_twice(%x: !x) -> (!g, !a) {
  // CHECK-NEXT: %[[G:.*]] = kern.call @linear_gu
  // CHECK-NEXT: kern.call @clip{{.*}}(%[[G]])
  // CHECK-NEXT: kern.call @gated_act(%[[G]])
  %0 = nn.linear %x, @gu order tree<1> : !x -> !g
  %1 = nn.clip %0 limit 8.0 : !g
  %2 = nn.gated_act %0 act silu : !g -> !a
  return %1, %2 : !g, !a
}

// What is added comes no later than the linear: it may be as deep, a view makes it no deeper, and only one of two
// linears takes the other's rows.
// CHECK-LABEL: func.func @as_deep(
func.func @as_deep(%x: !x) -> !x {
  // CHECK-NEXT: %[[V:.*]] = kern.call @linear_w(%{{.*}}, @v)
  // CHECK-NEXT: kern.call @linear_w{{.*}}(%{{.*}}, @w, %[[V]])
  // CHECK-NEXT: return
  %0 = nn.linear %x, @w order tree<1> : !x -> !x
  %1 = nn.linear %x, @v order tree<1> : !x -> !x
  %2 = nn.add %0, %1 : !x
  return %2 : !x
}
// CHECK-LABEL: func.func @view_as_deep(
func.func @view_as_deep(%x: !x) -> !x {
  // CHECK-NEXT: %[[G:.*]] = kern.call @linear_gu
  // CHECK-NEXT: kern.call @linear_w{{.*}}, @w, %[[G]])
  // CHECK-NEXT: return
  %0 = nn.linear %x, @gu order tree<1> : !x -> !g
  %1 = nn.reshape %0 : !g -> tensor<?x192xf32, #nn.rows<token>>
  %2:2 = nn.split %1 : tensor<?x192xf32, #nn.rows<token>> -> !x, tensor<?x128xf32, #nn.rows<token>>
  %3 = nn.linear %x, @w order tree<1> : !x -> !x
  %4 = nn.add %2#0, %3 : !x
  return %4 : !x
}
// CHECK-LABEL: func.func @later_on_the_right(
func.func @later_on_the_right(%x: !x) -> !x {
  // CHECK-NEXT: kern.call @clip
  // CHECK-NEXT: kern.call @clip
  // CHECK-NEXT: kern.call @linear_w
  // CHECK-NEXT: kern.call @add
  %0 = nn.clip %x limit 8.0 : !x
  %1 = nn.clip %0 limit 8.0 : !x
  %2 = nn.linear %x, @w order tree<1> : !x -> !x
  %3 = nn.add %2, %1 : !x
  return %3 : !x
}
// CHECK-LABEL: func.func @later_on_the_left(
func.func @later_on_the_left(%x: !x) -> !x {
  // CHECK-NEXT: kern.call @clip
  // CHECK-NEXT: kern.call @clip
  // CHECK-NEXT: kern.call @linear_w
  // CHECK-NEXT: kern.call @add
  %0 = nn.clip %x limit 8.0 : !x
  %1 = nn.clip %0 limit 8.0 : !x
  %2 = nn.linear %x, @w order tree<1> : !x -> !x
  %3 = nn.add %1, %2 : !x
  return %3 : !x
}
// The longest path counts, not that of the last operand: the sum is three deep, the linear two.
// CHECK-LABEL: func.func @longest_path(
func.func @longest_path(%x: !x) -> !x {
  // CHECK-NEXT: kern.call @clip
  // CHECK-NEXT: kern.call @clip
  // CHECK-NEXT: kern.call @add
  // CHECK-NEXT: kern.call @linear_w
  // CHECK-NEXT: kern.call @add
  %0 = nn.clip %x limit 8.0 : !x
  %1 = nn.clip %0 limit 8.0 : !x
  %2 = nn.add %1, %0 : !x
  %3 = nn.linear %0, @w order tree<1> : !x -> !x
  %4 = nn.add %2, %3 : !x
  return %4 : !x
}
