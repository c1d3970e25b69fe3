//===- MoeOps.td - Operations of the moe dialect --------------------------===//
#ifndef K2C_DIALECTS_MOE_OPS
#define K2C_DIALECTS_MOE_OPS

include "dialects/Moe/MoeBase.td"
include "dialects/Moe/MoeExchange.td"

class Moe_Op<string mnemonic, list<string> weights = [], list<Trait> traits = []>
    : TokenOp<MoeDialect, mnemonic, weights, traits>;

def Moe_RoutingOp : Moe_Op<"routing", ["bias"], [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Choose each token's experts and their weights";
  let description = [{
    Scores are sigmoid or softmax (over all experts) of the f32 logits. The bias, if any, is added for the choice only.
    The experts form `groups` equal groups, scored by the sum of their two best members (`top2`) or their best one
    (`max`); only the `kept` best groups take part. The `top` best experts are chosen, the lower id first among equals,
    and listed by falling weight; the weights are the unbiased scores, divided by their sum + 1e-20 if `normalize`,
    times `scale`. With a `bound` the groups that are kept are followed by a choice of nodes: a node is scored by the
    sum of its best choices, each of its experts once. A `penalty` lowers the choice of experts that the best node by
    ceil(top / nodes) choices has not; with `max`, only experts of the `max` best nodes by ceil(top / max) choices,
    lowered ones, take part, the lower node first among equals. The step may force experts and weights and may capture
    both, in the row of the layer's ordinal in `among`, the MoE layers.

    ```mlir
    %e, %w = moe.routing %s, %b bias @bias[%l] layer %l among 1 to 61 score sigmoid top 8 groups 1 of 1 normalize
        scale 2.827 : !s -> !e, !w
    %e2, %w2 = moe.routing %s, %b layer %l among 1 to 4 and 5 to 61 step 2 score softmax top 8 groups 3 of 8 by max
        scale 16.0 : !s -> !e, !w
    %e3, %w3 = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 8 groups 1 of 1
        bound<nodes = 4, slots = 96, max = 2, penalty = 0.25> scale 1.0 : !s -> !e, !w
    ```
    [C1] all row tensors have `token` rows. [C2] the logits are f32 [rows, experts]. [C3] experts are i32 [rows, top]
    and weights f32 [rows, top]. [C4] 0 < top <= kept * experts / groups. [C5] groups divide the experts and 0 < kept <=
    groups. [C6] the bias is [experts]. [C7] all nodes of a bound have a slot for each expert, and those of a limit for
    each choice.
  }];
  let names = ["experts", "weights"];
  let role = "routing";
  let arguments = (ins Nn_Rows:$scores, Nn_Batch:$batch, OptionalAttr<FlatSymbolRefAttr>:$bias,
                       Optional<Nn_WeightOperand>:$bias_operand, Index:$layer, Nn_IndicesAttr:$among,
                       Moe_ScoringAttr:$score, Nn_Int:$top, Nn_Int:$kept, Nn_Int:$groups,
                       DefaultValuedAttr<Moe_GroupScoreAttr, "GroupScore::Top2">:$group_score,
                       OptionalAttr<Moe_BoundAttr>:$bound, UnitAttr:$normalize, F64Attr:$scale);
  let results = (outs Nn_Rows:$experts, Nn_Rows:$weights);
  let requiredWeights = 0;
  let methods = [{
    int64_t getCount() { return ::llvm::cast<::mlir::RankedTensorType>(getScores().getType()).getShape().back(); }
    /// Of all nodes of the bound.
    int64_t getSlots() { return getBoundAttr().getNodes() * getBoundAttr().getSlots(); }
  }];
  let assemblyFormat = [{
    $scores `,` $batch `` custom<OptionalWeightRef>("\"bias\"", $bias, $bias_operand, type($bias_operand))
    `layer` $layer `among` custom<Indices>($among) `score` `` $score `top` $top `groups` $kept `of` $groups
    (`by` `` $group_score^)? (`bound` `` $bound^)? (`normalize` $normalize^)?
    `scale` custom<Real>($scale) attr-dict `:` type($scores) `->` type($experts) `,` type($weights)
  }];
}

def Moe_ExpertsOp : Moe_Op<"experts", ["up", "down"], [Pure, AttrSizedOperandSegments]> {
  let summary = "Run each token through its experts and add their outputs";
  let description = [{
    The composite of permutation, permute, grouped_linear (gate and up), gated_act, grouped_linear (down, weighted) and
    unpermute; it is replaced by these ops on one rank and by an exchange on several. `up` is [experts, 2, inner,
    hidden], `down` is [experts, hidden, inner].

    ```mlir
    %r = moe.experts %n, %e, %w, @gu[%l], @down[%l] experts 384 inner 96 act silu
        up_order tree<8> down_order tree<4> combine tree<128> : !x, !e, !w -> !x
    ```
    [C2] experts are i32 [rows, top] and weights f32 [rows, top]. [C3] `up` is [experts, 2, inner, hidden]. [C4] `down`
    is [experts, hidden, inner]. [C5] input and result are [rows, hidden]. [C6] the tree's leaves divide the experts.
  }];
  let names = ["routed"];
  let arguments = (ins Nn_Rows:$input, Nn_Rows:$experts, Nn_Rows:$weights, OptionalAttr<FlatSymbolRefAttr>:$up,
                       Optional<Nn_WeightOperand>:$up_operand, OptionalAttr<FlatSymbolRefAttr>:$down,
                       Optional<Nn_WeightOperand>:$down_operand, Nn_Int:$inner, Nn_Int:$count, Nn_ActivationAttr:$act,
                       OptionalAttr<Nn_TreeAttr>:$up_order, OptionalAttr<Nn_TreeAttr>:$down_order,
                       OptionalAttr<Moe_TreeAttr>:$combine);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $experts `,` $weights `,` custom<WeightRef>($up, $up_operand, type($up_operand)) `,`
    custom<WeightRef>($down, $down_operand, type($down_operand)) `experts` $count `inner` $inner `act` `` $act
    `` custom<OptionalAttribute>("\"up_order\"", $up_order) `` custom<OptionalAttribute>("\"down_order\"", $down_order)
    `` custom<OptionalAttribute>("\"combine\"", $combine) attr-dict
    `:` type($input) `,` type($experts) `,` type($weights) `->` type($result)
  }];
  let reductions = [Reduces<"up_order", "Contraction", "getInput().getType().getShape().back()">,
                    Reduces<"down_order", "Contraction", "getInner()">, Reduces<"combine", "Combine", "getCount()">];
}

def Moe_PermutationOp : Moe_Op<"permutation", [], [Pure]> {
  let summary = "Sort (token, choice) pairs by expert";
  let description = [{
    A stable counting sort by (expert, token); slots of one expert are consecutive.

    ```mlir
    %p = moe.permutation %e : !e -> !permutation
    ```
    [C2] experts are i32 [rows, top] with the permutation's top. [C3] rows are the permutation's.
  }];
  let names = ["permutation"];
  let arguments = (ins Nn_Rows:$experts);
  let results = (outs Moe_Permutation:$permutation);
  let assemblyFormat = "$experts attr-dict `:` type($experts) `->` qualified(type($permutation))";
}

def Moe_PermuteOp : Moe_Op<"permute", [], [Pure]> {
  let summary = "Copy each slot's token row";
  let description = [{
    ```mlir
    %in = moe.permute %n, %p : !x, !permutation -> !slots
    ```
    [C1] the input has the permutation's rows, the result its slots. [C2] columns and element type are kept.
  }];
  let names = ["permuted"];
  let arguments = (ins Nn_Rows:$input, Moe_Permutation:$permutation);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $permutation attr-dict `:` type($input) `,` qualified(type($permutation)) `->` type($result)
  }];
  let changesRows = 1;
}

def Moe_GroupedLinearOp : Moe_Op<"grouped_linear", ["weight"], [Pure, AttrSizedOperandSegments]> {
  let summary = "Multiply each slot row by its expert's weight";
  let description = [{
    As nn.linear with the weight of the slot's expert. `weighted` multiplies the f32 accumulator by the router weight of
    the slot's (token, choice) before rounding (N5). No expert without slots is computed.

    ```mlir
    %g = moe.grouped_linear %in, %p, @gu[%l] order tree<8>
        : !slots, !permutation -> tensor<?x2x96xf32, #nn.rows<slot, 8>>
    %d = moe.grouped_linear %a, %p, @down[%l] weighted %w : !w order tree<4>
        : tensor<?x96xf32, #nn.rows<slot, 8>>, !permutation -> !slots
    ```
    [C1] input and result have the permutation's slots. [C2] the weight is [experts, result dimensions, input width].
    [C3] the router weights are f32, the permutation's rows of its top columns. [C4] the input has rank two.
  }];
  let arguments = (ins Nn_Rows:$input, Moe_Permutation:$permutation, OptionalAttr<FlatSymbolRefAttr>:$weight,
                       Optional<Nn_WeightOperand>:$weight_operand, Optional<Nn_Rows>:$router_weights,
                       OptionalAttr<Nn_TreeAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $permutation `,` custom<WeightRef>($weight, $weight_operand, type($weight_operand))
    (`weighted` $router_weights^ `:` type($router_weights))? `` custom<OptionalAttribute>("\"order\"", $order) attr-dict
    `:` type($input) `,` qualified(type($permutation)) `->` type($result)
  }];
  let changesRows = 1;
  let reductions = [Reduces<"order", "Contraction", "getInput().getType().getShape().back()">];
  let methods = "bool isLinear() { return true; }";
}

def Moe_UnpermuteOp : Moe_Op<"unpermute", [], [Pure]> {
  let summary = "Add the outputs of each token's experts";
  let description = [{
    Adds the slot rows of a token as the leaves of a fixed tree over the expert ids (N5); the same bits for any
    placement.

    ```mlir
    %r = moe.unpermute %d, %p, %e order tree<128> : !slots, !permutation, !e -> !x
    ```
    [C1] the input has `slot` rows with the permutation's top slots for each token, the result `token` rows. [C2]
    columns and element type are kept. [C3] the leaves divide the experts. [C4] experts, the ids that the permutation
    sorted, are i32 [rows, top] with the permutation's top.
  }];
  let names = ["routed"];
  let arguments = (ins Nn_Rows:$input, Moe_Permutation:$permutation, Nn_Rows:$experts,
                       OptionalAttr<Moe_TreeAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` $permutation `,` $experts `` custom<OptionalAttribute>("\"order\"", $order) attr-dict
    `:` type($input) `,` qualified(type($permutation)) `,` type($experts) `->` type($result)
  }];
  let changesRows = 1;
  let reductions = [Reduces<"order", "Combine", "getPermutation().getType().getExperts()">];
}

#endif
