// RUN: k2c-opt %s --shard-vocabulary | FileCheck %s
// RUN: k2c-opt %s --shard-vocabulary --verify-form=form=distributed -o /dev/null
// RUN: k2c-opt %s --shard-vocabulary --scheduled-form --verify-form=form=scheduled -o /dev/null
// RUN: k2c-opt %s --shard-vocabulary --remarks-filter=shard-vocabulary 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: parts{{.*}}"embedding and head in parts on 2 ranks", ranks=2

// A second run changes nothing, and neither does the pass where a layout divides them not.
// RUN: k2c-opt %s --shard-vocabulary -o %t.once
// RUN: k2c-opt %t.once --shard-vocabulary | diff %t.once -
// RUN: sed 's/,vocab=2//' %s | k2c-opt -o %t.whole
// RUN: k2c-opt %t.whole --shard-vocabulary | diff %t.whole -

// Of stages, the first embeds what enters there, and ids of others are shared by nobody.
// RUN: sed 's/vocab=2", expanded_from = -1/vocab=2,pp=2", expanded_from = -1, stages = [0, 1, 2]/; s/ranks = 2/ranks = 4/' %s | k2c-opt --partition-stages --shard-vocabulary --verify-form=form=distributed | FileCheck %s --check-prefix=STAGES
// STAGES: %[[IDS:.*]] = nn.token_ids %{{.*}} : tensor<?x1xi32, #entering>
// STAGES: dist.share_plan %[[IDS]] : tensor<?x1xi32, #entering> ->
// STAGES: %[[X:.*]] = dist.join_columns %{{.*}} -> tensor<?x64xf32, #entering>
// STAGES: dist.receive %[[X]] site 0 : tensor<?x64xf32, #entering> -> tensor<?x64xf32, #tok>
// Ends have these parts.
// RUN: sed 's/vocab=2", expanded_from = -1/vocab=2,pp=2", expanded_from = -1, stages = [0, 1, 2]/; s/ranks = 2/ranks = 4/' %s | k2c-opt --partition-stages --shard-vocabulary --scheduled-form | FileCheck %s --check-prefix=SLOTS
// SLOTS-DAG: rt.weight_slots @embed.rows {{.*}} parts 2 on first
// SLOTS-DAG: rt.weight_slots @head.panels {{.*}} parts 2 on last

!x = tensor<?x64xf32, #nn.rows<token>>
!output = tensor<?x64xf32, #nn.rows<output>>

// Ranks have room for the rows of all.
// CHECK-DAG: #[[IDS_IN:.*]] = #nn.rows<message, site = 0, max = 32>
// CHECK-DAG: #[[IDS_ALL:.*]] = #nn.rows<recv, site = 0, max = 32>
// CHECK-DAG: #[[X_BACK:.*]] = #nn.rows<subtree, site = 1, max = 32>
// CHECK-DAG: #[[N_IN:.*]] = #nn.rows<message, site = 2, max = 8>
// CHECK-DAG: #[[N_ALL:.*]] = #nn.rows<recv, site = 2, max = 8>
// CHECK-DAG: #[[LOGITS_BACK:.*]] = #nn.rows<subtree, site = 3, max = 8>
module attributes {dist.plan = #dist.plan<layout = "ep=2,dp=2,vocab=2", expanded_from = -1>,
                   dist.topology = #dist.topology<"pair", ranks = 2>,
                   nn.limits = #nn.limits<token = 16, seq = 4, context = 64, output = 4>,
                   nn.numerics = #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">,
                   kern.target = #kern.cpu<"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>} {
  // Columns of the embedding, rows of the head.
  // CHECK: nn.weights @embed "embed" parts 2 along 1 : tensor<100x64xbf16>
  nn.weights @embed "embed" : tensor<100x64xbf16>
  // CHECK: nn.weights @final_norm "norm" : tensor
  nn.weights @final_norm "norm" : tensor<64xbf16>
  // CHECK: nn.weights @head "head" parts 2 along 0 : tensor<100x64xbf16>
  nn.weights @head "head" : tensor<100x64xbf16>
  nn.weights @norm "{layer}.norm" over (layer = 0 to 2) : tensor<64xbf16>
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %n = nn.rms_norm %x, @norm[%l] eps 1.0e-06 : !x
    %y = nn.add %n, %x : !x
    nn.yield %y : !x
  }
  // CHECK-LABEL: func.func @step(%{{.*}}: !nn.batch)
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    // CHECK-NEXT: %[[IDS:.*]] = nn.token_ids %[[B:.*]] : tensor<?x1xi32, #tok>
    // CHECK-NEXT: %[[SENT:.*]], %[[RETURNED:.*]] = dist.share_plan %[[IDS]] : tensor<?x1xi32, #tok> -> !dist.counts<members = 2>, !dist.counts<members = 2>
    // CHECK-NEXT: %[[IN:.*]], %[[CAME:.*]] = dist.all_to_all %[[IDS]] to %[[SENT]] over stage site 0 quota 16 : tensor<?x1xi32, #tok>, {{.*}} -> tensor<?x1xi32, #[[IDS_IN]]>,
    // CHECK-NEXT: %[[ALL:.*]] = dist.close_gaps %[[IN]], %[[CAME]] : {{.*}} -> tensor<?x1xi32, #[[IDS_ALL]]>
    // CHECK-NEXT: %[[PART:.*]] = nn.lookup %[[ALL]], @embed : tensor<?x1xi32, #[[IDS_ALL]]> -> tensor<?x32xf32, #[[IDS_ALL]]>
    // CHECK-NEXT: %[[BACK:.*]] = dist.share_return %[[ALL]], %[[CAME]] :
    // CHECK-NEXT: %[[PARTS:.*]] = dist.all_to_all %[[PART]] to %[[BACK]] from %[[RETURNED]] over stage site 1 : {{.*}} -> tensor<?x32xf32, #[[X_BACK]]>
    // CHECK-NEXT: %[[X:.*]] = dist.join_columns %[[PARTS]], %[[RETURNED]] : {{.*}} -> tensor<?x64xf32, #tok>
    // CHECK-NEXT: nn.capture %[[X]]
    %0 = nn.embed @embed, %b : !x
    nn.capture %0, %b embed : !x
    %1 = nn.layers %0, %b [@layer[0 to 2]] : !x
    %2 = nn.output_rows %1, %b : !x -> !output
    // A rank normalises its own rows.
    // CHECK: %[[N:.*]] = nn.rms_norm %{{.*}}, @final_norm
    // CHECK-NEXT: %[[SENT2:.*]], %[[RETURNED2:.*]] = dist.share_plan %[[N]] : tensor<?x64xf32, #output>
    // CHECK-NEXT: %[[IN2:.*]], %[[CAME2:.*]] = dist.all_to_all %[[N]] to %[[SENT2]] over stage site 2 quota 4 : {{.*}} -> tensor<?x64xf32, #[[N_IN]]>
    // CHECK-NEXT: %[[ALL2:.*]] = dist.close_gaps %[[IN2]], %[[CAME2]] : {{.*}} -> tensor<?x64xf32, #[[N_ALL]]>
    // CHECK-NEXT: %[[HALF:.*]] = nn.linear %[[ALL2]], @head order tree<1> : {{.*}} -> tensor<?x50xf32, #[[N_ALL]]>
    // CHECK-NEXT: %[[BACK2:.*]] = dist.share_return %[[ALL2]], %[[CAME2]]
    // CHECK-NEXT: %[[PARTS2:.*]] = dist.all_to_all %[[HALF]] to %[[BACK2]] from %[[RETURNED2]] over stage site 3 : {{.*}} -> tensor<?x50xf32, #[[LOGITS_BACK]]>
    // CHECK-NEXT: %[[LOGITS:.*]] = dist.join_columns %[[PARTS2]], %[[RETURNED2]] : {{.*}} -> tensor<?x100xf32, #output>
    // CHECK-NEXT: nn.sample %[[LOGITS]]
    %3 = nn.rms_norm %2, @final_norm eps 1.0e-06 : !output
    %4 = nn.linear %3, @head order tree<1> : !output -> tensor<?x100xf32, #nn.rows<output>>
    nn.sample %4, %b : tensor<?x100xf32, #nn.rows<output>>
    return
  }
}
