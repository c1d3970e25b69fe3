//===- MlaOps.td - Operations of the mla dialect --------------------------===//
#ifndef K2C_DIALECTS_MLA_OPS
#define K2C_DIALECTS_MLA_OPS

include "dialects/Mla/MlaBase.td"

class Mla_Op<string mnemonic, list<string> weights = [], list<Trait> traits = [], bit inKernel = 1>
    : TokenOp<MlaDialect, mnemonic, weights, traits, inKernel>;

def Mla_AppendOp : Mla_Op<"append", [], [MemoryEffects<[MemRead, MemWrite]>, Nn_StateOp, SymbolUserOpInterface]> {
  let summary = "Store the step's latents and rotary keys in the cache";
  let description = [{
    Writes each token's row at its append slot of the pool's group in planes `latent` and `rope` and returns the view
    attention reads.

    ```mlir
    %kv = mla.append @cache[%l], %c, %kr, %b : tensor<?x64xf32, #tok>, tensor<?x16xf32, #tok> -> !kv
    ```
    [C1] rows are `token` rows, or `gathered` ones. [C2] latent and rope are [rows, width] as the view says. [C3] the
    pool has planes `latent` and `rope` of these widths and of the view's element type. [C4] the view is of the pool's
    group.
  }];
  let names = ["kv"];
  let arguments = (ins FlatSymbolRefAttr:$pool, Index:$layer, Nn_Rows:$latent, Nn_Rows:$rope, Nn_Batch:$batch);
  let results = (outs Mla_View:$view);
  let assemblyFormat = [{
    $pool `[` $layer `]` `,` $latent `,` $rope `,` $batch attr-dict
    `:` type($latent) `,` type($rope) `->` qualified(type($view))
  }];
  let methods = [{
    ::mlir::FlatSymbolRefAttr getStatePool() { return getPoolAttr(); }
    ::llvm::LogicalResult verifySymbolUses(::mlir::SymbolTableCollection &tables);
  }];
}

def Mla_AttentionOp : Mla_Op<"attention", ["kvb"], [MemoryEffects<[MemRead]>]> {
  let summary = "Causal latent attention, whatever the form";
  let description = [{
    Query heads are [nope | rope]. `kvb` is [heads, nope + v, latent]: rows below `nope` make keys, the others values. A
    score is scale * (q_nope . W_UK c + q_rope . k_rope). absorb-mla replaces the op by those of `forms`.

    ```mlir
    %o = mla.attention %q, %kv, @kvb[%l], %b nope 32 rope 16 v 32 scale 1.25e-1
        forms<prompt = table, generated = absorbed> order softmax<block = 64, split = by_position> : !q, !kv -> !qn
    ```
    [C2] the query is [rows, heads, nope + rope]. [C3] the result is [rows, heads, v]. [C4] the view's rope width is
    `rope`. [C5] `kvb` is [heads, nope + v, latent]. [C6] rows are `token` rows, or `gathered` ones.
  }];
  let names = ["attention"];
  let arguments = (ins Nn_Rows:$query, Mla_View:$view, OptionalAttr<FlatSymbolRefAttr>:$kvb,
                       Optional<Nn_WeightOperand>:$kvb_operand, Nn_Batch:$batch, Nn_Int:$nope, Nn_Int:$rope, Nn_Int:$v,
                       F64Attr:$scale, OptionalAttr<Mla_FormsAttr>:$forms, OptionalAttr<Nn_SoftmaxAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $query `,` $view `,` custom<WeightRef>($kvb, $kvb_operand, type($kvb_operand)) `,` $batch `nope` $nope `rope` $rope
    `v` $v `scale` custom<Real>($scale)
    `` custom<OptionalAttribute>("\"forms\"", $forms) `` custom<OptionalAttribute>("\"order\"", $order)
    attr-dict
    `:` type($query) `,` qualified(type($view)) `->` type($result)
  }];
  let reductions = [Reduces<"order", "Softmax", "0">];
}

class Mla_HeadLinearOp<string mnemonic> : Mla_Op<mnemonic, ["weight"], [Pure]> {
  let arguments = (ins Nn_Rows:$input, OptionalAttr<FlatSymbolRefAttr>:$weight,
                       Optional<Nn_WeightOperand>:$weight_operand, Nn_Batch:$batch, OptionalAttr<Nn_TreeAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` custom<WeightRef>($weight, $weight_operand, type($weight_operand)) `,` $batch
    `` custom<OptionalAttribute>("\"order\"", $order) attr-dict `:` type($input) `->` type($result)
  }];
  let reductions = [Reduces<"order", "Contraction", "getInput().getType().getShape().back()">];
}

def Mla_AbsorbQueryOp : Mla_HeadLinearOp<"absorb_query"> {
  let summary = "Take each query head to the latent space";
  let description = [{
    y[r, h] = W_UK[h]^T q_nope[r, h]; the weight is [heads, latent, nope], W_UK transposed by a family's view. Defines
    the rows of absorbed segments.

    ```mlir
    %ql = mla.absorb_query %n, @uk_t[%l], %b order tree<1> : !qn -> !ql
    ```
    [C2] input and result are [rows, heads, ..] with equal heads. [C3] the weight is [heads, result dims, input dims].
  }];
  let names = ["q_latent"];
}

def Mla_ExpandOutputOp : Mla_HeadLinearOp<"expand_output"> {
  let summary = "Take each head's latent output to its value space";
  let description = [{
    y[r, h] = W_UV[h] o[r, h]; the weight is [heads, v, latent]. Defines the rows of absorbed segments.

    ```mlir
    %oa = mla.expand_output %ol, @uv[%l], %b order tree<1> : !ql -> !qn
    ```
    [C2] input and result are [rows, heads, ..] with equal heads. [C3] the weight is [heads, result dims, input dims].
  }];
  let names = ["absorbed"];
}

def Mla_AttentionAbsorbedOp : Mla_Op<"attention_absorbed", [], [MemoryEffects<[MemRead]>]> {
  let summary = "Causal attention in the latent space";
  let description = [{
    A score is scale * (q_latent . c + q_rope . k_rope), one chain over the latent, then the rotary elements; the output
    is the weighted sum of latents. Defines the rows of absorbed segments.

    ```mlir
    %ol = mla.attention_absorbed %ql, %r, %kv, %b scale 1.25e-1 order softmax<block = 64, split = by_position>
        : !ql, !qr, !kv -> !ql
    ```
    [C2] the query is [rows, heads, latent] and so is the result. [C3] the rotary part is [rows, heads, rope]. [C4] rows
    are `token` rows, or `gathered` ones.
  }];
  let names = ["o_latent"];
  let arguments = (ins Nn_Rows:$query, Nn_Rows:$rotary, Mla_View:$view, Nn_Batch:$batch, F64Attr:$scale,
                       OptionalAttr<Nn_SoftmaxAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $query `,` $rotary `,` $view `,` $batch `scale` custom<Real>($scale)
    `` custom<OptionalAttribute>("\"order\"", $order) attr-dict
    `:` type($query) `,` type($rotary) `,` qualified(type($view)) `->` type($result)
  }];
  let reductions = [Reduces<"order", "Softmax", "0">];
}

def Mla_AttentionExpandedOp : Mla_Op<"attention_expanded", ["uk", "uv"],
                                     [MemoryEffects<[MemRead]>, AttrSizedOperandSegments]> {
  let summary = "Causal attention over keys and values computed from the latents";
  let description = [{
    Keys are W_UK c (`uk`: [heads, nope, latent]), values W_UV c (`uv`: [heads, v, latent]), expanded block by block; a
    score is one chain over nope, then the rotary elements. Query heads are [nope | rope]. Defines the rows of expanded
    segments.

    ```mlir
    %oe = mla.attention_expanded %q, %kv, @uk[%l], @uv[%l], %b scale 1.25e-1
        order softmax<block = 64, split = by_position> : !q, !kv -> !qn
    ```
    [C2] query and result are [rows, heads, ..] with equal heads. [C3] `uk` is [heads, nope, latent] and query dims are
    nope + rope. [C4] `uv` is [heads, v, latent] and result dims are v. [C5] rows are `token` rows, or `gathered` ones.
  }];
  let names = ["expanded"];
  let arguments = (ins Nn_Rows:$query, Mla_View:$view, OptionalAttr<FlatSymbolRefAttr>:$uk,
                       Optional<Nn_WeightOperand>:$uk_operand, OptionalAttr<FlatSymbolRefAttr>:$uv,
                       Optional<Nn_WeightOperand>:$uv_operand, Nn_Batch:$batch, F64Attr:$scale,
                       OptionalAttr<Nn_SoftmaxAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $query `,` $view `,` custom<WeightRef>($uk, $uk_operand, type($uk_operand)) `,`
    custom<WeightRef>($uv, $uv_operand, type($uv_operand)) `,` $batch `scale` custom<Real>($scale)
    `` custom<OptionalAttribute>("\"order\"", $order) attr-dict
    `:` type($query) `,` qualified(type($view)) `->` type($result)
  }];
  let reductions = [Reduces<"order", "Softmax", "0">];
}

def Mla_MergeFormsOp : Mla_Op<"merge_forms", [],
                              [Pure, AllTypesMatch<["absorbed", "expanded", "result"]>, Nn_SharedPlaceOp],
                              /*inKernel=*/0> {
  let summary = "Take each row from the operand of its segment's form";
  let description = [{
    Form-specific ops define the rows of their form only; the merge defines all. It costs nothing when both write one
    buffer.

    ```mlir
    %o = mla.merge_forms %oa, %oe, %b : !qn
    ```
    [C2] rows are `token` rows, or `gathered` ones.
  }];
  let names = ["attention"];
  let arguments = (ins Nn_Rows:$absorbed, Nn_Rows:$expanded, Nn_Batch:$batch);
  let results = (outs Nn_Rows:$result);
  let hasFolder = 1;
  let methods = "::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>> getSharedPlaces() {"
                " return {{getExpanded(), getAbsorbed()}, {getResult(), getAbsorbed()}}; }\n";
  let assemblyFormat = "$absorbed `,` $expanded `,` $batch attr-dict `:` type($result)";
}

#endif
