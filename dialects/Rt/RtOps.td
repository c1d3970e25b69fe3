//===- RtOps.td - The ops of the rt dialect -------------------------------===//
//
// The exit dialect: one op for each thing generated host code can do. Structs and entries are those of
// runtime/include/k2rt (abi.def, program.h). The step function is a func.func of rt, scf and arith ops.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_RT_OPS
#define K2C_DIALECTS_RT_OPS

include "dialects/Rt/RtExchange.td"

//===----------------------------------------------------------------------===//
// Tables: what the program is made of
//===----------------------------------------------------------------------===//

def Rt_ProgramOp : Rt_Op<"program", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The program's entries and sizes";
  let description = [{
    What k2c_program_query answers with: the functions that a step may enter, by name; bytes of the arena, bytes of
    scratch of each worker. A program of latent attention says from how many new tokens on a prompt's segment runs
    expanded; -1: none does. Where steps may go in two halves, the arena of the second begins at `second`.

    ```mlir
    rt.program @kimi entries {serve = @step} arena 671088640 scratch 1048576 expanded_from 64
    ```
    [C1] no size is negative, expanded_from is at least -1. [C2] there are entries, and each names a function that takes
    nothing. [C3] each function of the module has a body and returns nothing. [C4] no function calls an entry, or
    itself, directly or through others. [C5] `second` is half of the arena; it is there if a function does something for
    the second half of a step.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DictionaryAttr:$entries, Rt_Int:$arena_bytes, Rt_Int:$scratch_bytes,
                       OptionalAttr<Rt_Int>:$expanded_from, OptionalAttr<Rt_Int>:$second);
  let assemblyFormat = [{
    $sym_name `entries` $entries `arena` $arena_bytes (`second` $second^)? `scratch` $scratch_bytes
    (`expanded_from` $expanded_from^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Rt_WeightSlotsOp : Rt_Op<"weight_slots", [Symbol]> {
  let summary = "The weight slots of one family";
  let description = [{
    Slots `first`, `first` + 1, ... hold the packed weights of the `count` layers of `family`, ascending, in `layout`;
    one slot takes `bytes`. A family that is not layered has one slot, one that is read in two layouts two sets of
    slots. `share` says how a launch cuts a slot among workers: `items` of `item_bytes` (k2rt/share.h); without it all
    workers read all of it. Routed `experts` are so many matrices, each with that share and at an address of its own:
    the slot is a table of these. Where ranks of a tensor-parallel group have `parts` of a weight, each layer has a slot
    for each part, one behind the other, `bytes` is of a part, and a rank reads its own. Of ranks in stages, what enters
    at the first one, and what computes output rows, reads slots that only those `on` the first or the last stage have.

    ```mlir
    rt.weight_slots @qa.panels of @qa first 12 count 3 bytes 8192
        layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> share items 2 item_bytes 4096
    rt.weight_slots @head.panels of @head first 17 count 1 bytes 8192
        layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> on last share items 2 item_bytes 4096
    rt.weight_slots @up.panels of @up first 18 count 1 bytes 24576
        layout #rt.panels<bf16, matrices = 8, n = 24, k = 48> experts 8 share items 1 item_bytes 3072
    rt.weight_slots @o.panels of @o first 19 count 3 bytes 8192
        layout #rt.panels<bf16, matrices = 1, n = 48, k = 64> parts 2 share items 2 item_bytes 4096
    ```
    [C1] first is not negative, count and bytes are positive. [C2] items and item_bytes are positive. [C3] experts
    are as many as the layout's matrices. [C4] parts are two or more.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$family, Rt_Int:$first, Rt_Int:$count, Rt_Int:$bytes,
                       Rt_Layout:$layout, OptionalAttr<Rt_Int>:$parts, OptionalAttr<Rt_StageEndAttr>:$stage,
                       OptionalAttr<Rt_Int>:$experts, OptionalAttr<Rt_Int>:$items, OptionalAttr<Rt_Int>:$item_bytes);
  let assemblyFormat = [{
    $sym_name `of` $family `first` $first `count` $count `bytes` $bytes `layout` $layout
    (`parts` $parts^)? (`on` `` $stage^)? (`experts` $experts^)? (`share` `items` $items^ `item_bytes` $item_bytes)?
    attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Behind its last slot.
    int64_t getEnd() { return getFirst() + getCount() * getParts().value_or(1); }
  }];
}

def Rt_PlaneTableOp : Rt_Op<"plane_table", [Symbol]> {
  let summary = "One plane of a cache pool";
  let description = [{
    Plane `index` of the program, with one page array of `layer_bytes` bytes for each of the pool's `count` layers:
    `pages` pages of `width` elements a token. Planes of one `group` share block tables
    and lengths.

    ```mlir
    rt.plane_table @cache.latent index 0 count 3 plane "latent" width 512 x f32 pages 64 group 0 layer_bytes 8388608
    ```
    [C1] index, group and layer_bytes are not negative, count, width and pages are positive.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Rt_Int:$index, Rt_Int:$count, StrAttr:$plane, Rt_Int:$width,
                       TypeAttr:$element, Rt_Int:$pages, Rt_Int:$group, Rt_Int:$layer_bytes);
  let assemblyFormat = [{
    $sym_name `index` $index `count` $count `plane` $plane `width` $width `x` $element `pages` $pages `group` $group
    `layer_bytes` $layer_bytes attr-dict
  }];
  let hasVerifier = 1;
}

def Rt_KernelOp : Rt_Op<"kernel", [Symbol]> {
  let summary = "A kernel of the program";
  let description = [{
    The kernel number, the symbol of its code, which is made of the hash of its description, and its variants. A kernel
    that `streams` an argument reads it from end to end: grid item i reads its bytes [(i mod items) * bytes, + bytes).
    `cost` is what a launch computes and moves, as the manifest states it (CostRule of k2c/Kernels/Cost.h). `touches`
    says what the kernel does to each argument (k2c/Kernels/Effect.h); without it, it may do anything to all of them.

    ```mlir
    rt.kernel @linear_qb id 4 hash "9a40" variants ["gemv"] streams 1 items 24 bytes 6144 cost {rows = "token"}
    rt.kernel @add id 5 hash "77c1" variants ["all"] touches ["reads|by_row", "reads|by_row", "writes|by_row"]
    ```
    [C1] the id is not negative. [C2] a streamed argument has a number that is not negative, and positive items and
    bytes. [C3] what it does to an argument is a list of words of Touch.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Rt_Int:$id, StrAttr:$hash, StrArrayAttr:$variants,
                       OptionalAttr<Rt_Int>:$streams, OptionalAttr<Rt_Int>:$items, OptionalAttr<Rt_Int>:$bytes,
                       OptionalAttr<DictionaryAttr>:$cost, OptionalAttr<StrArrayAttr>:$touches);
  let assemblyFormat = [{
    $sym_name `id` $id `hash` $hash `variants` $variants (`streams` $streams^ `items` $items `bytes` $bytes)?
    (`cost` $cost^)? (`touches` $touches^)? attr-dict
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

def Rt_ArenaOp : Rt_Value<"arena", "\"p\""> {
  let summary = "An address in the arena";
  let description = [{
    Of a value that takes at most `bytes` from `offset` on, the address behind the first `skip` of them: a kernel may
    work on columns of a value.

    ```mlir
    %x = rt.arena 4096 bytes 6144
    %k = rt.arena 4096 bytes 6144 skip 64
    ```
    [C1] the offset and bytes are not negative. [C2] some of the bytes are skipped, and not all.
  }];
  let arguments = (ins Rt_Int:$offset, Rt_Int:$bytes, OptionalAttr<Rt_Int>:$skip);
  let results = (outs Rt_Ptr:$result);
  let assemblyFormat = "$offset `bytes` $bytes (`skip` $skip^)? attr-dict";
  let hasVerifier = 1;
}

def Rt_WeightOp : Rt_Value<"weight", "getFamily()", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The packed weights of a family in a layer";
  let description = [{
    The base address of slot first + ordinal, the position of the layer among the family's; without one, of slot first.
    Of routed experts, it is that of their table.

    ```mlir
    %e = rt.weight @embed.rows
    %w = rt.weight @qa.panels[%l]
    ```
    [C1] the symbol names rt.weight_slots. [C2] a family of several slots needs an ordinal.
  }];
  let arguments = (ins FlatSymbolRefAttr:$family, Optional<Index>:$ordinal);
  let results = (outs Rt_Ptr:$result);
  let assemblyFormat = "$family (`[` $ordinal^ `]`)? attr-dict";
}

def Rt_PlaneOp : Rt_Value<"plane", "getPlane()", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The page array of a cache plane in a layer";
  let description = [{
    The ordinal is the position of the layer among the pool's.

    ```mlir
    %p = rt.plane @cache.latent[%l]
    ```
    [C1] the symbol names an rt.plane_table.
  }];
  let arguments = (ins FlatSymbolRefAttr:$plane, Index:$ordinal);
  let results = (outs Rt_Ptr:$result);
  let assemblyFormat = "$plane `[` $ordinal `]` attr-dict";
}

def Rt_PlacementOp : Rt_Value<"placement", "stringifyPart(getPart())"> {
  let summary = "Where the experts of a layer are";
  let description = [{
    A part of the layer's table of k2rt/placement.h, for `experts` experts and the `slots` of all ranks: the places of
    experts for tokens of this rank; the experts that `holder` holds in its `count` slots, this rank, its node or the
    world; the subtrees that holders of this kind have whole, for each expert. The ordinal is the position of the
    layer among those with experts.

    ```mlir
    %p = rt.placement[%l] experts 384 slots 384 places of rank count 769
    %h = rt.placement[%l] experts 384 slots 384 held of rank count 48
    %s = rt.placement[%l] experts 384 slots 384 subtrees of node count 384
    ```
    [C1] experts are positive and not more than the slots. [C2] what is held divides the slots, and is all of them where
    the world holds it.
  }];
  let arguments = (ins Index:$ordinal, Rt_Int:$experts, Rt_Int:$slots, Rt_PartAttr:$part, Rt_HolderAttr:$holder,
                       Rt_Int:$count);
  let results = (outs Rt_Ptr:$result);
  let assemblyFormat = [{
    `[` $ordinal `]` `experts` $experts `slots` $slots `` $part `of` `` $holder `count` $count attr-dict
  }];
  let hasVerifier = 1;
}

def Rt_StepOp : Rt_Value<"step", "\"step\""> {
  let summary = "The step struct";
  let description = [{
    Of all ranks of a tensor-parallel group where it is `gathered`.

    ```mlir
    %s = rt.step
    %s1 = rt.step gathered
    ```
  }];
  let arguments = (ins UnitAttr:$gathered);
  let results = (outs Rt_Step:$result);
  let assemblyFormat = "(`gathered` $gathered^)? attr-dict";
}

def Rt_LogitsOp : Rt_Value<"logits", "\"logits\""> {
  let summary = "The step's logits buffer";
  let description = [{
    ```mlir
    %o = rt.logits
    ```
  }];
  let results = (outs Rt_Ptr:$result);
  let assemblyFormat = "attr-dict";
}

def Rt_ShareOp : Rt_Op<"share", [Pure, OpAsmOpInterface]> {
  let summary = "What a worker reads first of a streamed argument";
  let description = [{
    The addresses [from, end) of the first bytes that this worker's part of a launch over `grid` reads of an argument
    that its kernel streams, in `items` of `bytes`; not more than `max` bytes, none when it has no items.

    ```mlir
    %from, %end = rt.share %e grid(%g) items 24 bytes 6144 max 262144
    ```
    [C1] items and bytes are positive. [C2] `max` is not negative.
  }];
  let arguments = (ins Rt_Ptr:$argument, I64:$grid, Rt_Int:$items, Rt_Int:$bytes, Rt_Int:$max);
  let results = (outs Rt_Ptr:$from, Rt_Ptr:$end);
  let assemblyFormat = "$argument `grid` `(` $grid `)` `items` $items `bytes` $bytes `max` $max attr-dict";
  let extraClassDeclaration = [{
    void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) { set(getFrom(), "from"), set(getEnd(), "end"); }
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

def Rt_RowsOp : Rt_Value<"rows", "\"rows\""> {
  let summary = "A row count of the step";
  let description = [{
    ```mlir
    %t = rt.rows token
    ```
  }];
  let arguments = (ins Rt_CountAttr:$count);
  let results = (outs I64:$result);
  let assemblyFormat = "`` $count attr-dict";
}

def Rt_GridOp : Rt_Value<"grid", "\"grid\""> {
  let summary = "The items of a launch";
  let description = [{
    ceil(rows * slots / rows_per_item) * items.

    ```mlir
    %g = rt.grid %t slots 8 rows_per_item 64 items 24
    ```
    [C1] all three factors are positive.
  }];
  let arguments = (ins I64:$rows, Rt_Int:$slots, Rt_Int:$rows_per_item, Rt_Int:$items);
  let results = (outs I64:$result);
  let assemblyFormat = "$rows `slots` $slots `rows_per_item` $rows_per_item `items` $items attr-dict";
  let hasVerifier = 1;
}

def Rt_LaunchOp : Rt_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Run a kernel on the thread pool";
  let description = [{
    Every worker runs the kernel on its share of the grid's items; the launch ends with a barrier, unless it is
    `nowait`: then each worker goes on to the next launch. Arguments are addresses, the step or integers (passed as the
    pointer's value), operands first, then results. The kernel takes the rows that came to site `in` for those of the
    step, and so do those that work on `gathered` rows with what all ranks of a tensor-parallel group have.

    ```mlir
    rt.launch nowait @linear_qb grid(%g) args(%x, %w) : !rt.ptr, !rt.ptr
    rt.launch @unpack in @site0 grid(%g) args(%x, %w) : !rt.ptr, !rt.ptr
    rt.launch @attention gathered grid(%g) args(%x, %w) : !rt.ptr, !rt.ptr
    rt.launch @linear_qa grid(%g) args(%x, %w, %p, %s, %l, %o) : !rt.ptr, !rt.ptr, !rt.ptr, !rt.step, index, !rt.ptr
    ```
    [C1] the symbol names an rt.kernel. [C2] nothing but addresses, counts and rt.prefetch is between a nowait launch
    and the next launch of its block. [C3] the argument that the kernel streams is there, and an address. [C4] `in`
    names an rt.collective with a quota. [C5] rows that came to a site are not gathered. [C6] arguments are as many as
    the kernel says what it does to.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, I64:$grid, Variadic<AnyTypeOf<[Rt_Ptr, Rt_Step, I64, Index]>>:$args,
                       OptionalAttr<FlatSymbolRefAttr>:$arrived, UnitAttr:$gathered, UnitAttr:$nowait);
  let assemblyFormat = [{
    (`nowait` $nowait^)? $kernel (`in` $arrived^)? (`gathered` $gathered^)?
    `grid` `(` $grid `)` `args` `(` $args `)` attr-dict `:` type($args)
  }];
  let hasVerifier = 1;
}

def Rt_PrefetchOp : Rt_Op<"prefetch", [MemoryEffects<[MemWrite]>]> {
  let summary = "Name the bytes that a waiting worker fetches";
  let description = [{
    From here to the next rt.prefetch, a worker that waits for others at a barrier brings [from, end) nearer instead of
    doing nothing. It changes when bytes arrive in a cache, never what is computed.

    ```mlir
    rt.prefetch %from, %end
    ```
  }];
  let arguments = (ins Rt_Ptr:$from, Rt_Ptr:$end);
  let assemblyFormat = "$from `,` $end attr-dict";
}

def Rt_SampleOp : Rt_Op<"sample", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Run the sampler on the step's logits";
  let description = [{
    ```mlir
    rt.sample
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif
