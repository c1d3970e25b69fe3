// RUN: k2c-opt %s --assign-slots | FileCheck %s
// RUN: k2c-opt %s --assign-slots --assign-slots | FileCheck %s

!x = tensor<?x64xf32, #nn.rows<token>>
!l = tensor<?x100xf32, #nn.rows<token>>

// In the order of the program's first reads. A family has a slot for each of its layers, one that is read in two layouts
// two sets of slots, one that nothing reads none. An embedding is read row by row, by whichever worker has the token.
// CHECK: rt.weight_slots @embed.rows of @embed first 0 count 1 bytes 12800 layout #rt.row_major<bf16, 6400>{{$}}
// CHECK-NEXT: rt.weight_slots @w.panels of @w first 1 count 3 bytes 8192 layout #rt.panels<bf16, matrices = 1, n = 64, k = 64> share items 2 item_bytes 4096
// CHECK-NEXT: rt.weight_slots @embed.panels of @embed first 4 count 1 bytes 16384 layout #rt.panels<bf16, matrices = 1, n = 100, k = 64> share items 4 item_bytes 4096
// CHECK-NOT: rt.weight_slots
nn.weights @unread "unread" : tensor<8x8xf32>
nn.weights @w "{layer}.w" over (layer = 0 to 3) : tensor<64x64xbf16>
nn.weights @embed "embed" : tensor<100x64xbf16>
kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> !x {
  %x = nn.embed %w : tensor<100x64xbf16>, %b : !x
  kern.yield %x : !x
}
kern.func @linear_w(%x: !x, %w: tensor<64x64xbf16>) -> !x {
  %a = nn.linear %x, %w : tensor<64x64xbf16> order tree<1> : !x -> !x
  kern.yield %a : !x
}
kern.func @linear_head(%x: !x, %w: tensor<100x64xbf16>) -> !l {
  %l = nn.linear %x, %w : tensor<100x64xbf16> order tree<1> : !x -> !l
  kern.yield %l : !l
}
func.func @step(%b: !nn.batch, %l: index) {
  %x = kern.call @embedding(%b, @embed) : (!nn.batch) -> !x
  %y = kern.call @linear_w(%x, @w[%l]) : (!x) -> !x
  %z = kern.call @linear_w(%y, @w[%l]) : (!x) -> !x
  %o = kern.call @linear_head(%z, @embed) : (!x) -> !l
  return
}
