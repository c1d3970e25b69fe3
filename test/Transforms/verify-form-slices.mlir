// RUN: k2c-opt %s --verify-form=form=distributed -o /dev/null
// RUN: k2c-opt %s --verify-form=form=distributed --scheduled-form | k2c-opt --runtime-form -o /dev/null
// RUN: sed 's/8 of 16,/8 of 15,/' %s | k2c-opt --verify-form=form=distributed -o /dev/null
// RUN: sed 's/8 of 16,/16 of 16,/' %s | k2c-opt --verify-form=form=distributed -o /dev/null

// What ranks of a tensor-parallel group do with slices of a step is proven in each form; so is room for more rows than
// a step may bring. verify-form-slices-invalid.test breaks this program, a rule at a time.
!x = tensor<?x64xf32, #nn.rows<token>>
!all = tensor<?x64xf32, #nn.rows<gathered>>
!h = tensor<?x1x512xf32, #nn.rows<gathered>>
!kv = !nn.kv_view<k = 1 x 512 x f32, v = 1 x 512 x f32>
!o = tensor<?x512xf32, #nn.rows<gathered>>
!gu = tensor<?x2x512xf32, #nn.rows<gathered>>
module attributes {dist.plan = #dist.plan<layout = "tp=2", expanded_from = -1>,
                   dist.topology = #dist.topology<"pair", ranks = 2>,
                   nn.limits = #nn.limits<token = 8 of 16, seq = 4, context = 64, output = 4>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @q "{layer}.q" over (layer = 0 to 2) parts 2 along 0 : tensor<2x512x64xbf16>
  nn.weights @o "{layer}.o" over (layer = 0 to 2) parts 2 along 1 : tensor<64x1024xbf16>
  nn.weights @gate_up "{layer}.{gate|up}" over (layer = 0 to 2) parts 2 along 1 : tensor<2x1024x64xbf16>
  nn.weights @down "{layer}.down" over (layer = 0 to 2) parts 2 along 1 : tensor<64x1024xbf16>
  nn.pool @cache over (layer = 0 to 2) planes (k = 1 x 512 x f32, v = 1 x 512 x f32) page 64 group 0
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %all = dist.gather_slices %x site 0 : !x -> !all
    %q = nn.linear %all, @q[%l] order tree<1> : !all -> !h
    %kv = nn.append @cache[%l], %q, %q, %b : !h, !h -> !kv
    %a = nn.attention %q, %kv, %b scale 6.25e-02 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    %r = nn.reshape %a : !h -> !o
    %p = nn.linear %r, @o[%l] order tree<1> : !o -> !all
    %p0, %p1 = dist.scatter_slices %p site 1 : !all -> !x, !x
    %y = nn.add_partials %p0, %p1 : !x, !x -> !x
    %m = dist.gather_slices %y site 2 : !x -> !all
    %gu = nn.linear %m, @gate_up[%l] order tree<1> : !all -> !gu
    %act = nn.gated_act %gu act silu : !gu -> !o
    %d = nn.linear %act, @down[%l] order tree<1> : !o -> !all
    %d0, %d1 = dist.scatter_slices %d site 3 : !all -> !x, !x
    %z = nn.add_partials %d0, %d1 : !x, !x -> !x
    nn.yield %z : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %0 = nn.embed @embed, %b : !x
    %1 = nn.layers %0, %b [@layer[0 to 2]] : !x
    return
  }
}
