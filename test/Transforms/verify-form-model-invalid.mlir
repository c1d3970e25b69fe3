// RUN: k2c-opt %s --verify-form="form=model" --split-input-file --verify-diagnostics

// expected-error @below {{model form: the module has no nn.limits; run the frontend first}}
module {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

// expected-error @below {{model form: the module has no nn.numerics; run set-numerics first}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

// expected-error @below {{model form: no function has nn.entry; run the frontend first}}
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">} {
  func.func @step() {
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  func.func @f(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) {
    // expected-error @below {{model form: the reduction 'order' has no order; run set-numerics first}}
    %a = nn.linear %x, %w : tensor<64x64xf32> : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">} {
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
  // expected-error @below {{model form: kernels belong to the scheduled form}}
  kern.func @k(%x: tensor<?x64xf32, #nn.rows<token>>, %w: tensor<64x64xf32>) -> tensor<?x64xf32, #nn.rows<token>> {
    %a = nn.linear %x, %w : tensor<64x64xf32> order tree<1> : tensor<?x64xf32, #nn.rows<token>> -> tensor<?x64xf32, #nn.rows<token>>
    kern.yield %a : tensor<?x64xf32, #nn.rows<token>>
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">} {
  nn.pool @c0 over (layer = 0 to 1) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
  // expected-error @below {{model form: pool @c2 is of cache group 2, and no pool of group 1; number groups from 0 without gaps}}
  nn.pool @c2 over (layer = 0 to 1) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 2
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">} {
  // expected-error @below {{model form: pool @c is of cache group 8, the last of a program is 7; have fewer groups}}
  nn.pool @c over (layer = 0 to 1) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 8
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">} {
  nn.pool @a over (layer = 0 to 1) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
  // expected-error @below {{model form: pool @b is of cache group 0 with 128 tokens a page, @a has 64; a group has one block table: make it two groups}}
  nn.pool @b over (layer = 1 to 2) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 128 group 0
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    return
  }
}

// -----

// A choice between numbers is none between rows.
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">} {
  func.func @step(%x: tensor<?x64xf32, #nn.rows<token>>, %c: i1, %n: i64, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %few = arith.select %c, %n, %n : i64
    %y = nn.add %x, %x : tensor<?x64xf32, #nn.rows<token>>
    // expected-error @below {{model form: 'arith.select' chooses between rows that lie in two places; let a branch compute what it yields}}
    %z = arith.select %c, %x, %y : tensor<?x64xf32, #nn.rows<token>>
    return
  }
}

// -----

// Composite ops, and groups of pages of their own, belong to the model form: no diagnostic.
module attributes {nn.limits = #nn.limits<token = 10, seq = 3, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">} {
  nn.pool @a over (layer = 0 to 1) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
  nn.pool @b over (layer = 1 to 2) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
  nn.pool @c over (layer = 2 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 128 group 1
  func.func @step(%x: tensor<?x64xf32, #nn.rows<token>>, %b: !nn.batch) attributes {nn.entry = "serve"} {
    %s = nn.add %x, %x : tensor<?x64xf32, #nn.rows<token>>
    return
  }
  func.func @f(%w: tensor<4x64x64xf32>, %q: tensor<?x4x48xf32, #nn.rows<token>>, %kv: !mla.view<latent = 64 x f32, rope = 16 x f32>, %b: !nn.batch) {
    %o = mla.attention %q, %kv, %w : tensor<4x64x64xf32>, %b nope 32 rope 16 v 32 scale 0.125
        forms<prompt = table, generated = absorbed> order softmax<block = 64, split = by_position>
        : tensor<?x4x48xf32, #nn.rows<token>>, !mla.view<latent = 64 x f32, rope = 16 x f32> -> tensor<?x4x32xf32, #nn.rows<token>>
    return
  }
}
