// RUN: k2c-opt %s --form-kernels --split-input-file | FileCheck %s
// RUN: k2c-opt %s --form-kernels --form-kernels --split-input-file | FileCheck %s
// RUN: k2c-opt %s --attach-plan="without=fusion" --form-kernels --split-input-file | FileCheck %s --check-prefix=ONE

!x = tensor<?x64xf32, #nn.rows<token>>
!g = tensor<?x2x96xf32, #nn.rows<token>>
!a = tensor<?x96xf32, #nn.rows<token>>

nn.weights @ln "{layer}.ln" over (layer = 0 to 2) : tensor<64xf32>
nn.weights @gu "{layer}.{g|u}" over (layer = 0 to 2) : tensor<2x96x64xbf16>
nn.weights @down "{layer}.down" over (layer = 0 to 2) : tensor<64x96xbf16>

// A norm that only one linear reads comes along as its prologue, the gated activation and the addition as epilogues.
// CHECK-LABEL: func.func @mlp(
// CHECK-SAME: %[[L:.*]]: index, %[[X:.*]]: tensor<?x64xf32, #tok>)
func.func @mlp(%l: index, %x: !x) -> !x {
  // CHECK-NEXT: %[[A:.*]] = kern.call @linear_gu(%[[X]], @ln[%[[L]]], @gu[%[[L]]]) : (tensor<?x64xf32, #tok>) -> tensor<?x96xf32, #tok>
  // CHECK-NEXT: %[[Y:.*]] = kern.call @linear_down(%[[A]], @down[%[[L]]], %[[X]])
  // CHECK-NEXT: return %[[Y]]
  %h = nn.rms_norm %x, @ln[%l] eps 1.0e-06 : !x
  %g = nn.linear %h, @gu[%l] order tree<1> : !x -> !g
  %a = nn.gated_act %g act silu : !g -> !a
  %d = nn.linear %a, @down[%l] order tree<1> : !a -> !x
  %y = nn.add %x, %d : !x
  return %y : !x
}

// CHECK: kern.func @linear_gu(%[[KX:.*]]: tensor<?x64xf32, #tok>, %[[KN:.*]]: tensor<64xf32>, %[[KW:.*]]: tensor<2x96x64xbf16>) -> tensor<?x96xf32, #tok> {
// CHECK-NEXT: %[[KH:.*]] = nn.rms_norm %[[KX]], %[[KN]] : tensor<64xf32> eps 1.0e-06
// CHECK-NEXT: %[[KG:.*]] = nn.linear %[[KH]], %[[KW]] : tensor<2x96x64xbf16> order tree<1>
// CHECK-NEXT: %[[KA:.*]] = nn.gated_act %[[KG]] act silu
// CHECK-NEXT: kern.yield %[[KA]]
// CHECK: kern.func @linear_down(

// ONE-LABEL: func.func @mlp(
// ONE-COUNT-5: kern.call
// ONE: kern.func @rms_norm(
// ONE: kern.func @linear_gu(
// ONE: kern.func @gated_act(
// ONE: kern.func @linear_down(
// ONE: kern.func @add(

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @ln "{layer}.ln" over (layer = 0 to 2) : tensor<64xf32>
nn.weights @w1 "{layer}.w1" over (layer = 0 to 2) : tensor<64x64xbf16>
nn.weights @w2 "{layer}.w2" over (layer = 0 to 2) : tensor<64x64xbf16>

// A norm with two readers is computed once, and two linears of one shape are one kernel.
// CHECK-LABEL: func.func @two_readers(
func.func @two_readers(%l: index, %x: !x) -> (!x, !x) {
  // CHECK-NEXT: %[[H:.*]] = kern.call @rms_norm(%{{.*}}, @ln[
  // CHECK-NEXT: kern.call @linear_w1(%[[H]], @w1[
  // CHECK-NEXT: kern.call @linear_w1(%[[H]], @w2[
  %h = nn.rms_norm %x, @ln[%l] eps 1.0e-06 : !x
  %a = nn.linear %h, @w1[%l] order tree<1> : !x -> !x
  %b = nn.linear %h, @w2[%l] order tree<1> : !x -> !x
  return %a, %b : !x, !x
}
// CHECK-COUNT-2: kern.func
// CHECK-NOT: kern.func

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @wa "a" : tensor<96x64xbf16>
nn.weights @n "n" : tensor<32xf32>

// A view moves into the kernel that reads it.
// CHECK-LABEL: func.func @views(
func.func @views(%x: !x) -> tensor<?x32xf32, #nn.rows<token>> {
  // CHECK-NEXT: %[[A:.*]] = kern.call @linear_wa(
  // CHECK-NEXT: kern.call @rms_norm(%[[A]], @n) : (tensor<?x96xf32, #tok>) -> tensor<?x32xf32, #tok>
  // CHECK-NEXT: return
  %a = nn.linear %x, @wa order tree<1> : !x -> tensor<?x96xf32, #nn.rows<token>>
  %c:2 = nn.split %a : tensor<?x96xf32, #nn.rows<token>> -> !x, tensor<?x32xf32, #nn.rows<token>>
  %h = nn.rms_norm %c#1, @n eps 1.0e-06 : tensor<?x32xf32, #nn.rows<token>>
  return %h : tensor<?x32xf32, #nn.rows<token>>
}
// CHECK: kern.func @rms_norm(
// CHECK-NEXT: nn.split
// CHECK-NEXT: nn.rms_norm

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @w "{layer}.w" over (layer = 0 to 2) : tensor<64x64xbf16>

// A linear takes no sum that comes later than it could run: it would wait for it.
// CHECK-LABEL: nn.layer @late(
nn.layer @late(%l: index, %x: !x, %b: !nn.batch) -> !x {
  // CHECK-NEXT: %[[D:.*]] = kern.call @add(
  // CHECK-NEXT: %[[E:.*]] = kern.call @add(
  // CHECK-NEXT: %[[S:.*]] = kern.call @linear_w(
  // CHECK-NEXT: kern.call @add_{{[0-9]}}(%[[E]], %[[S]])
  %d = nn.add %x, %x : !x
  %e = nn.add %d, %d : !x
  %s = nn.linear %x, @w[%l] order tree<1> : !x -> !x
  %y = nn.add %e, %s : !x
  nn.yield %y : !x
}

// Twice the same value is no residual; layer lists stay what they are.
// CHECK-LABEL: nn.layer @layer(
nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x {
  // CHECK-NEXT: kern.call @linear_w(
  // CHECK-NEXT: kern.call @add(
  %d = nn.linear %x, @w[%l] order tree<1> : !x -> !x
  %y = nn.add %d, %d : !x
  nn.yield %y : !x
}
// CHECK-LABEL: func.func @step(
func.func @step(%x: !x, %b: !nn.batch) -> !x {
  // CHECK-NEXT: nn.layers %{{.*}}, %{{.*}} [@layer[0 to 2]]
  %y = nn.layers %x, %b [@layer[0 to 2]] : !x
  return %y : !x
}
