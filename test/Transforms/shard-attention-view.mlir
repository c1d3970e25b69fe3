// RUN: k2c-opt %s --shard-attention | FileCheck %s
// RUN: k2c-opt %s --shard-attention --scheduled-form -o /dev/null

// Where linears read pieces of one value, that is gathered, once, and the pieces are views of what is gathered.
// CHECK: %[[A:.*]] = nn.linear %x, @a[%
// CHECK: %[[G:.*]] = dist.gather_slices %[[A]] site 0
// CHECK-NOT: dist.gather_slices
// CHECK: %[[Q:part[_0-9]*]]:2 = nn.split %[[G]]
// CHECK: nn.linear %[[Q]]#0, @q[%
!x = tensor<?x64xf32, #nn.rows<token>>
!r = tensor<?x1024xf32, #nn.rows<token>>
!h = tensor<?x4x256xf32, #nn.rows<token>>
!kv = !nn.kv_view<k = 4 x 256 x f32, v = 4 x 256 x f32>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>,
                   dist.topology = #dist.topology<"pair", ranks = 2>,
                   nn.limits = #nn.limits<token = 16, seq = 4, context = 64, output = 4>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @a "{layer}.a" over (layer = 0 to 2) : tensor<128x64xbf16>
  nn.weights @q "{layer}.q" over (layer = 0 to 2) : tensor<4x256x64xbf16>
  nn.weights @k "{layer}.k" over (layer = 0 to 2) : tensor<4x256x64xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) : tensor<64x1024xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 4 x 256 x f32, v = 4 x 256 x f32) page 64 group 0
  nn.layer @l(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %a = nn.linear %x, @a[%l] order tree<1> : !x -> tensor<?x128xf32, #nn.rows<token>>
    %qa, %ka = nn.split %a : tensor<?x128xf32, #nn.rows<token>> -> !x, !x
    %q = nn.linear %qa, @q[%l] order tree<1> : !x -> !h
    %k = nn.linear %ka, @k[%l] order tree<1> : !x -> !h
    %kv = nn.append @cache[%l], %k, %k, %b : !h, !h -> !kv
    %at = nn.attention %q, %kv, %b scale 6.25e-02 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    %r = nn.reshape %at : !h -> !r
    %y = nn.linear %r, @o[%l] order tree<2> : !r -> !x
    nn.yield %y : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = nn.embed @embed, %b : !x
    %1 = nn.layers %0, %b [@l[0 to 2]] : !x
    return
  }
}
