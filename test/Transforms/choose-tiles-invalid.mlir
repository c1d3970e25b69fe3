// RUN: k2c-opt %s --choose-tiles --split-input-file --verify-diagnostics

!x = tensor<?x64xf32, #nn.rows<token>>

// Every contraction is a chain of fused multiply-adds.
module attributes {kern.target = #kern.cpu<"core2", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2"]>} {
  // expected-error @below {{choose-tiles: no tile of kernel 'linear_w' is legal on 8 lanes and 16 vector registers}}
  kern.func @linear_w(%x: !x, %w: tensor<64x64xf32>) -> !x {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : !x -> !x
    kern.yield %a : !x
  }
}

// -----

// expected-error @below {{choose-tiles: the module has no kern.target; run attach-plan first}}
module {}
