// RUN: k2c-opt %s --partition-stages | FileCheck %s
// RUN: k2c-opt %s --partition-stages --partition-stages | FileCheck %s
// RUN: k2c-opt %s --partition-stages --verify-form=form=distributed -o /dev/null
// RUN: sed -e 's/, stages = .0, 31, 61.//' -e 's/,pp=2//' -e 's/ranks = 8 on 2/ranks = 4 on 1/' %s | k2c-opt --partition-stages | FileCheck %s --check-prefix=ONE
// RUN: k2c-opt %s --partition-stages --scheduled-form | FileCheck %s --check-prefix=SCHEDULED
// RUN: k2c-opt %s --partition-stages --scheduled-form --runtime-form | FileCheck %s --check-prefix=RUNTIME

// The rows of a step enter at the first stage: what is before the layers has those of this rank's stage, and from there
// on it has those of the step, which come from the stage before. Sites are numbered behind those that are there.
// CHECK: #entering = #nn.rows<entering>
// CHECK: %[[E:.*]] = nn.embed @embed, %{{.*}} : tensor<?x64xf32, #entering>
// CHECK-NEXT: nn.capture %[[E]], %{{.*}} embed : tensor<?x64xf32, #entering>
// CHECK-NEXT: %[[X:.*]] = dist.receive %[[E]] site 0 : tensor<?x64xf32, #entering> -> tensor<?x64xf32, #tok>
// CHECK-NEXT: %[[Y:.*]] = nn.layers %[[X]], %{{.*}} [@dense_layer[0 to 1], @moe_layer[1 to 61]] of_stage : tensor<?x64xf32, #tok>
// CHECK-NEXT: dist.send %[[Y]] site 1 to 0 : tensor<?x64xf32, #tok>
// CHECK-NEXT: nn.output_rows %[[Y]]

// Without stages every rank has all layers.
// ONE-NOT: dist.receive
// ONE: nn.layers %{{.*}} [@dense_layer[0 to 1], @moe_layer[1 to 61]] : tensor

// The rows that are received lie where those that enter lie. Weights of the ends are on the first and the last stage,
// and the certificate is of the stage that has most: 31 layers of 12,288 bytes and the embedding, in whole pages.
// SCHEDULED: mem.certificate = #mem.certificate<weights = 397312,
// SCHEDULED: rt.weight_slots @deep.panels of @deep first {{.*}} count 60 bytes 8192 layout {{.*}}64> share items 2
// SCHEDULED: rt.weight_slots @embed.rows of @embed first {{.*}} layout #rt.row_major<bf16, 6400> on first{{$}}
// SCHEDULED: rt.weight_slots @head.panels of @head first {{.*}} on last share items 4 item_bytes 4096
// SCHEDULED: %[[E:.*]] = kern.call {{.*}}@embedding(%{{.*}}, @embed) at [0] : (!nn.batch) -> tensor<?x64xf32, #entering>
// SCHEDULED: dist.receive %[[E]] site 0

// Each end of a stage stands in a function of its own. Launches over rows that enter have none on later stages, and a
// loop is over the layers of the rank's stage.
// RUNTIME: rt.collective @site0 site 0 op receive axis pp members 2 row_bytes 256
// RUNTIME-NEXT: rt.collective @site1 site 1 op send axis pp members 2 row_bytes 256 to 0
// RUNTIME: func.func private @receive0()
// RUNTIME-NEXT: %[[P:.*]] = rt.arena 0
// RUNTIME-NEXT: rt.collective_start @site0 rows %[[P]]
// RUNTIME-NEXT: rt.collective_wait @site0
// RUNTIME: func.func @step()
// RUNTIME: %[[ROWS:.*]] = rt.rows entering
// RUNTIME: call @receive0()
// RUNTIME: %[[FROM:.*]], %[[END:.*]] = rt.stage_layers 1 to 61
// RUNTIME: scf.for %[[L:.*]] = %[[FROM]] to %[[END]]
// RUNTIME: func.call @moe_layer(%[[L]]
// RUNTIME: call @send1()
!x = tensor<?x64xf32, #nn.rows<token>>
!out = tensor<?x64xf32, #nn.rows<output>>
!logits = tensor<?x100xf32, #nn.rows<output>>
module attributes {dist.plan = #dist.plan<layout = "ep=4,dp=4,pp=2", expanded_from = -1, stages = [0, 31, 61]>,
                   dist.topology = #dist.topology<"eight", ranks = 8 on 2 nodes>,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>,
                   nn.limits = #nn.limits<token = 16, seq = 4, context = 64>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">} {
  nn.weights @embed "embed" : tensor<100x64xbf16>
  nn.weights @first "{layer}.first" over (layer = 0 to 1) : tensor<64x64xbf16>
  nn.weights @first_norm "{layer}.norm" over (layer = 0 to 1) : tensor<64xbf16>
  nn.weights @deep_norm "{layer}.norm" over (layer = 1 to 61) : tensor<64xbf16>
  nn.weights @deep "{layer}.deep" over (layer = 1 to 61) : tensor<64x64xbf16>
  nn.weights @head "head" : tensor<100x64xbf16>
  nn.layer @dense_layer(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %n = nn.rms_norm %x, @first_norm[%l] eps 1.0e-06 : !x
    %h = nn.linear %n, @first[%l] order tree<1> : !x -> !x
    %y = nn.linear %h, @first[%l] order tree<1> : !x -> !x
    %z = nn.add %x, %y : !x
    nn.yield %z : !x
  }
  nn.layer @moe_layer(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %n = nn.rms_norm %x, @deep_norm[%l] eps 1.0e-06 : !x
    %h = nn.linear %n, @deep[%l] order tree<1> : !x -> !x
    %y = nn.linear %h, @deep[%l] order tree<1> : !x -> !x
    %z = nn.add %x, %y : !x
    nn.yield %z : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = nn.embed @embed, %b : !x
    nn.capture %x, %b embed : !x
    %y = nn.layers %x, %b [@dense_layer[0 to 1], @moe_layer[1 to 61]] : !x
    %o = nn.output_rows %y, %b : !x -> !out
    %logits = nn.linear %o, @head order tree<1> : !out -> !logits
    nn.sample %logits, %b : !logits
    return
  }
}
