// RUN: k2c-opt %s --split-input-file --verify-diagnostics

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @row_space(%x: !x, %w: tensor<8x64xf32>) {
  // expected-error @below {{'nn.linear' op [C1] expects one row space, got #nn.rows<token> and #nn.rows<output>}}
  %0 = nn.linear %x, %w : tensor<8x64xf32> : !x -> tensor<?x8xf32, #nn.rows<output>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @embed_c1(%w: tensor<512x64xf32>, %b: !nn.batch) {
  // expected-error @below {{'nn.embed' op [C1] expects the result in row space token, got output}}
  %0 = nn.embed %w : tensor<512x64xf32>, %b : tensor<?x64xf32, #nn.rows<output>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @embed_c2(%w: tensor<512x48xf32>, %b: !nn.batch) {
  // expected-error @below {{'nn.embed' op [C2] expects table width 48 to equal result width 64}}
  %0 = nn.embed %w : tensor<512x48xf32>, %b : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @w "layers.{layer}.w" over (layer = 0 to 3) : tensor<48xf32>
func.func @rms_norm_c2(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.rms_norm' op [C2] expects a weight of shape [64], got [48]}}
  %0 = nn.rms_norm %x, @w[%l] eps 1.0 : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @w "layers.{layer}.w" over (layer = 0 to 3) : tensor<64xf32>
func.func @rms_norm_c3(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.rms_norm' op [C3] expects a positive eps, got 0}}
  %0 = nn.rms_norm %x, @w[%l] eps 0.0 : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @w "layers.{layer}.w" over (layer = 0 to 3) : tensor<8x48xf32>
func.func @linear_c2(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.linear' op [C2] expects weight columns 48 to equal input width 64}}
  %0 = nn.linear %x, @w[%l] : !x -> tensor<?x8xf32, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @w "layers.{layer}.w" over (layer = 0 to 3) : tensor<2x8x64xf32>
func.func @linear_c3(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.linear' op [C3] expects result columns of shape [2, 8], got [16]}}
  %0 = nn.linear %x, @w[%l] : !x -> tensor<?x16xf32, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @w "layers.{layer}.w" over (layer = 0 to 3) : tensor<8x64xf32>
func.func @linear_c4(%x: !x, %l: index, %bias: tensor<4xf32>) {
  // expected-error @below {{'nn.linear' op [C4] expects a bias of shape [8], got [4]}}
  %0 = nn.linear %x, @w[%l] bias %bias : tensor<4xf32> : !x -> tensor<?x8xf32, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.weights @w "layers.{layer}.w" over (layer = 0 to 3) : tensor<8x64xf32>
func.func @linear_c5(%h: tensor<?x4x64xf32, #nn.rows<token>>, %l: index) {
  // expected-error @below {{'nn.linear' op [C5] expects an input of rank 2, got 3}}
  %0 = nn.linear %h, @w[%l] : tensor<?x4x64xf32, #nn.rows<token>> -> tensor<?x8xf32, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @clip_c2(%x: !x) {
  // expected-error @below {{'nn.clip' op [C2] expects a positive limit, got 0.0}}
  %0 = nn.clip %x limit 0.0 : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @gated_act_c2(%g: tensor<?x3x64xf32, #nn.rows<token>>) {
  // expected-error @below {{'nn.gated_act' op [C2] expects dimension 1 3 to equal gate and up, 2}}
  %0 = nn.gated_act %g act silu : tensor<?x3x64xf32, #nn.rows<token>> -> !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @rotary_c2(%x: !x, %b: !nn.batch, %t: tensor<8x2x32xf32>) {
  // expected-error @below {{'nn.rotary' op [C2] expects first + count within 64 elements, got 8 + 64}}
  %0 = nn.rotary %x, %t : tensor<8x2x32xf32>, %b first 8 count 64 half : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @rotary_c3(%x: !x, %b: !nn.batch, %t: tensor<8x2x32xf32>) {
  // expected-error @below {{'nn.rotary' op [C3] expects a table row of shape [2, 16], got [2, 32]}}
  %0 = nn.rotary %x, %t : tensor<8x2x32xf32>, %b first 0 count 32 half : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @rotary_c4(%x: !x, %b: !nn.batch, %t: tensor<8x2x32xf32>) {
  // expected-error @below {{'nn.rotary' op [C4] expects an even count that is not negative, got 3}}
  %0 = nn.rotary %x, %t : tensor<8x2x32xf32>, %b first 0 count 3 half : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @rotary_c5(%w: tensor<?x64xf32, #nn.rows<output>>, %b: !nn.batch, %t: tensor<8x2x32xf32>) {
  // expected-error @below {{'nn.rotary' op [C5] expects the input in row space token, got output}}
  %0 = nn.rotary %w, %t : tensor<8x2x32xf32>, %b first 0 count 64 half : tensor<?x64xf32, #nn.rows<output>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @split_c2(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.split' op [C2] expects the sum of the pieces 56 to equal the last dimension 64}}
  %0:2 = nn.split %x : !x -> tensor<?x48xf32, #nn.rows<token>>, tensor<?x8xf32, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @split_c3(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.split' op [C3] expects a piece of type 'f32', got 'bf16'}}
  %0 = nn.split %x : !x -> tensor<?x64xbf16, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x4x16xf32, #nn.rows<token>>
func.func @split_c3_dimensions(%x: !x) {
  // expected-error @below {{'nn.split' op [C3] expects outer dimensions of shape [4], got [2]}}
  %0 = nn.split %x : !x -> tensor<?x2x16xf32, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @reshape_c2(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.reshape' op [C2] expects elements of a result row 60 to equal elements of an input row 64}}
  %0 = nn.reshape %x : !x -> tensor<?x4x15xf32, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @reshape_c3(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.reshape' op [C3] expects the result of type 'f32', got 'bf16'}}
  %0 = nn.reshape %x : !x -> tensor<?x64xbf16, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @output_rows_c1(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.output_rows' op [C1] expects the result in row space output, got token}}
  %0 = nn.output_rows %x, %b : !x -> !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @output_rows_c2(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.output_rows' op [C2] expects result columns of shape [64], got [48]}}
  %0 = nn.output_rows %x, %b : !x -> tensor<?x48xf32, #nn.rows<output>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.layer @f(%l: index, %x: !x, %b: !nn.batch) -> !x {
  nn.yield %x : !x
}
func.func @layers_c2(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.layers' op [C2] expects the run of @f to start at 1, got 2}}
  %0 = nn.layers %x, %b [@f[0 to 1], @f[2 to 3]] : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!y = tensor<?x48xf32, #nn.rows<token>>
nn.layer @f(%l: index, %y: !y, %b: !nn.batch) -> !y {
  nn.yield %y : !y
}
func.func @layers_c3(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.layers' op [C3] expects @f of type '(index, tensor<?x64xf32, #nn.rows<token>>, !nn.batch) -> tensor<?x64xf32, #nn.rows<token>>', got '(index, tensor<?x48xf32, #nn.rows<token>>, !nn.batch) -> tensor<?x48xf32, #nn.rows<token>>'}}
  %0 = nn.layers %x, %b [@f[0 to 1]] : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.pool @c over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
func.func @append_c1(%k: tensor<?x2x16xf32, #nn.rows<output>>, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.append' op [C1] expects keys in row space token, got output}}
  %0 = nn.append @c[%l], %k, %k, %b : tensor<?x2x16xf32, #nn.rows<output>>, tensor<?x2x16xf32, #nn.rows<output>> -> !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.pool @c over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
func.func @append_c2(%k: tensor<?x4x16xf32, #nn.rows<token>>, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.append' op [C2] expects key columns of shape [2, 16], got [4, 16]}}
  %0 = nn.append @c[%l], %k, %k, %b : tensor<?x4x16xf32, #nn.rows<token>>, tensor<?x4x16xf32, #nn.rows<token>> -> !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.pool @c over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
func.func @append_c2_values(%k: tensor<?x2x16xf32, #nn.rows<token>>, %v: tensor<?x2x8xf32, #nn.rows<token>>, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.append' op [C2] expects value columns of shape [2, 16], got [2, 8]}}
  %0 = nn.append @c[%l], %k, %v, %b : tensor<?x2x16xf32, #nn.rows<token>>, tensor<?x2x8xf32, #nn.rows<token>> -> !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.pool @c over (layer = 0 to 3) planes (k = 2 x 16 x bf16, v = 2 x 16 x f32) page 64 group 0
func.func @append_c3(%k: tensor<?x2x16xf32, #nn.rows<token>>, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.append' op [C3] expects plane 'k' of type 'f32', got 'bf16'}}
  %0 = nn.append @c[%l], %k, %k, %b : tensor<?x2x16xf32, #nn.rows<token>>, tensor<?x2x16xf32, #nn.rows<token>> -> !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.pool @c over (layer = 0 to 3) planes (k = 2 x 16 x f32) page 64 group 0
func.func @append_c3_no_plane(%k: tensor<?x2x16xf32, #nn.rows<token>>, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.append' op [C3] expects pool @c to have a plane 'v'}}
  %0 = nn.append @c[%l], %k, %k, %b : tensor<?x2x16xf32, #nn.rows<token>>, tensor<?x2x16xf32, #nn.rows<token>> -> !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @append_c3_no_pool(%k: tensor<?x2x16xf32, #nn.rows<token>>, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.append' op [C3] expects @c to be an nn.pool}}
  %0 = nn.append @c[%l], %k, %k, %b : tensor<?x2x16xf32, #nn.rows<token>>, tensor<?x2x16xf32, #nn.rows<token>> -> !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.pool @c over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 1
func.func @append_c4(%k: tensor<?x2x16xf32, #nn.rows<token>>, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.append' op [C4] expects the view's group 0 to equal the pool's 1}}
  %0 = nn.append @c[%l], %k, %k, %b : tensor<?x2x16xf32, #nn.rows<token>>, tensor<?x2x16xf32, #nn.rows<token>> -> !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @attention_c2(%q: tensor<?x3x16xf32, #nn.rows<token>>, %kv: !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>, %b: !nn.batch) {
  // expected-error @below {{'nn.attention' op [C2] expects query heads 3 to be a multiple of the view's heads 2}}
  %0 = nn.attention %q, %kv, %b scale 1.0 : tensor<?x3x16xf32, #nn.rows<token>>, !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32> -> tensor<?x4x16xf32, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @attention_c3(%q: tensor<?x4x8xf32, #nn.rows<token>>, %kv: !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>, %b: !nn.batch) {
  // expected-error @below {{'nn.attention' op [C3] expects query dims 8 to equal key dims 16}}
  %0 = nn.attention %q, %kv, %b scale 1.0 : tensor<?x4x8xf32, #nn.rows<token>>, !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32> -> tensor<?x4x16xf32, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @attention_c4(%q: tensor<?x4x16xf32, #nn.rows<token>>, %kv: !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>, %b: !nn.batch) {
  // expected-error @below {{'nn.attention' op [C4] expects result columns of shape [4, 16], got [64]}}
  %0 = nn.attention %q, %kv, %b scale 1.0 : tensor<?x4x16xf32, #nn.rows<token>>, !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32> -> !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @attention_c5(%q: tensor<?x4x16xf32, #nn.rows<token>>, %kv: !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>, %b: !nn.batch) {
  // expected-error @below {{'nn.attention' op [C5] expects a positive window, got 0}}
  %0 = nn.attention %q, %kv, %b scale 1.0 window 0 : tensor<?x4x16xf32, #nn.rows<token>>, !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32> -> tensor<?x4x16xf32, #nn.rows<token>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @attention_c6(%q: tensor<?x4x16xf32, #nn.rows<output>>, %kv: !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>, %b: !nn.batch) {
  // expected-error @below {{'nn.attention' op [C6] expects the query in row space token, got output}}
  %0 = nn.attention %q, %kv, %b scale 1.0 : tensor<?x4x16xf32, #nn.rows<output>>, !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32> -> tensor<?x4x16xf32, #nn.rows<output>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @capture_c2(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.capture' op [C2] expects a layer for hidden}}
  nn.capture %x, %b hidden : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @capture_c3(%w: tensor<?x64xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.capture' op [C3] expects the input in row space token, got output}}
  nn.capture %w, %b embed : tensor<?x64xf32, #nn.rows<output>>
  return
}

// -----

func.func @block_argmax_c1(%x: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) {
  // expected-error @below {{'nn.block_argmax' op [C1] expects the logits in row space output, got token}}
  %0 = nn.block_argmax %x block 32 : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x2xi32, #nn.rows<token>>
  return
}

// -----

func.func @block_argmax_c2(%x: tensor<?x64xbf16, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.block_argmax' op [C2] expects logits of type 'f32', got 'bf16'}}
  %0 = nn.block_argmax %x block 32 : tensor<?x64xbf16, #nn.rows<output>> -> tensor<?x2xi32, #nn.rows<output>>
  return
}

// -----

func.func @block_argmax_c3(%x: tensor<?x64xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.block_argmax' op [C3] expects a positive block, got 0}}
  %0 = nn.block_argmax %x block 0 : tensor<?x64xf32, #nn.rows<output>> -> tensor<?x2xi32, #nn.rows<output>>
  return
}

// -----

func.func @block_argmax_c4(%x: tensor<?x64xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.block_argmax' op [C4] expects the result of type 'i32', got 'f32'}}
  %0 = nn.block_argmax %x block 32 : tensor<?x64xf32, #nn.rows<output>> -> tensor<?x2xf32, #nn.rows<output>>
  return
}

// -----

func.func @block_argmax_c4_blocks(%x: tensor<?x64xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.block_argmax' op [C4] expects result columns of shape [3], got [2]}}
  %0 = nn.block_argmax %x block 31 : tensor<?x64xf32, #nn.rows<output>> -> tensor<?x2xi32, #nn.rows<output>>
  return
}

// -----

func.func @greedy_sample_c1(%best: tensor<?x2xi32, #nn.rows<token>>, %x: tensor<?x64xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.greedy_sample' op [C1] expects one row space, got #nn.rows<output> and #nn.rows<token>}}
  nn.greedy_sample %best of %x, %b : tensor<?x2xi32, #nn.rows<token>>, tensor<?x64xf32, #nn.rows<output>>
  return
}

// -----

func.func @greedy_sample_c2(%best: tensor<?x2xi32, #nn.rows<output>>, %x: tensor<?x4x16xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.greedy_sample' op [C2] expects logits of rank 2, got 3}}
  nn.greedy_sample %best of %x, %b : tensor<?x2xi32, #nn.rows<output>>, tensor<?x4x16xf32, #nn.rows<output>>
  return
}

// -----

func.func @greedy_sample_c3(%best: tensor<?x2xf32, #nn.rows<output>>, %x: tensor<?x64xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.greedy_sample' op [C3] expects what blocks have left of type 'i32', got 'f32'}}
  nn.greedy_sample %best of %x, %b : tensor<?x2xf32, #nn.rows<output>>, tensor<?x64xf32, #nn.rows<output>>
  return
}

// -----

func.func @greedy_sample_c3_rank(%best: tensor<?x2x1xi32, #nn.rows<output>>, %x: tensor<?x64xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.greedy_sample' op [C3] expects what blocks have left of rank 2, got 3}}
  nn.greedy_sample %best of %x, %b : tensor<?x2x1xi32, #nn.rows<output>>, tensor<?x64xf32, #nn.rows<output>>
  return
}

// -----

func.func @greedy_sample_c3_blocks(%best: tensor<?x65xi32, #nn.rows<output>>, %x: tensor<?x64xf32, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.greedy_sample' op [C3] expects at most 64 blocks, as many as a row has logits, got 65}}
  nn.greedy_sample %best of %x, %b : tensor<?x65xi32, #nn.rows<output>>, tensor<?x64xf32, #nn.rows<output>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @sample_c1(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.sample' op [C1] expects the logits in row space output, got token}}
  nn.sample %x, %b : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @sample_c2(%w: tensor<?x64xbf16, #nn.rows<output>>, %b: !nn.batch) {
  // expected-error @below {{'nn.sample' op [C2] expects logits of type 'f32', got 'bf16'}}
  nn.sample %w, %b : tensor<?x64xbf16, #nn.rows<output>>
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
nn.layer @layers_c4(%layer: index, %x: !x, %b: !nn.batch) -> !x {
  // expected-error @below {{'nn.layers' op [C4] expects to stand in no layer, got one in 'layers_c4'}}
  %0 = nn.layers %x, %b [@layers_c4[0 to 1]] : !x
  nn.yield %0 : !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func private @f(index, !x, !nn.batch) -> !x
func.func @layers_of_functions(%x: !x, %b: !nn.batch) {
  // expected-error @below {{'nn.layers' op [C3] expects @f to be an nn.layer}}
  %0 = nn.layers %x, %b [@f[0 to 1]] : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
// expected-error @below {{'nn.layer' op [C1] expects the type (index, carried rows, rows that it reads, !nn.batch) -> carried rows, got '(tensor<?x64xf32, #nn.rows<token>>, !nn.batch) -> tensor<?x64xf32, #nn.rows<token>>'}}
nn.layer @layer_without_index(%x: !x, %b: !nn.batch) -> !x {
  nn.yield %x : !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
// expected-error @below {{'nn.layer' op [C1] expects the type (index, carried rows, rows that it reads, !nn.batch) -> carried rows, got '(index, tensor<?x64xf32, #nn.rows<token>>) -> tensor<?x64xf32, #nn.rows<token>>'}}
nn.layer @layer_without_step(%l: index, %x: !x) -> !x {
  nn.yield %x : !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
// expected-error @below {{'nn.layer' op [C1] expects the type (index, carried rows, rows that it reads, !nn.batch) -> carried rows, got '(index, tensor<?x64xf32, #nn.rows<token>>, tensor<64xf32>, !nn.batch) -> tensor<?x64xf32, #nn.rows<token>>'}}
nn.layer @layer_of_a_weight(%l: index, %x: !x, %w: tensor<64xf32>, %b: !nn.batch) -> !x {
  nn.yield %x : !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
// expected-error @below {{'nn.layer' op [C1] expects the type (index, carried rows, rows that it reads, !nn.batch) -> carried rows, got '(index, tensor<?x64xf32, #nn.rows<token>>, !nn.batch) -> (tensor<?x64xf32, #nn.rows<token>>, tensor<?x64xf32, #nn.rows<token>>)'}}
nn.layer @layer_of_more_results(%l: index, %x: !x, %b: !nn.batch) -> (!x, !x) {
  nn.yield %x, %x : !x, !x
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!y = tensor<?x48xf32, #nn.rows<token>>
// expected-error @below {{'nn.layer' op [C1] expects the type (index, carried rows, rows that it reads, !nn.batch) -> carried rows, got '(index, tensor<?x64xf32, #nn.rows<token>>, tensor<?x48xf32, #nn.rows<token>>, !nn.batch) -> tensor<?x48xf32, #nn.rows<token>>'}}
nn.layer @layer_of_a_later_result(%l: index, %x: !x, %y: !y, %b: !nn.batch) -> !y {
  nn.yield %y : !y
}

// -----

// expected-error @below {{'nn.layer' op [C1] expects the type (index, carried rows, rows that it reads, !nn.batch) -> carried rows, got '(index, !nn.batch) -> ()'}}
nn.layer @layer_of_nothing(%l: index, %b: !nn.batch) {
  "nn.yield"() : () -> ()
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!y = tensor<?x48xf32, #nn.rows<token>>
// expected-error @below {{'nn.layer' op [C2] expects the yield to have types ('tensor<?x64xf32, #nn.rows<token>>'), got ('tensor<?x48xf32, #nn.rows<token>>')}}
nn.layer @layer_c2(%l: index, %x: !x, %y: !y, %b: !nn.batch) -> !x {
  nn.yield %y : !y
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!y = tensor<?x48xf32, #nn.rows<token>>
nn.layer @f(%l: index, %x: !x, %y: !y, %b: !nn.batch) -> !x {
  nn.yield %x : !x
}
func.func @layers_that_carry_what_is_read(%x: !x, %y: !y, %b: !nn.batch) {
  // expected-error @below {{'nn.layers' op [C3] expects @f of type '(index, tensor<?x64xf32, #nn.rows<token>>, tensor<?x48xf32, #nn.rows<token>>, !nn.batch) -> (tensor<?x64xf32, #nn.rows<token>>, tensor<?x48xf32, #nn.rows<token>>)', got '(index, tensor<?x64xf32, #nn.rows<token>>, tensor<?x48xf32, #nn.rows<token>>, !nn.batch) -> tensor<?x64xf32, #nn.rows<token>>'}}
  %0:2 = nn.layers %x, %y, %b [@f[0 to 1]] : !x, !y
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
!y = tensor<?x48xf32, #nn.rows<token>>
func.func @layers_c1(%x: !x, %b: !nn.batch) {
  // expected-error @below {{'nn.layers' op [C1] expects to carry values, and results of their types, got ('tensor<?x64xf32, #nn.rows<token>>') and ('tensor<?x48xf32, #nn.rows<token>>')}}
  %0 = "nn.layers"(%x, %b) <{operandSegmentSizes = array<i32: 1, 0, 1>, runs = [#nn.run<[@f], 0, 1>]}> : (!x, !nn.batch) -> !y
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @layers_of_nothing(%x: !x, %b: !nn.batch) {
  // expected-error @below {{'nn.layers' op [C1] expects to carry values, and results of their types, got () and ()}}
  "nn.layers"(%x, %b) <{operandSegmentSizes = array<i32: 0, 1, 1>, runs = [#nn.run<[@f], 0, 1>]}> : (!x, !nn.batch) -> ()
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @layers_without_a_step(%x: !x) {
  // expected-error @below {{expected the step behind what layers take}}
  %0 = nn.layers %x reads [@f[0 to 1]] : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @layers_of_no_run(%x: !x, %b: !nn.batch) {
  // expected-error @below {{'nn.layers' op [C2] expects at least one run}}
  %0 = nn.layers %x, %b [] : !x
  return
}

// -----

!x = tensor<?x64xf32, #nn.rows<token>>
func.func @capture_of_an_embedding_has_no_layer(%x: !x, %b: !nn.batch, %l: index) {
  // expected-error @below {{'nn.capture' op [C2] expects no layer for embed}}
  nn.capture %x, %b embed layer %l : !x
  return
}

// -----

func.func @token_ids_c1(%b: !nn.batch) {
  // expected-error @below {{'nn.token_ids' op [C1] expects the result in row space token, got output}}
  %0 = nn.token_ids %b : tensor<?x1xi32, #nn.rows<output>>
  return
}

// -----

func.func @token_ids_c2_element(%b: !nn.batch) {
  // expected-error @below {{'nn.token_ids' op [C2] expects an id of type 'i32', got 'f32'}}
  %0 = nn.token_ids %b : tensor<?x1xf32, #nn.rows<token>>
  return
}

// -----

func.func @token_ids_c2_columns(%b: !nn.batch) {
  // expected-error @below {{'nn.token_ids' op [C2] expects a row of ids of shape [1], got [2]}}
  %0 = nn.token_ids %b : tensor<?x2xi32, #nn.rows<token>>
  return
}

// -----

func.func @lookup_c2(%w: tensor<512x48xf32>, %ids: tensor<?x1xi32, #nn.rows<token>>) {
  // expected-error @below {{'nn.lookup' op [C2] expects table width 48 to equal result width 64}}
  %0 = nn.lookup %ids, %w : tensor<512x48xf32> : tensor<?x1xi32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
  return
}

// -----

func.func @lookup_c3(%w: tensor<512x64xf32>, %ids: tensor<?x2xi32, #nn.rows<token>>) {
  // expected-error @below {{'nn.lookup' op [C3] expects a row of ids of shape [1], got [2]}}
  %0 = nn.lookup %ids, %w : tensor<512x64xf32> : tensor<?x2xi32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
  return
}
