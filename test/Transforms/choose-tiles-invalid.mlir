// RUN: k2c-opt %s --choose-tiles="lanes=8 registers=1" --verify-diagnostics

!x = tensor<?x64xf32, #nn.rows<token>>

// expected-error @below {{choose-tiles: no tile of kernel 'k_w' is legal on 8 lanes and 1 vector registers}}
kern.func @k_w(%x: !x, %w: tensor<64x64xf32>) -> !x {
  %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : !x -> !x
  kern.yield %a : !x
}
