// RUN: k2c-opt %s --bound-rows | FileCheck %s
nn.weights @w : tensor<4xf32>
// CHECK: %[[P:.*]] = nn.bound %[[X:.*]] rows {{[0-9]+}} name "[[NAME:bound_[0-9a-f]+]]"{{$}}
// CHECK-NEXT: %{{.*}} = nn.bound %[[P]]
%a = nn.fine %x : !x -> !x
