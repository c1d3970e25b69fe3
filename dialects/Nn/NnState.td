//===- NnState.td - Attention, the cache and the step's outputs -----------===//
//
// Included by NnOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_NN_STATE
#define K2C_DIALECTS_NN_STATE

def Nn_AppendOp : Nn_Op<"append", [], [MemoryEffects<[MemRead, MemWrite]>, Nn_StateOp, SymbolUserOpInterface]> {
  let summary = "Store the step's keys and values in the cache";
  let description = [{
    Writes each token's row at its append slot of the pool's group in planes `k` and `v` and returns the view attention
    reads: what was cached before and this step's rows, as stored (N3).

    ```mlir
    %kv = nn.append @cache[%l], %k1, %k, %b : !kvh, !kvh -> !kv
    %kv1 = nn.append @recent[%l], %k1, %k, %b : !kvh, !kvh -> !kv1
    ```
    [C1] rows are `token` rows, or `gathered` ones. [C2] keys and values are [rows, heads, dims] as the view says. [C3]
    the pool has planes `k` and `v` of these dimensions and of the view's element type. [C4] the view is of the pool's
    group.
  }];
  let names = ["kv"];
  let arguments = (ins FlatSymbolRefAttr:$pool, Index:$layer, Nn_Rows:$keys, Nn_Rows:$values, Nn_Batch:$batch);
  let results = (outs Nn_KvView:$view);
  let assemblyFormat = [{
    $pool `[` $layer `]` `,` $keys `,` $values `,` $batch attr-dict
    `:` type($keys) `,` type($values) `->` qualified(type($view))
  }];
  let methods = [{
    ::mlir::FlatSymbolRefAttr getStatePool() { return getPoolAttr(); }
    ::llvm::LogicalResult verifySymbolUses(::mlir::SymbolTableCollection &tables);
  }];
}

def Nn_AttentionOp : Nn_Op<"attention", [], [MemoryEffects<[MemRead]>]> {
  let summary = "Causal grouped-query attention over a cache view";
  let description = [{
    Query head h reads key-value head h / (heads / kv heads). A query sees its own key and those that the view's group
    holds before it; with `window` n, a query at position p sees keys above p - n. The order of the row is declared by
    `order` (N3).

    ```mlir
    %o0 = nn.attention %q, %kv, %b scale 2.5e-1 order softmax<block = 64, split = by_position> : !h, !kv -> !h
    %o1 = nn.attention %q, %kv, %b scale 2.5e-1 window 128 : !h, !kv -> !h
    ```
    [C2] query heads are a multiple of the view's heads. [C3] query dims equal key dims. [C4] the result is [rows, query
    heads, value dims]. [C5] the window is positive. [C6] rows are `token` rows, or `gathered` ones.
  }];
  let arguments = (ins Nn_Rows:$query, Nn_KvView:$view, Nn_Batch:$batch, F64Attr:$scale, OptionalAttr<Nn_Int>:$window,
                       OptionalAttr<Nn_SoftmaxAttr>:$order);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = [{
    $query `,` $view `,` $batch `scale` custom<Real>($scale) (`window` $window^)?
    `` custom<OptionalAttribute>("\"order\"", $order) attr-dict
    `:` type($query) `,` qualified(type($view)) `->` type($result)
  }];
  let reductions = [Reduces<"order", "Softmax", "0">];
}

def Nn_CaptureOp : Nn_Op<"capture", [], [MemoryEffects<[MemWrite]>]> {
  let summary = "Copy rows to the step's capture buffer if there is one";
  let description = [{
    `embed` captures what enters the first layer, `hidden` what leaves layer `layer`.

    ```mlir
    nn.capture %d, %b hidden layer %l : !x
    nn.capture %0, %b embed : !x
    ```
    [C2] `hidden` has a layer, `embed` has none. [C3] rows are `token` rows, those of `embed` may be `entering` ones.
  }];
  let arguments = (ins Nn_Rows:$input, Nn_Batch:$batch, Nn_CaptureKindAttr:$kind, Optional<Index>:$layer);
  let assemblyFormat = "$input `,` $batch `` $kind (`layer` $layer^)? attr-dict `:` type($input)";
}

def Nn_BlockArgmaxOp : Nn_Op<"block_argmax", [], [Pure]> {
  let summary = "The id of the largest logit in each block of columns";
  let description = [{
    The first half of a greedy choice that many workers share: a row is long, and rows are few. NaN is no candidate, the
    lowest id is first among equals, and a block of NaN alone has -1 (N7). The last block of a row may be shorter.

    ```mlir
    %best = nn.block_argmax %3 block 96
        : tensor<?x512xf32, #nn.rows<output>> -> tensor<?x6xi32, #nn.rows<output>>
    ```
    [C1] both have `output` rows. [C2] the logits are f32 and of rank two. [C3] the block is positive. [C4] the result
    is an i32 for each block.
  }];
  let names = ["best"];
  let arguments = (ins Nn_Rows:$logits, Nn_Int:$block);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = "$logits `block` $block attr-dict `:` type($logits) `->` type($result)";
}

def Nn_GreedySampleOp : Nn_Op<"greedy_sample", [], [MemoryEffects<[MemWrite]>]> {
  let summary = "Take the largest logit of each output row as its sample";
  let description = [{
    The second half: of the ids that the blocks of a row have left, the one of the largest logit becomes the row's
    sample in the step, -1 where all are NaN.

    ```mlir
    nn.greedy_sample %best of %3, %b
        : tensor<?x6xi32, #nn.rows<output>>, tensor<?x512xf32, #nn.rows<output>>
    ```
    [C1] both have `output` rows. [C2] the logits are f32 and of rank two. [C3] what blocks have left is i32, and no
    more of a row than it has logits.
  }];
  let arguments = (ins Nn_Rows:$best, Nn_Rows:$logits, Nn_Batch:$batch);
  let assemblyFormat = "$best `of` $logits `,` $batch attr-dict `:` type($best) `,` type($logits)";
}

def Nn_SampleOp : Nn_Op<"sample", [], [MemoryEffects<[MemRead, MemWrite]>], /*inKernel=*/0> {
  let summary = "Sample the next token of each output row";
  let description = [{
    Hands the logits to the step and draws with the step's sampling parameters (N7). Rows that nn.greedy_sample has
    taken samples for keep them where they are greedy.

    ```mlir
    nn.sample %3, %b : tensor<?x512xf32, #nn.rows<output>>
    ```
    [C1] the logits have `output` rows. [C2] the logits are f32 and of rank two.
  }];
  let arguments = (ins Nn_Rows:$logits, Nn_Batch:$batch);
  let assemblyFormat = "$logits `,` $batch attr-dict `:` type($logits)";
}

#endif
