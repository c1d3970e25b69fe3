// RUN: k2c-opt %s --attach-plan --choose-tiles --verify-diagnostics --split-input-file

!x = tensor<?x64xf32, #nn.rows<token>>

// expected-error @below {{kernel 'norm' reads 'tensor<64xf32, #nn.blocks<f8E4M3FN, [128], f32>>' row by row; only matrices of linears are read in scaled blocks}}
kern.func @norm(%x: !x, %w: tensor<64xf32, #nn.blocks<f8E4M3FN, [128], f32>>) -> !x {
  %a = nn.rms_norm %x, %w : tensor<64xf32, #nn.blocks<f8E4M3FN, [128], f32>> eps 1.0e-06 : !x
  kern.yield %a : !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>

kern.func @linear_w(%x: !x, %w: tensor<64x64xf32, #nn.blocks<f8E5M2, [128, 128], f32>>) -> !x {
  // expected-error @below {{'nn.linear' op has no declared order or an unknown weight type}}
  %a = nn.linear %x, %w : tensor<64x64xf32, #nn.blocks<f8E5M2, [128, 128], f32>> order tree<1> : !x -> !x
  kern.yield %a : !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>

// expected-error @below {{kernel 'linear_w': w rows of a scale is 48, no divisor of the unit of a leaf, 128}}
kern.func @linear_w(%x: !x, %w: tensor<64x64xf32, #nn.blocks<f8E4M3FN, [128, 48], f32>>) -> !x {
  %a = nn.linear %x, %w : tensor<64x64xf32, #nn.blocks<f8E4M3FN, [128, 48], f32>> order tree<1> : !x -> !x
  kern.yield %a : !x
}

// -----

!qn = tensor<?x4x32xf32, #nn.rows<token>>
!ql = tensor<?x4x64xf32, #nn.rows<token>>
!w = tensor<4x64x32xf32, #nn.blocks<f8E5M2, [32, 32], f32>>

// expected-error @below {{kernel 'uk' reads a weight of type 'tensor<4x64x32xf32, #nn.blocks<f8E5M2, [32, 32], f32>>', which no kernel of this build does}}
kern.func @uk(%q: !qn, %w: !w, %b: !nn.batch) -> !ql {
  %a = mla.absorb_query %q, %w : !w, %b order tree<1> : !qn -> !ql
  kern.yield %a : !ql
}
