//===- Passes.td - Passes within a form -----------------------------------===//
//
// In the order the pipeline runs them. Flag = file = test name; every decision is a remark of the pass's category.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TRANSFORMS_PASSES
#define K2C_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def SetNumerics : Pass<"set-numerics", "::mlir::ModuleOp"> {
  let summary = "Write every order of accumulation into the model form";
  let description = [{
    Numerics contract N1, N3, N5: orders follow from model shapes alone, before any plan exists. Every op with the
    ReductionOrder interface receives its order; the module receives `nn.numerics`, the identity of the bits.

    ```mlir
    %1 = nn.linear %b, @w1024 : tensor<?x1024xf32, ...> -> !x                        // before
    %1 = nn.linear %b, @w1024 order tree<2> : tensor<?x1024xf32, ...> -> ...         // after
    ```
  }];
  let options = [
    Option<"compute", "compute", "std::string", "\"f32\"", "activation type: f32">,
    Option<"mla", "mla", "std::string", "\"phased\"", "segment forms of latent attention: phased | absorbed | expanded">
  ];
  let dependentDialects = ["::k2c::nn::NnDialect", "::k2c::moe::MoeDialect", "::k2c::mla::MlaDialect"];
}

def AttachPlan : Pass<"attach-plan", "::mlir::ModuleOp"> {
  let summary = "Attach the planner's decisions to the module";
  let description = [{
    The planner (MLIR-free) has decided the layout and the crossover of latent attention, and the user the target
    and the passes to leave out; this pass writes them as `dist.plan`, `dist.topology` and `kern.target`. Every later
    pass only reads the attributes.

    ```mlir
    module {                                                                         // before
    module attributes {dist.plan = #dist.plan<layout = "dp=1", expanded_from = 171, ...>,    // after
                       dist.topology = #dist.topology<"box", ranks = 1, numa = [4, 4]>,
                       kern.target = #kern.cpu<"x86-64-v4", cores = 8, ...>} {
    ```
  }];
  let options = [
    Option<"topology", "topology", "std::string", "\"host\"", "name of the topology">,
    Option<"layout", "layout", "std::string", "\"dp=1\"", "how ranks divide the work, as --layout takes it">,
    Option<"ranks", "ranks", "int64_t", "1", "ranks of the topology">,
    Option<"nodes", "nodes", "int64_t", "1", "nodes that they are on, equally many on each">,
    ListOption<"numa", "numa", "int64_t", "cores of each NUMA node, where there are several">,
    Option<"cpu", "cpu", "std::string", "\"x86-64-v3\"", "LLVM's name of the target's processor">,
    ListOption<"features", "features", "std::string",
               "features that a machine must have; none: avx2 and fma, the least that k2c compiles for">,
    Option<"cores", "cores", "int64_t", "1", "cores that share a launch">,
    Option<"l1Bytes", "l1-bytes", "int64_t", "32768", "first-level data cache of a core">,
    Option<"l2Bytes", "l2-bytes", "int64_t", "1048576", "second-level cache of a core">,
    Option<"gpu", "gpu", "std::string", "\"\"",
           "NVIDIA's name of a GPU's architecture; none: kernels run on the processor">,
    Option<"sms", "sms", "int64_t", "1", "multiprocessors of the GPU">,
    Option<"threads", "threads", "int64_t", "32", "threads of a CTA">,
    Option<"workersOfCta", "workers-of-cta", "int64_t", "32", "workers that the threads of a CTA are">,
    Option<"ctas", "ctas", "int64_t", "1", "CTAs of a launch, at most">,
    Option<"weights", "weights", "std::string", "\"panels\"", "layout in which kernels read matrices: panels or rows">,
    Option<"expandedFrom", "expanded-from", "int64_t", "-1",
           "new tokens from which a prompt segment of latent attention runs expanded; -1: never">,
    ListOption<"without", "without", "std::string", "optional passes to leave out">,
    Option<"tileChoice", "tile-choice", "int64_t", "0",
           "which of the candidates in rising cost each tile is (tests of N0 take another than 0)">,
    Option<"routeLimit", "route-limit", "int64_t", "0", "nodes that experts of a token are on, in a layer; 0: any">,
    Option<"localityPenalty", "locality-penalty", "double", "0.0",
           "by how much choices of experts fall that a token's home node has not">,
    Option<"halvesFrom", "halves-from", "int64_t", "0",
           "token rows of a rank from which on a step goes in halves; 0: none">,
    ListOption<"stages", "stages", "int64_t",
               "the first layer of each stage of ranks, and the end of the last; none: every rank has all layers">
  ];
  let dependentDialects = ["::k2c::dist::DistDialect", "::k2c::kern::KernDialect"];
}

def AbsorbMla : Pass<"absorb-mla", "::mlir::ModuleOp"> {
  let summary = "Absorb the up-projections of latent attention into queries and outputs";
  let description = [{
    Latent attention may expand keys and values from the cached latent (cheap for many queries) or absorb the
    up-projections: q W_UK meets the latent itself, and W_UV follows the weighted sum (cheap for few queries). By the
    forms of the op and the plan's `expanded_from` the rewrite makes one form, or both joined by the segment form of a
    row (N4): where the plan lets no prompt run expanded, there is no expanded kernel and no weight for one.
    W_UK and W_UV are slices of kv_b, as families with a `view`; no product of weights is formed offline.

    ```mlir
    %o = mla.attention %q, %kv, @kvb[%l], %b ... : !q, !kv -> !o                     // before
    %p:2 = nn.split %q ...                                                           // after: rows that run absorbed
    %ql = mla.absorb_query %p#0, @kvb_uk_t[%l], %b ...
    %ol = mla.attention_absorbed %ql, %p#1, %kv, %b ...
    %oa = mla.expand_output %ol, @kvb_uv[%l], %b ...
    %oe = mla.attention_expanded %q, %kv, @kvb_uk[%l], @kvb_uv[%l], %b ...           // rows that run expanded
    %o = mla.merge_forms %oa, %oe, %b ...
    ```
  }];
  let dependentDialects = ["::k2c::nn::NnDialect", "::k2c::mla::MlaDialect"];
}

def SampleOnDevice : Pass<"sample-on-device", "::mlir::ModuleOp"> {
  let summary = "Let a GPU take greedy samples itself";
  let description = [{
    Where the target is a GPU, the largest logit of each output row is found there, so that a step of greedy rows gives
    the host ids and no logits. What is sampled is still handed to the step, where the host draws for other rows.

    ```mlir
    nn.sample %logits, %b : !l                                                       // before

    %best = nn.block_argmax %logits block 512 : ...                                  // after
    nn.greedy_sample %best of %logits, %b : ...
    nn.sample %logits, %b : ...
    ```
  }];
  let dependentDialects = ["::k2c::nn::NnDialect"];
}

def ShardAttention : Pass<"shard-attention", "::mlir::ModuleOp"> {
  let summary = "Divide heads and MLPs over tensor-parallel ranks";
  let description = [{
    Where the plan has tp, the ranks of a group have the same step, each carries a slice of its rows, and has a part of
    the heads and of the columns of MLPs. Rows are gathered for what is divided; the linear behind contracts the leaves
    that a rank has, and the sums of all ranks are added where the row is carried, in the order of one rank's tree (N1).

    ```mlir
    %y = nn.linear %o, @o[%l] order tree<8> : !o -> !x                                    // before

    %p = nn.linear %part, @o[%l] order tree<4> ...                                         // after, of 2 ranks
    %0, %1 = dist.scatter_slices %p site 1 : tensor<?x64xf32, #gathered>
        -> tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok>
    %y = nn.add_partials %0, %1 : tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok> -> tensor<?x64xf32, #tok>
    ```
  }];
  let dependentDialects = ["::k2c::nn::NnDialect", "::k2c::dist::DistDialect"];
}

def ShardVocabulary : Pass<"shard-vocabulary", "::mlir::ModuleOp"> {
  let summary = "Divide embedding and head over the ranks of a stage";
  let description = [{
    Where the plan has vocab, each rank of a stage has some columns of the embedding and some logits. Ids and output
    rows go to all ranks of the stage, and what each makes of them comes back.

    ```mlir
    %4 = nn.linear %3, @head order tree<1> : !output -> tensor<?x100xf32, #nn.rows<output>>
    ```
  }];
  let dependentDialects = ["::k2c::nn::NnDialect", "::k2c::dist::DistDialect"];
}

def ShardExperts : Pass<"shard-experts", "::mlir::ModuleOp"> {
  let summary = "Turn moe.experts into a permutation, grouped linears and N5's tree";
  let description = [{
    Makes the data movement of experts explicit. On one rank nothing travels: a stable counting sort by (expert, token),
    rows gathered once, two grouped linears over sorted slots, and N5's tree. On several ranks rows cross to those that
    have their experts, where nodes have several by way of one of their ranks, and come back as sums of subtrees. Where
    ranks have parts of the same experts, rows go on to all of these.

    ```mlir
    %r = moe.experts %x, %e, %w, @gu[%l], @down[%l] experts 12 inner 96 act silu ... // before
    %p = moe.permutation %e ...                                                         // after, one rank
    %s = moe.permute %x, %p ...
    %g = moe.grouped_linear %s, %p, @gu[%l] order tree<1> ...
    %a = nn.gated_act %g act silu ...
    %d = moe.grouped_linear %a, %p, @down[%l] weighted %w ... order tree<1> ...
    %r = moe.unpermute %d, %p, %e order tree<4> ...
    ```
  }];
  let dependentDialects = ["::k2c::nn::NnDialect", "::k2c::moe::MoeDialect"];
}

def PartitionStages : Pass<"partition-stages", "::mlir::ModuleOp"> {
  let summary = "Divide layers over stages of ranks";
  let description = [{
    Where the plan has stages, a list of layers is that of the rank's stage. Rows enter at the first one, and go from
    each to the next: behind the embedding a rank receives, and behind its layers it sends. All stages run the same
    program, and what some have no part in has no rows there: nothing enters at later stages, and the step of earlier
    ones has no output rows.

    ```mlir
    %x = nn.embed @embed, %b : !x                                                        // before
    %y = nn.layers %x, %b [@dense_layer[0 to 1], @moe_layer[1 to 61]] : !x

    %e = nn.embed @embed, %b : tensor<?x64xf32, #entering>                                // after
    %x = dist.receive %e site 0 : tensor<?x64xf32, #entering> -> tensor<?x64xf32, #tok>
    %y = nn.layers %x, %b [@dense_layer[0 to 1], @moe_layer[1 to 61]] of_stage : tensor<?x64xf32, #tok>
    dist.send %y site 1 to 0 : tensor<?x64xf32, #tok>
    ```
  }];
  let dependentDialects = ["::k2c::dist::DistDialect"];
}

def BoundDispersion : Pass<"bound-dispersion", "::mlir::ModuleOp"> {
  let summary = "Bind the experts of a token to few nodes";
  let description = [{
    Where the plan has a route limit or a locality penalty, each moe.routing gets its bound: nodes of the topology, and
    the slots of a node, which the moe.locate of its experts knows. This changes what a program computes; the numerics
    id says so, with the nodes of all experts.

    ```mlir
    %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1 ... // before
    %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1     // after
        bound<nodes = 4, slots = 4, max = 2, penalty = 0.25> ...
    ```
  }];
  let dependentDialects = ["::k2c::moe::MoeDialect"];
}

def FormKernels : Pass<"form-kernels", "::mlir::ModuleOp"> {
  let summary = "Cut the program into fused kernels";
  let description = [{
    Every op becomes a kern.func region and a kern.call; equal regions are one kernel. Views (split, reshape) move into
    their consumers. With `fuse` a linear takes the norm that only it reads as prologue, and bias-free gated
    activation or residual addition that only reads it as epilogue: the roundings stay, so do the bits. What is added
    may not come later than the linear, which would wait for it. A plan without `fusion` fuses nothing beyond one op.

    ```mlir
    %h = nn.rms_norm %x, @ln[%l] eps 1.0e-06 : !x                                    // before
    %g = nn.linear %h, @gu[%l] order tree<1> : !x -> !g
    %a = nn.gated_act %g act silu : !g -> !a
    %a = kern.call @linear_gu(%x, @ln[%l], @gu[%l]) ...                                   // after
    ```
  }];
  let dependentDialects = ["::k2c::kern::KernDialect"];
}

def ChooseTiles : Pass<"choose-tiles", "::mlir::ModuleOp"> {
  let summary = "Choose each kernel's tile by the cost model";
  let description = [{
    Describes each kern.func as a KernelDesc, asks the kernel model for legal tiles of `kern.target` and writes the
    cheapest as `tile`, or another by the plan's `tile_choice`. Tiles may change no bit (N0). Attention of so few tokens
    that cores would idle is split by the partials of its sequences.

    ```mlir
    kern.func @linear_a(%x: !x, %w: tensor<1536x2048xf32>) -> !a {                        // before
    kern.func @linear_a(...) -> ... tile<avx512, lanes = 16, mr = 14, nr = 2, ...> {      // after
    ```
  }];
  let dependentDialects = ["::k2c::kern::KernDialect"];
}

def GroupLaunches : Pass<"group-launches", "::mlir::ModuleOp"> {
  let summary = "Leave out the barriers between calls that touch nothing of each other";
  let description = [{
    Calls run one after another, each up to a barrier of all workers. Calls of which none writes what another touches
    (but row by row on the same worker) become a group with one barrier at its end: they move next to each other, by
    levels, and all but the last are `nowait`. No schedule has fewer groups than the longest chain has levels.

    ```mlir
    %q = kern.call @linear(%n, %w) : (!x, tensor<64x64xf32>) -> !x                 // before
    %r = kern.call @linear(%q, %w) : (!x, tensor<64x64xf32>) -> !x
    %kv = kern.call @linear(%n, %w) : (!x, tensor<64x64xf32>) -> !x
    %late = kern.call @linear(%n, %w) : (!x, tensor<64x64xf32>) -> !x
    %q = kern.call nowait @linear(%n, %w) ...                                        // after: two groups
    %kv = kern.call nowait @linear(%n, %w) ...
    %late = kern.call @linear(%n, %w) ...
    %r = kern.call @linear(%q, %w) ...
    ```
  }];
  let dependentDialects = ["::k2c::kern::KernDialect"];
}

def AssignMemory : Pass<"assign-memory", "::mlir::ModuleOp"> {
  let summary = "Give every buffer its offset; the peak becomes a number in the IR";
  let description = [{
    A value's bytes are the bound of its row space times its row; it is live until its last reader. First fit over live
    ranges in program order; those of the calls of a group overlap; layers lie above what is live where they are called.
    What a loop or a list of layers reads lives through it, what it carries has one place, and what asynchronous work
    touches lives until its wait. Behind all buffers lie the partials of each attention that is split, at `mem.partials`
    of its calls. The module's `mem.peak` is the arena of the certificate.

    ```mlir
    %a = kern.call @embedding(%b, @embed) : ...                                        // before
    %s = kern.call @add(%a, %a) : ...
    %c = kern.call @add(%s, %s) : ...
    module attributes {mem.peak = 5120 : i64, ...} {                                 // after
    %a = kern.call @embedding(%b, @embed) at [0] ...
    %s = kern.call @add(%a, %a) at [2560] ...
    %c = kern.call @add(%s, %s) at [0] ...
    ```
  }];
  let dependentDialects = ["::k2c::kern::KernDialect"];
}

def AssignSlots : Pass<"assign-slots", "::mlir::ModuleOp"> {
  let summary = "Number the slots of packed weights";
  let description = [{
    A weight that kernels read in a layout has a slot for each of its layers, numbered in the order in which the program
    first reads them. Nothing else numbers slots: the runtime form, the weight map and the manifest read them here.

    ```mlir
    nn.weights @w "{layer}.w" over (layer = 0 to 3) : tensor<64x64xbf16>             // before
    rt.weight_slots @w.panels of @w first 1 count 3 bytes 8192                       // after
        layout #rt.panels<bf16, matrices = 1, n = 64, k = 64> share items 2 item_bytes 4096
    ```
  }];
  let dependentDialects = ["::k2c::rt::RtDialect"];
}

def CertifyMemory : Pass<"certify-memory", "::mlir::ModuleOp"> {
  let summary = "Write the bytes that the program takes";
  let description = [{
    After slots and offsets the bytes of a rank are exact: packed weights, the cache at the limits, the arena, the
    scratch of a worker, the logits. They are written on the module, where the planner and the manifest read them.

    ```mlir
    module attributes {..., mem.peak = 8192 : i64} {                                 // before
    module attributes {mem.certificate = #mem.certificate<weights = 16384, cache = 147456, arena = 8192,    // after
                                                          scratch = ..., logits = 1200>, ...} {
    ```
  }];
  let dependentDialects = ["::k2c::mem::MemDialect"];
}

def PrefetchWeights : Pass<"prefetch-weights", "::mlir::ModuleOp"> {
  let summary = "Name the weights that waiting workers fetch";
  let description = [{
    Within the runtime form. Before each launch that streams a weight, the worker's part of the weight that the next
    such launch streams becomes what it fetches while it waits for others: memory does not idle at the ends of launches,
    and the next kernel finds its first bytes in the second-level cache, of which a worker fetches a quarter at most. A
    layer takes the part that follows it from its caller. Of a group of launches only the last that streams has such a
    part: nobody waits before. Which experts a grouped linear reads is known too late: those launches are passed over.
    Where the ends of a branch stream different weights first, and before ops of unknown effects, no bytes are named.

    ```mlir
    rt.launch @linear_q grid(%g) args(%x, %q, %y) : !rt.ptr, !rt.ptr, !rt.ptr             // before
    %o = rt.weight @o[%l]                                                            // after
    %grid = rt.grid %t slots 1 rows_per_item 64 items 2
    %from, %end = rt.share %o grid(%grid) items 2 bytes 2048 max 4096
    rt.prefetch %from, %end
    rt.launch @linear_q ...
    ```
  }];
  let dependentDialects = ["::k2c::rt::RtDialect", "::mlir::arith::ArithDialect"];
}

def OverlapCommunication : Pass<"overlap-communication", "::mlir::ModuleOp"> {
  let summary = "Have rows of one half of a step cross as the other computes";
  let description = [{
    Within the runtime form, where the plan has `halves_from`. Functions with exchanges are cut into segments, each of
    which begins with a wait, and entry `serve_halves` runs the segments of both halves of a step by turns: what one has
    started crosses while the other computes. Entry `serve` runs them one after another. Nothing else changes, so a half
    computes what a step of its rows would.

    ```mlir
    func.call @layer(%next) : (index) -> ()                  // before; @layer has two exchanges
    func.call @layer_1(%i) ...                               // after, in @step
    ...
    func.call @layer(%a) ...                                 // in @step_halves
    rt.second_half {
    func.call @layer(%b) ...
    }
    func.call @layer_1(%c) ...
    rt.second_half {
    func.call @layer_1(%d) ...
    }
    ```
  }];
  let dependentDialects = ["::k2c::rt::RtDialect"];
}

def VerifyForm : Pass<"verify-form", "::mlir::ModuleOp"> {
  let summary = "Check what may no longer appear in a form";
  let description = [{
    The verifier after each form. model: nn, moe and mla on whole tensors, every order declared. planned: a plan, and
    no latent attention without a form. distributed: no composite op. scheduled: kernels with tiles and offsets, and
    nothing outside them but layer lists, sampling and the joining of forms; in a group of calls none writes bytes that
    another touches, but row by row on the same worker, nothing touches what asynchronous work still has, and nothing
    reads what a kernel has used up. runtime: no nn, moe, mla, dist or kern op, and in functions nothing that rt-to-llvm
    cannot lower.

    From the distributed form on, all ranks come to one sequence of exchanges. In the distributed and the scheduled form
    both sides of one count the same rows, and buffers hold what a step may bring; in the runtime form each start has
    one wait, and no address of an exchange is used in between.

    Errors name the op, the form and the pass that should have removed it.
  }];
  let options = [Option<"form", "form", "std::string", "\"model\"",
                        "model | planned | distributed | scheduled | runtime">];
}

#endif // K2C_TRANSFORMS_PASSES
