// RUN: k2c-opt %s --assign-memory --split-input-file | FileCheck %s
// RUN: k2c-opt %s --assign-memory --assign-memory --split-input-file | FileCheck %s
// RUN: k2c-opt %s --attach-plan="without=buffer-reuse" --assign-memory --split-input-file | FileCheck %s --check-prefix=APART
// RUN: k2c-opt %s --assign-memory --split-input-file --remarks-filter=assign-memory 2>&1 | FileCheck %s --check-prefix=REMARK

// A row of 64 f32 in 10 token rows is 2560 bytes, 40 cache lines. %a is dead when %c is written, so %c lies where %a
// lay; %b is read with %a, so it lies beside it. REMARK counts them, and names those that are alive together at the peak.
// CHECK: module attributes {mem.peak = 5120 : i64, {{.*}}} {
// APART: module attributes {{{.*}}mem.peak = 7680 : i64
// REMARK: step{{.*}}3 buffers, peak 5.00 KiB (5.12 KB){{.*}}buffers=3{{.*}}peak_bytes=5120
// REMARK: arena at its peak: 2.50 KiB (2.56 KB), @embedding in 'step'", bytes=2560, offset=0
// REMARK: arena at its peak: 2.50 KiB (2.56 KB), @add in 'step'", bytes=2560, offset=2560
// REMARK: 0 B of 0 other buffers, 0 B between buffers, 0 B of split-KV attention; in all 5.00 KiB (5.12 KB)"
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> tensor<?x64xf32, #nn.rows<token>> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : tensor<?x64xf32, #nn.rows<token>>
    kern.yield %x : tensor<?x64xf32, #nn.rows<token>>
  }
  kern.func @add(%x: tensor<?x64xf32, #nn.rows<token>>, %y: tensor<?x64xf32, #nn.rows<token>>) -> tensor<?x64xf32, #nn.rows<token>> {
    %s = nn.add %x, %y : tensor<?x64xf32, #nn.rows<token>>
    kern.yield %s : tensor<?x64xf32, #nn.rows<token>>
  }
  // CHECK-LABEL: func.func @step({{.*}} attributes {mem.peak = 5120 : i64, nn.entry = "serve"}
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK: %[[A:.*]] = kern.call @embedding(%{{.*}}, @embed) at [0]
    // APART: kern.call @embedding(%{{.*}}, @embed) at [0]
    %a = kern.call @embedding(%b, @embed) : (!nn.batch) -> tensor<?x64xf32, #nn.rows<token>>
    // CHECK: %[[B:.*]] = kern.call @add(%[[A]], %[[A]]) at [2560]
    // APART: kern.call @add({{.*}}) at [2560]
    %s = kern.call @add(%a, %a) : (tensor<?x64xf32, #nn.rows<token>>, tensor<?x64xf32, #nn.rows<token>>) -> tensor<?x64xf32, #nn.rows<token>>
    // CHECK: %{{.*}} = kern.call @add(%[[B]], %[[B]]) at [0]
    // APART: kern.call @add({{.*}}) at [5120]
    %c = kern.call @add(%s, %s) : (tensor<?x64xf32, #nn.rows<token>>, tensor<?x64xf32, #nn.rows<token>>) -> tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

// Bounds: output rows by sequences, slots by tokens times choices, a plan by its tables; sampled logits lie in the
// step.
// CHECK: module attributes {mem.peak = 2240 : i64
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  kern.func @permutation(%e: tensor<?x2xi32, #nn.rows<token>>) -> !moe.permutation<experts = 4, top = 2> {
    %p = moe.permutation %e : tensor<?x2xi32, #nn.rows<token>> -> !moe.permutation<experts = 4, top = 2>
    kern.yield %p : !moe.permutation<experts = 4, top = 2>
  }
  kern.func @permute(%x: tensor<?x16xf32, #nn.rows<token>>, %p: !moe.permutation<experts = 4, top = 2>) -> tensor<?x16xf32, #nn.rows<slot, 2>> {
    %s = moe.permute %x, %p : tensor<?x16xf32, #nn.rows<token>>, !moe.permutation<experts = 4, top = 2> -> tensor<?x16xf32, #nn.rows<slot, 2>>
    kern.yield %s : tensor<?x16xf32, #nn.rows<slot, 2>>
  }
  kern.func @output_rows(%x: tensor<?x16xf32, #nn.rows<token>>, %b: !nn.batch) -> tensor<?x16xf32, #nn.rows<output>> {
    %w = nn.output_rows %x, %b : tensor<?x16xf32, #nn.rows<token>> -> tensor<?x16xf32, #nn.rows<output>>
    kern.yield %w : tensor<?x16xf32, #nn.rows<output>>
  }
  kern.func @linear_head(%x: tensor<?x16xf32, #nn.rows<output>>, %w: tensor<100x16xf32>) -> tensor<?x100xf32, #nn.rows<output>> {
    %l = nn.linear %x, %w : tensor<100x16xf32> order tree<1> : tensor<?x16xf32, #nn.rows<output>> -> tensor<?x100xf32, #nn.rows<output>>
    kern.yield %l : tensor<?x100xf32, #nn.rows<output>>
  }
  // Arguments come first: %x takes 640 bytes, %e 80 of 128.
  func.func @step(%x: tensor<?x16xf32, #nn.rows<token>>, %e: tensor<?x2xi32, #nn.rows<token>>, %w: tensor<100x16xf32>, %b: !nn.batch) attributes {nn.entry = "serve"} {
    // The plan: 4 * (4 + 1 + 2 * 10 * 2) = 180 bytes.
    // CHECK: kern.call @permutation({{.*}}) at [768]
    %p = kern.call @permutation(%e) : (tensor<?x2xi32, #nn.rows<token>>) -> !moe.permutation<experts = 4, top = 2>
    // 20 slots of 64 bytes.
    // CHECK: kern.call @permute({{.*}}) at [960]
    %s = kern.call @permute(%x, %p) : (tensor<?x16xf32, #nn.rows<token>>, !moe.permutation<experts = 4, top = 2>) -> tensor<?x16xf32, #nn.rows<slot, 2>>
    // 3 output rows of 64 bytes.
    // CHECK: kern.call @output_rows({{.*}}) at [640]
    %v = kern.call @output_rows(%x, %b) : (tensor<?x16xf32, #nn.rows<token>>, !nn.batch) -> tensor<?x16xf32, #nn.rows<output>>
    // CHECK: kern.call @linear_head({{.*}}) at [0]
    %l = kern.call @linear_head(%v, %w) : (tensor<?x16xf32, #nn.rows<output>>, tensor<100x16xf32>) -> tensor<?x100xf32, #nn.rows<output>>
    nn.sample %l, %b : tensor<?x100xf32, #nn.rows<output>>
    return
  }
}

// -----

// A layer's result lies where its argument lay, above which the layer has its buffers, once for all its indices.
// CHECK: module attributes {mem.peak = 7680 : i64
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  kern.func @embedding(%b: !nn.batch, %w: tensor<100x64xbf16>) -> tensor<?x64xf32, #nn.rows<token>> {
    %x = nn.embed %w : tensor<100x64xbf16>, %b : tensor<?x64xf32, #nn.rows<token>>
    kern.yield %x : tensor<?x64xf32, #nn.rows<token>>
  }
  kern.func @add(%x: tensor<?x64xf32, #nn.rows<token>>, %y: tensor<?x64xf32, #nn.rows<token>>) -> tensor<?x64xf32, #nn.rows<token>> {
    %s = nn.add %x, %y : tensor<?x64xf32, #nn.rows<token>>
    kern.yield %s : tensor<?x64xf32, #nn.rows<token>>
  }
  // CHECK-LABEL: nn.layer @layer({{.*}} attributes {mem.arguments = array<i64: 0>, mem.peak = 7680 : i64}
  nn.layer @layer(%l: index, %x: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) -> tensor<?x64xf32, #nn.rows<token>> {
    // CHECK: kern.call @add({{.*}}) at [2560]
    %a = kern.call @add(%x, %x) : (tensor<?x64xf32, #nn.rows<token>>, tensor<?x64xf32, #nn.rows<token>>) -> tensor<?x64xf32, #nn.rows<token>>
    // CHECK: kern.call @add({{.*}}) at [5120]
    %c = kern.call @add(%a, %a) : (tensor<?x64xf32, #nn.rows<token>>, tensor<?x64xf32, #nn.rows<token>>) -> tensor<?x64xf32, #nn.rows<token>>
    // CHECK: kern.call @add({{.*}}) at [0]
    %y = kern.call @add(%x, %c) : (tensor<?x64xf32, #nn.rows<token>>, tensor<?x64xf32, #nn.rows<token>>) -> tensor<?x64xf32, #nn.rows<token>>
    nn.yield %y : tensor<?x64xf32, #nn.rows<token>>
  }
  // The peak is the layer's, above the argument, whose bytes are those of the embedding: named once.
  // REMARK: function 'step': 1 buffers, peak 7.50 KiB (7.68 KB)
  // REMARK: arena at its peak: 2.50 KiB (2.56 KB), @embedding in 'step'", bytes=2560, offset=0
  // REMARK: arena at its peak: 2.50 KiB (2.56 KB), @add in 'layer'", bytes=2560, offset=2560
  // REMARK: arena at its peak: 2.50 KiB (2.56 KB), @add in 'layer'", bytes=2560, offset=5120
  // REMARK: arena at its peak: 0 B of 0 other buffers, 0 B between buffers, 0 B of split-KV attention; in all 7.50 KiB (7.68 KB)"
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK: kern.call @embedding({{.*}}) at [0]
    %x = kern.call @embedding(%b, @embed) : (!nn.batch) -> tensor<?x64xf32, #nn.rows<token>>
    %y = nn.layers %x, %b [@layer[0 to 40]] : tensor<?x64xf32, #nn.rows<token>>
    return
  }
}
