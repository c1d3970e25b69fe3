// RUN: k2c-opt %s --canonicalize | FileCheck %s

#tok = #nn.rows<token>
!x = tensor<?x64xf32, #tok>
!h = tensor<?x4x16xf32, #tok>

// CHECK-LABEL: func.func @reshape_to_own_type
// CHECK-SAME: (%[[X:[^:]*]]: tensor
func.func @reshape_to_own_type(%x: !x) -> !x {
  // CHECK-NEXT: return %[[X]]
  %0 = nn.reshape %x : !x -> !x
  return %0 : !x
}

// CHECK-LABEL: func.func @reshape_of_reshape
// CHECK-SAME: (%[[X:[^:]*]]: tensor
func.func @reshape_of_reshape(%x: !x) -> !h {
  // CHECK-NEXT: %[[H:.*]] = nn.reshape %[[X]] : tensor<?x64xf32, #tok> -> tensor<?x4x16xf32, #tok>
  // CHECK-NEXT: return %[[H]]
  %0 = nn.reshape %x : !x -> tensor<?x8x8xf32, #tok>
  %1 = nn.reshape %0 : tensor<?x8x8xf32, #tok> -> !h
  return %1 : !h
}

// CHECK-LABEL: func.func @split_of_whole
// CHECK-SAME: (%[[X:[^:]*]]: tensor
func.func @split_of_whole(%x: !x) -> !x {
  // CHECK-NEXT: return %[[X]]
  %0 = nn.split %x : !x -> !x
  return %0 : !x
}

// CHECK-LABEL: func.func @split_of_piece
// CHECK-SAME: (%[[X:[^:]*]]: tensor
func.func @split_of_piece(%x: !x) -> (tensor<?x8xf32, #tok>, tensor<?x16xf32, #tok>, tensor<?x24xf32, #tok>, tensor<?x16xf32, #tok>) {
  // CHECK-NEXT: %[[S:.*]]:4 = nn.split %[[X]]
  // CHECK-NEXT: return %[[S]]#0, %[[S]]#1, %[[S]]#2, %[[S]]#3
  %0:3 = nn.split %x : !x -> tensor<?x8xf32, #tok>, tensor<?x40xf32, #tok>, tensor<?x16xf32, #tok>
  %1:2 = nn.split %0#1 : tensor<?x40xf32, #tok> -> tensor<?x16xf32, #tok>, tensor<?x24xf32, #tok>
  return %0#0, %1#0, %1#1, %0#2 : tensor<?x8xf32, #tok>, tensor<?x16xf32, #tok>, tensor<?x24xf32, #tok>, tensor<?x16xf32, #tok>
}

// A piece that is read elsewhere stays.
// CHECK-LABEL: func.func @split_of_shared_piece
func.func @split_of_shared_piece(%x: !x) -> (tensor<?x48xf32, #tok>, tensor<?x16xf32, #tok>) {
  // CHECK-COUNT-2: nn.split
  %0:2 = nn.split %x : !x -> tensor<?x48xf32, #tok>, tensor<?x16xf32, #tok>
  %1:2 = nn.split %0#0 : tensor<?x48xf32, #tok> -> tensor<?x16xf32, #tok>, tensor<?x32xf32, #tok>
  return %0#0, %1#0 : tensor<?x48xf32, #tok>, tensor<?x16xf32, #tok>
}

// CHECK-LABEL: func.func @rotate_nothing
// CHECK-SAME: (%[[X:[^:]*]]: tensor
func.func @rotate_nothing(%x: !x, %t: tensor<8x2x0xf32>, %b: !nn.batch) -> !x {
  // CHECK-NEXT: return %[[X]]
  %0 = nn.rotary %x, %t : tensor<8x2x0xf32>, %b first 0 count 0 half : !x
  return %0 : !x
}

// State and captures are effects: nothing reads them here, yet they stay.
// CHECK-LABEL: func.func @effects_stay
func.func @effects_stay(%x: !x, %b: !nn.batch) {
  // CHECK: nn.capture
  nn.capture %x, %b embed : !x
  return
}
