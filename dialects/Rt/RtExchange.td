//===- RtExchange.td - What ranks exchange, and what a rank has -----------===//
//
// Sites, their starts and waits, and the numbers of a step that differ between ranks: rows that arrived, and the layers
// of a stage.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_RT_EXCHANGE
#define K2C_DIALECTS_RT_EXCHANGE

include "dialects/Rt/RtBase.td"

def Rt_CollectiveOp : Rt_Op<"collective", [Symbol]> {
  let summary = "A site at which ranks exchange rows";
  let description = [{
    Every rank of the group comes to the sites of a program in the same order. A member sends rows of `row_bytes`, up to
    `quota` to each other; without a quota the program knows how many come. Of stages, which `send` the rows of the step
    to the next one, the site is that `to` which they go there, and receives them. Ranks of a tensor-parallel group
    carry a slice of a step each: `gather_slices` brings all rows to each of them, `scatter_slices` to each what all
    have of its own.

    ```mlir
    rt.collective @site0 site 0 op all_to_all_rows axis ep members 2 row_bytes 14464 quota 256
    rt.collective @site2 site 2 op receive axis pp members 2 row_bytes 28672
    rt.collective @site3 site 3 op send axis pp members 2 row_bytes 28672 to 2
    rt.collective @site4 site 4 op gather_slices axis tp members 2 row_bytes 28672
    ```
    [C1] the site is not negative. [C2] members and row_bytes are positive, and so is a quota. [C3] a send has a site to
    which it goes, others have none. [C4] what sends and receives is of stages, axis pp, and
    nothing else is; slices are of axis tp, and nothing else is. [C5] a quota is of all_to_all_rows.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Rt_Int:$site, Rt_CollectiveAttr:$op, Rt_AxisAttr:$axis,
                       Rt_Int:$members, Rt_Int:$row_bytes, OptionalAttr<Rt_Int>:$quota, OptionalAttr<Rt_Int>:$to);
  let assemblyFormat = [{
    $sym_name `site` $site `op` `` $op `axis` `` $axis `members` $members `row_bytes` $row_bytes
    (`quota` $quota^)? (`to` $to^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Rt_StageLayersOp : Rt_Op<"stage_layers", [Pure, OpAsmOpInterface]> {
  let summary = "The layers of a run that this rank's stage has";
  let description = [{
    Of layers `first` to `last`, those from `from` to `end`; none where these are equal. Ranks of one stage have the
    same ones.

    ```mlir
    %from, %end = rt.stage_layers 1 to 61
    ```
    [C1] 0 <= first <= last.
  }];
  let arguments = (ins Rt_Int:$first, Rt_Int:$last);
  let results = (outs Index:$from, Index:$end);
  let assemblyFormat = "$first `to` $last attr-dict";
  let extraClassDeclaration = [{
    void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) { set(getFrom(), "from"), set(getEnd(), "end"); }
  }];
  let hasVerifier = 1;
}

def Rt_ArrivedOp : Rt_Value<"arrived", "\"arrived\"", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The rows that came to a site";
  let description = [{
    Of the last wait for it.

    ```mlir
    %n = rt.arrived @site0
    ```
    [C1] the symbol names an rt.collective with a quota.
  }];
  let arguments = (ins FlatSymbolRefAttr:$site);
  let results = (outs I64:$result);
  let assemblyFormat = "$site attr-dict";
}

def Rt_CollectiveStartOp
    : Rt_Op<"collective_start",
            [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>,
             DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Begin the exchange of a site";
  let description = [{
    Sends rows of `source` as the counts `to` say and receives rows into `result`, with counts `from`. Where the step
    counts, slices have no counts: those scattered come to `results`, one for each member. A stage sends the rows of the
    step, or receives them, at `rows`. All launches before it are closed; the buffers are the exchange's up
    to the wait.

    ```mlir
    rt.collective_start @site0 layer %l source %m to %sent result %in from %came
    rt.collective_start @site2 rows %x
    rt.collective_start @site4 layer %l source %m slices %in
    ```
    [C1] the symbol names an rt.collective. [C2] where ranks send to all it has a source, counts and a result, where
    stages send and receive it has rows, where slices travel a source, and slices: one that is gathered, or one for each
    member.
  }];
  let arguments = (ins FlatSymbolRefAttr:$site, Optional<Index>:$layer, Optional<Rt_Ptr>:$source, Optional<Rt_Ptr>:$to,
                       Optional<Rt_Ptr>:$result, Optional<Rt_Ptr>:$from, Optional<Rt_Ptr>:$rows,
                       Variadic<Rt_Ptr>:$slices);
  let assemblyFormat = [{
    $site (`layer` $layer^)? (`source` $source^)? (`to` $to^ `result` $result `from` $from)? (`rows` $rows^)?
    (`slices` $slices^)? attr-dict
  }];
}

def Rt_CollectiveWaitOp
    : Rt_Op<"collective_wait",
            [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Wait for the exchange of a site, all workers";
  let description = [{
    What goes on here is work of the layer that its start names.

    ```mlir
    rt.collective_wait @site0 layer %l
    ```
    [C1] the symbol names an rt.collective.
  }];
  let arguments = (ins FlatSymbolRefAttr:$site, Optional<Index>:$layer);
  let assemblyFormat = "$site (`layer` $layer^)? attr-dict";
}

def Rt_SecondHalfOp : Rt_Op<"second_half", [SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "Do it for the second half of the step";
  let description = [{
    A step in two halves has two arenas. In the region, and in what it calls, the step is the second half and addresses
    of the arena are those of the second one; weights and cache are the same.

    ```mlir
    func.call @moe_layer(%l) : (index) -> ()
    rt.second_half {
      func.call @moe_layer(%l) : (index) -> ()
    }
    ```
    [C1] it takes indices from outside that are arguments of blocks, as those of loops over layers, and nothing else,
    since what was computed there is of the first half.
    [C2] it is not within another one.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasVerifier = 1;
}

#endif
