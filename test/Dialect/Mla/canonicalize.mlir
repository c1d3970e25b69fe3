// RUN: k2c-opt %s --canonicalize | FileCheck %s

!o = tensor<?x4x32xf32, #nn.rows<token>>

// CHECK-LABEL: func.func @merge_of_one
// CHECK-SAME: (%[[X:[^:]*]]: tensor
func.func @merge_of_one(%x: !o, %b: !nn.batch) -> !o {
  // CHECK-NEXT: return %[[X]]
  %0 = mla.merge_forms %x, %x, %b : !o
  return %0 : !o
}

// CHECK-LABEL: func.func @merge_of_two
func.func @merge_of_two(%x: !o, %y: !o, %b: !nn.batch) -> !o {
  // CHECK: mla.merge_forms
  %0 = mla.merge_forms %x, %y, %b : !o
  return %0 : !o
}
