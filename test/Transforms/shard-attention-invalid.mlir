// RUN: k2c-opt %s --shard-attention --split-input-file --verify-diagnostics

// Slices are of a step, whose rows are bounded.
// expected-error @below {{shard-attention: the module has no nn.limits, and slices are of a step; give it some}}
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>} {}

// -----

// Which weights are divided depends on the form of latent attention.
!q = tensor<?x4x48xf32, #nn.rows<token>>
!kv = !mla.view<latent = 64 x f32, rope = 16 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  func.func @no_form(%q: !q, %kv: !kv, %kvb: tensor<4x64x64xf32>, %b: !nn.batch) {
    // expected-error @below {{shard-attention: expects the distributed form or one before it, and latent attention has no form yet; run absorb-mla first}}
    %o = mla.attention %q, %kv, %kvb : tensor<4x64x64xf32>, %b nope 32 rope 16 v 32 scale 0.125 : !q, !kv -> tensor<?x4x32xf32, #nn.rows<token>>
    return
  }
}

// -----

// A rank has a part of what a checkpoint has, of no value of the program.
!x = tensor<?x64xf32, #nn.rows<token>>
!a = tensor<?x1024xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @gu "{layer}.{g|u}" over (layer = 0 to 2) : tensor<2x1024x64xbf16>
  nn.layer @value(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %w = arith.constant dense<1.0> : tensor<64x1024xf32>
    %gu = nn.linear %x, @gu[%l] order tree<1> : !x -> tensor<?x2x1024xf32, #nn.rows<token>>
    %act = nn.gated_act %gu act silu : tensor<?x2x1024xf32, #nn.rows<token>> -> !a
    // expected-error @below {{shard-attention: its weights are no family, of which ranks could have parts; name one}}
    %y = nn.linear %act, %w : tensor<64x1024xf32> order tree<2> : !a -> !x
    nn.yield %y : !x
  }
}

// -----

// One head of queries is no part for each of two ranks.
!x = tensor<?x64xf32, #nn.rows<token>>
!h = tensor<?x1x1024xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 1 x 1024 x f32, v = 1 x 1024 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @q "{layer}.q" over (layer = 0 to 2) : tensor<1x1024x64xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x1024xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 1 x 1024 x f32, v = 1 x 1024 x f32) page 64 group 0
  nn.layer @one_head(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // expected-error @below {{shard-attention: @q has 1 in dimension 0, which 2 ranks do not divide alike; plan another tp}}
    %q = nn.linear %x, @q[%l] order tree<1> : !x -> !h
    %kv = nn.append @cache[%l], %q, %q, %b : !h, !h -> !kv
    %a = nn.attention %q, %kv, %b scale 3.125e-02 : !h, !kv -> !h
    %r = nn.reshape %a : !h -> tensor<?x1024xf32, #nn.rows<token>>
    %y = nn.linear %r, @o[%l] order tree<2> : tensor<?x1024xf32, #nn.rows<token>> -> !x
    nn.yield %y : !x
  }
}

// -----

// A family that is divided by columns behind the MLP is not divided by rows as well.
!x = tensor<?x1024xf32, #nn.rows<token>>
!gu = tensor<?x2x1024xf32, #nn.rows<token>>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @w "{layer}.{w|v}" over (layer = 0 to 2) : tensor<2x1024x1024xbf16>
  nn.weights @down "{layer}.down" over (layer = 0 to 2) : tensor<1024x1024xbf16>
  nn.layer @two_ways(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %gu = nn.linear %x, @w[%l] order tree<2> : !x -> !gu
    %act = nn.gated_act %gu act silu : !gu -> !x
    %y = nn.linear %act, @down[%l] order tree<2> : !x -> !x
    %gu1 = nn.linear %y, @w[%l] order tree<2> : !x -> !gu
    %act1 = nn.gated_act %gu1 act silu : !gu -> !x
    // expected-error @below {{shard-attention: @w has 1024 in dimension 2, which 2 ranks do not divide alike; plan another tp}}
    %z = nn.linear %act1, @w[%l] order tree<2> : !x -> !gu
    nn.yield %y : !x
  }
}

// -----

// Four heads read one that is cached.
!x = tensor<?x64xf32, #nn.rows<token>>
!h = tensor<?x4x256xf32, #nn.rows<token>>
!k = tensor<?x1x256xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 1 x 256 x f32, v = 1 x 256 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @q "{layer}.q" over (layer = 0 to 2) : tensor<4x256x64xbf16>
  nn.weights @k "{layer}.k" over (layer = 0 to 2) : tensor<1x256x64xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x1024xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 1 x 256 x f32, v = 1 x 256 x f32) page 64 group 0
  nn.layer @one_cached(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %q = nn.linear %x, @q[%l] order tree<1> : !x -> !h
    %k = nn.linear %x, @k[%l] order tree<1> : !x -> !k
    // expected-error @below {{shard-attention: 1 key-value heads are cached, which 2 ranks do not divide; plan a tp that divides them}}
    %kv = nn.append @cache[%l], %k, %k, %b : !k, !k -> !kv
    %a = nn.attention %q, %kv, %b scale 6.25e-02 : !h, !kv -> !h
    %r = nn.reshape %a : !h -> tensor<?x1024xf32, #nn.rows<token>>
    %y = nn.linear %r, @o[%l] order tree<2> : tensor<?x1024xf32, #nn.rows<token>> -> !x
    nn.yield %y : !x
  }
}

// -----

// A norm over all heads of a row takes the sum of squares of all of them.
!x = tensor<?x64xf32, #nn.rows<token>>
!r = tensor<?x1024xf32, #nn.rows<token>>
!h = tensor<?x4x256xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 4 x 256 x f32, v = 4 x 256 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @q "{layer}.q" over (layer = 0 to 2) : tensor<1024x64xbf16>
  nn.weights @q_norm "{layer}.q_norm" over (layer = 0 to 2) : tensor<1024xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x1024xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 4 x 256 x f32, v = 4 x 256 x f32) page 64 group 0
  nn.layer @norm_of_all(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %q0 = nn.linear %x, @q[%l] order tree<1> : !x -> !r
    // expected-error @below {{shard-attention: 'nn.rms_norm' takes the heads or columns of all 2 ranks together; plan tp=1}}
    %q1 = nn.rms_norm %q0, @q_norm[%l] eps 1.0e-06 : !r
    %q = nn.reshape %q1 : !r -> !h
    %kv = nn.append @cache[%l], %q, %q, %b : !h, !h -> !kv
    %a = nn.attention %q, %kv, %b scale 6.25e-02 : !h, !kv -> !h
    %r = nn.reshape %a : !h -> !r
    %y = nn.linear %r, @o[%l] order tree<2> : !r -> !x
    nn.yield %y : !x
  }
}

// -----

// Columns of an embedding are of no rank.
!x = tensor<?x64xf32, #nn.rows<token>>
!r = tensor<?x1024xf32, #nn.rows<token>>
!h = tensor<?x4x256xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 4 x 256 x f32, v = 4 x 256 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @embed "embed" : tensor<100x1024xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x1024xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 4 x 256 x f32, v = 4 x 256 x f32) page 64 group 0
  nn.layer @embedded(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // expected-error @below {{shard-attention: 'nn.embed' takes the heads or columns of all 2 ranks together; plan tp=1}}
    %e = nn.embed @embed, %b : !r
    %q = nn.reshape %e : !r -> !h
    %kv = nn.append @cache[%l], %q, %q, %b : !h, !h -> !kv
    %a = nn.attention %q, %kv, %b scale 6.25e-02 : !h, !kv -> !h
    %r = nn.reshape %a : !h -> !r
    %y = nn.linear %r, @o[%l] order tree<2> : !r -> !x
    nn.yield %y : !x
  }
}

// -----

// Ranks carry rows from layer to layer, not parts of a row.
!x = tensor<?x64xf32, #nn.rows<token>>
!r = tensor<?x1024xf32, #nn.rows<token>>
!h = tensor<?x4x256xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 4 x 256 x f32, v = 4 x 256 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<1024x1024xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 4 x 256 x f32, v = 4 x 256 x f32) page 64 group 0
  // expected-error @below {{shard-attention: heads or columns come into the layer divided by nobody}}
  nn.layer @carried(%l: index, %x: !r, %b: !nn.batch) -> !r {
    %q = nn.reshape %x : !r -> !h
    %kv = nn.append @cache[%l], %q, %q, %b : !h, !h -> !kv
    %a = nn.attention %q, %kv, %b scale 6.25e-02 : !h, !kv -> !h
    %r = nn.reshape %a : !h -> !r
    %y = nn.linear %r, @o[%l] order tree<2> : !r -> !r
    nn.yield %y : !r
  }
}

// -----

// One leaf is not in two parts.
!x = tensor<?x64xf32, #nn.rows<token>>
!h = tensor<?x4x16xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 4 x 16 x f32, v = 4 x 16 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @q "{layer}.q" over (layer = 0 to 2) : tensor<4x16x64xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x64xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 4 x 16 x f32, v = 4 x 16 x f32) page 64 group 0
  nn.layer @one_leaf(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %q = nn.linear %x, @q[%l] order tree<1> : !x -> !h
    %kv = nn.append @cache[%l], %q, %q, %b : !h, !h -> !kv
    %a = nn.attention %q, %kv, %b scale 2.5e-01 : !h, !kv -> !h
    %r = nn.reshape %a : !h -> !x
    // expected-error @below {{shard-attention: tp is 2, and what is behind attention has 1 leaves of 64 columns; plan a tp that divides these evenly}}
    %y = nn.linear %r, @o[%l] order tree<1> : !x -> !x
    nn.yield %y : !x
  }
}

// -----

// A bias is added once, not by each rank.
!x = tensor<?x64xf32, #nn.rows<token>>
!r = tensor<?x1024xf32, #nn.rows<token>>
!h = tensor<?x4x256xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 4 x 256 x f32, v = 4 x 256 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @q "{layer}.q" over (layer = 0 to 2) : tensor<4x256x64xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x1024xbf16>
  nn.weights @o_bias "{layer}.o_bias" over (layer = 0 to 2) : tensor<64xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 4 x 256 x f32, v = 4 x 256 x f32) page 64 group 0
  nn.layer @bias(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %q = nn.linear %x, @q[%l] order tree<1> : !x -> !h
    %kv = nn.append @cache[%l], %q, %q, %b : !h, !h -> !kv
    %a = nn.attention %q, %kv, %b scale 6.25e-02 : !h, !kv -> !h
    %r = nn.reshape %a : !h -> !r
    // expected-error @below {{shard-attention: tp is 2, and what is behind attention has 2 leaves of 1024 columns and a bias; plan a tp that divides these evenly}}
    %y = nn.linear %r, @o[%l] bias @o_bias[%l] order tree<2> : !r -> !x
    nn.yield %y : !x
  }
}

// -----

// A second attention, whose heads go nowhere, reads what all ranks would have to cache.
!x = tensor<?x64xf32, #nn.rows<token>>
!r = tensor<?x1024xf32, #nn.rows<token>>
!h = tensor<?x4x256xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 4 x 256 x f32, v = 4 x 256 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @q "{layer}.q" over (layer = 0 to 2) : tensor<4x256x64xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x1024xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 4 x 256 x f32, v = 4 x 256 x f32) page 64 group 0
  nn.layer @read_twice(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // expected-error @below {{shard-attention: what it makes is read by more than attention and MLPs, and each rank has a part of it; read it before it is divided}}
    %q = nn.linear %x, @q[%l] order tree<1> : !x -> !h
    %kv = nn.append @cache[%l], %q, %q, %b : !h, !h -> !kv
    %a = nn.attention %q, %kv, %b scale 6.25e-02 : !h, !kv -> !h
    %r = nn.reshape %a : !h -> !r
    %y = nn.linear %r, @o[%l] order tree<2> : !r -> !x
    %a1 = nn.attention %q, %kv, %b scale 6.25e-02 : !h, !kv -> !h
    nn.capture %a1, %b hidden layer %l : !h
    nn.yield %y : !x
  }
}

// -----

// Who looks at queries finds those of a rank.
!x = tensor<?x64xf32, #nn.rows<token>>
!r = tensor<?x1024xf32, #nn.rows<token>>
!h = tensor<?x4x256xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 4 x 256 x f32, v = 4 x 256 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>, dist.topology = #dist.topology<"pair", ranks = 2>, nn.limits = #nn.limits<token = 16, seq = 4, context = 64>} {
  nn.weights @q "{layer}.q" over (layer = 0 to 2) : tensor<4x256x64xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x1024xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 4 x 256 x f32, v = 4 x 256 x f32) page 64 group 0
  nn.layer @looks(%l: index, %x: !x, %b: !nn.batch) -> !x {
    // expected-error @below {{shard-attention: what it makes is read by more than attention and MLPs, and each rank has a part of it; read it before it is divided}}
    %q = nn.linear %x, @q[%l] order tree<1> : !x -> !h
    nn.capture %q, %b hidden layer %l : !h
    %kv = nn.append @cache[%l], %q, %q, %b : !h, !h -> !kv
    %a = nn.attention %q, %kv, %b scale 6.25e-02 : !h, !kv -> !h
    %r = nn.reshape %a : !h -> !r
    %y = nn.linear %r, @o[%l] order tree<2> : !r -> !x
    nn.yield %y : !x
  }
}
