//===- NnOps.td - Operations of the nn dialect ----------------------------===//
//
// Symbols (weights, tables, pools) are in NnSymbols.td, layers and their lists in NnLayers.td, attention and state in
// NnState.td.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_NN_OPS
#define K2C_DIALECTS_NN_OPS

include "dialects/Nn/NnOpBase.td"
include "dialects/Nn/NnSymbols.td"

class Nn_Op<string mnemonic, list<string> weights = [], list<Trait> traits = [], bit inKernel = 1>
    : TokenOp<NnDialect, mnemonic, weights, traits, inKernel>;

/// Its steps, and its verifier if it has one, are in NnElementwise.cpp.
class Nn_Elementwise<string mnemonic, list<Trait> traits = []>
    : Nn_Op<mnemonic, [], [Pure, DeclareOpInterfaceMethods<Nn_ElementwiseOp>] # traits>;

def Nn_EmbedOp : Nn_Op<"embed", ["weight"], [Pure]> {
  let summary = "Look up the embedding of each token";
  let description = [{
    Row t is the table's row of the step's token t.

    ```mlir
    %0 = nn.embed @embed, %b : !x
    ```
    [C1] the result has `token` rows, or `entering` ones. [C2] the table is [vocabulary, width] and width is the
    result's.
  }];
  let names = ["x"];
  let role = "embedding";
  let arguments = (ins OptionalAttr<FlatSymbolRefAttr>:$weight, Optional<Nn_WeightOperand>:$weight_operand,
                       Nn_Batch:$batch);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    custom<WeightRef>($weight, $weight_operand, type($weight_operand)) `,` $batch attr-dict `:` type($result)
  }];
}

def Nn_TokenIdsOp : Nn_Op<"token_ids", [], [Pure]> {
  let summary = "The token ids of a step as rows";
  let description = [{
    Where a row names a sample of the step before, that is its id.

    ```mlir
    %ids = nn.token_ids %b : tensor<?x1xi32, #nn.rows<token>>
    ```
    [C1] the result has `token` rows, or `entering` ones. [C2] a row is one i32.
  }];
  let names = ["ids"];
  let arguments = (ins Nn_Batch:$batch);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = "$batch attr-dict `:` type($result)";
}

def Nn_LookupOp : Nn_Op<"lookup", ["weight"], [Pure]> {
  let summary = "Look up the embedding of each id";
  let description = [{
    As embed, of ids that are rows.

    ```mlir
    %looked_up = nn.lookup %ids, @embed : tensor<?x1xi32, #nn.rows<token>> -> !x
    ```
    [C2] the table is [vocabulary, width] and width is the result's. [C3] a row of ids is one i32.
  }];
  let names = ["x"];
  let role = "embedding";
  let arguments = (ins Nn_Rows:$ids, OptionalAttr<FlatSymbolRefAttr>:$weight,
                       Optional<Nn_WeightOperand>:$weight_operand);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $ids `,` custom<WeightRef>($weight, $weight_operand, type($weight_operand)) attr-dict
    `:` type($ids) `->` type($result)
  }];
}

def Nn_RmsNormOp : Nn_Op<"rms_norm", ["weight"], [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Root-mean-square normalisation of the last dimension";
  let description = [{
    weight * (x / sqrt(mean(x^2) + eps)) in f32, rounded once. The order of the sum of squares is fixed: 64 interleaved
    chains.

    ```mlir
    %n = nn.rms_norm %x, @ln[%l] eps 1.0e-5 : !x
    ```
    [C2] the weight is a vector as long as the last dimension. [C3] eps is positive.
  }];
  let arguments = (ins Nn_Rows:$input, OptionalAttr<FlatSymbolRefAttr>:$weight,
                       Optional<Nn_WeightOperand>:$weight_operand, F64Attr:$eps);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` custom<WeightRef>($weight, $weight_operand, type($weight_operand)) `eps` custom<Real>($eps) attr-dict
    `:` type($result)
  }];
}

def Nn_LinearOp : Nn_Op<"linear", ["weight", "bias"], [Pure, AttrSizedOperandSegments]> {
  let summary = "Multiply rows by a weight, contracting the last dimension of both";
  let description = [{
    y[r, o...] = sum over k of x[r, k] * W[o..., k] (+ bias[o...]), accumulated in f32 in the declared order and rounded
    once to the result type. A weight of rank three gives a result of rank three (gate and up, or heads).

    ```mlir
    %q0 = nn.linear %n, @q[%l] bias @qb[%l] order tree<8> : !x -> !x
    %k = nn.linear %n, @k[%l] : !x -> !kvh
    ```
    [C2] the weight's columns equal the input's width. [C3] the weight's other dimensions are those of the result. [C4]
    the bias has the result's dimensions. [C5] the input has rank two.
  }];
  let arguments = (ins Nn_Rows:$input, OptionalAttr<FlatSymbolRefAttr>:$weight,
                       Optional<Nn_WeightOperand>:$weight_operand, OptionalAttr<FlatSymbolRefAttr>:$bias,
                       Optional<Nn_WeightOperand>:$bias_operand, OptionalAttr<Nn_TreeAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $input `,` custom<WeightRef>($weight, $weight_operand, type($weight_operand))
    `` custom<OptionalWeightRef>("\"bias\"", $bias, $bias_operand, type($bias_operand))
    `` custom<OptionalAttribute>("\"order\"", $order) attr-dict `:` type($input) `->` type($result)
  }];
  let requiredWeights = 1;
  let reductions = [Reduces<"order", "Contraction", "getInput().getType().getShape().back()">];
  let methods = "bool isLinear() { return true; }";
}

def Nn_AddOp : Nn_Elementwise<"add", [Commutative, AllTypesMatch<["lhs", "rhs", "result"]>]> {
  let summary = "Add two token tensors";
  let description = [{
    One rounded addition an element. Not associative: chains of additions are never reordered.

    ```mlir
    %y = nn.add %x, %o2 : !x
    ```
  }];
  let names = ["sum"];
  let arguments = (ins Nn_Rows:$lhs, Nn_Rows:$rhs);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 0;
}

def Nn_AddPartialsOp : Nn_Elementwise<"add_partials"> {
  let summary = "Add what ranks have of a contraction";
  let description = [{
    Each input is the f32 sum of some leaves of a contraction (N1), of one rank of a tensor-parallel group, in the order
    of the ranks. They are added as a balanced binary tree in f32, and the sum is rounded once to the result type.

    ```mlir
    %y = nn.add_partials %p0, %p1 : tensor<?x64xf32, #tok>, tensor<?x64xf32, #tok> -> tensor<?x64xbf16, #tok>
    ```
    [C2] inputs are f32 and have the columns of the result. [C3] inputs are a power of two, and two or more.
  }];
  let names = ["sum"];
  let arguments = (ins Variadic<Nn_Rows>:$partials);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = "$partials attr-dict `:` type($partials) `->` type($result)";
}

def Nn_ClipOp : Nn_Elementwise<"clip", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Limit every element to [-limit, limit]";
  let description = [{
    An element outside becomes the nearer bound; NaN stays NaN. Published as `clip_qkv` of queries, keys and values.

    ```mlir
    %y8 = nn.clip %y limit 8.0 : !x
    ```
    [C2] the limit is positive.
  }];
  let names = ["clipped"];
  let arguments = (ins Nn_Rows:$input, F64Attr:$limit);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = "$input `limit` $limit attr-dict `:` type($result)";
}

def Nn_GatedActOp : Nn_Elementwise<"gated_act"> {
  let summary = "Gate one half of the columns by the other";
  let description = [{
    Input [rows, 2, inner] holds gate, then up; the result is act(gate) * up.

    ```mlir
    %a = nn.gated_act %g act silu : tensor<?x2x96xf32, #tok> -> tensor<?x96xf32, #tok>
    ```
    [C2] the input has the shape [rows, 2, inner] and the result [rows, inner].
  }];
  let names = ["act"];
  let arguments = (ins Nn_Rows:$input, Nn_ActivationAttr:$act);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = "$input `act` `` $act attr-dict `:` type($input) `->` type($result)";
}

def Nn_RotaryOp : Nn_Op<"rotary", ["table"], [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Rotate pairs of elements by their token's position";
  let description = [{
    Rotates elements [first, first + count) of the last dimension by the table's row of the token's position; the other
    elements are copied. `interleaved` pairs (2j, 2j + 1), `half` pairs (j, j + count / 2).

    ```mlir
    %q = nn.rotary %q1, @rope, %b first 0 count 16 interleaved : !h
    ```
    [C2] first >= 0 and first + count is at most the last dimension. [C3] the table has the shape [positions, 2, count /
    2]. [C4] count is even and not negative. [C5] rows are `token` rows, or `gathered` ones.
  }];
  let names = ["rotated"];
  let arguments = (ins Nn_Rows:$input, OptionalAttr<FlatSymbolRefAttr>:$table,
                       Optional<Nn_WeightOperand>:$table_operand, Nn_Batch:$batch, Nn_Int:$first, Nn_Int:$count,
                       Nn_PairingAttr:$pairing);
  let results = (outs Nn_Rows:$result);
  let hasFolder = 1;
  let assemblyFormat = [{
    $input `,` custom<WeightRef>($table, $table_operand, type($table_operand)) `,` $batch `first` $first `count` $count
    `` $pairing attr-dict `:` type($result)
  }];
}

def Nn_SplitOp : Nn_Op<"split", [], [Pure]> {
  let summary = "View the last dimension as consecutive pieces";
  let description = [{
    A pure view: a row stride and an offset, no copy.

    ```mlir
    %c, %r = nn.split %d : !x -> tensor<?x48xf32, #tok>, tensor<?x16xf32, #tok>
    ```
    [C2] the pieces add up to the last dimension. [C3] the other dimensions and the element type are kept.
  }];
  let names = ["part"];
  let methods = "bool isView() { return true; }";
  let arguments = (ins Nn_Rows:$input);
  let results = (outs Variadic<Nn_Rows>:$pieces);
  let hasCanonicalizer = 1;
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($pieces)";
}

def Nn_ReshapeOp : Nn_Op<"reshape", [], [Pure]> {
  let summary = "View the columns of each row under other dimensions";
  let description = [{
    A pure view: rows stay rows.

    ```mlir
    %q1 = nn.reshape %q0 : !x -> !h
    ```
    [C2] a row keeps its number of elements. [C3] the element type is kept.
  }];
  let names = ["view"];
  let methods = "bool isView() { return true; }";
  let arguments = (ins Nn_Rows:$input);
  let results = (outs Nn_Rows:$result);
  let hasFolder = 1;
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Nn_OutputRowsOp : Nn_Op<"output_rows", [], [Pure]> {
  let summary = "Gather the output rows";
  let description = [{
    ```mlir
    %2 = nn.output_rows %t, %b : !x -> tensor<?x64xf32, #nn.rows<output>>
    ```
    [C1] the input has `token` rows and the result `output` rows. [C2] the columns are kept.
  }];
  let names = ["output"];
  let arguments = (ins Nn_Rows:$input, Nn_Batch:$batch);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = "$input `,` $batch attr-dict `:` type($input) `->` type($result)";
  let changesRows = 1;
}

include "dialects/Nn/NnLayers.td"
include "dialects/Nn/NnState.td"

#endif
