//===- KernOps.td - The kern dialect --------------------------------------===//
#ifndef K2C_DIALECTS_KERN_OPS
#define K2C_DIALECTS_KERN_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Kern/KernEnums.td"

def KernDialect : Dialect {
  let name = "kern";
  let summary = "Fused kernels: what they compute and how they are tiled";
  let description = [{
    A kernel is a region of nn, moe and mla ops plus a tile attribute; evaluate, cost and emit all read it. A call names
    the weights of its layer and, after assign-memory, the arena offsets of its results. See Rationale.md.

    Functions of kernel calls carry the peak of their arena in the attribute `mem.peak` (bytes, i64) after
    assign-memory.
  }];
  let cppNamespace = "::k2c::kern";
  let useDefaultAttributePrinterParser = 1;
}

def Kern_TileAttr : AttrDef<KernDialect, "Tile"> {
  let mnemonic = "tile";
  let summary = "how a kernel is computed";
  let description = [{
    The target's vocabulary and f32 lanes of a vector; `mr` x `nr` (rows x vectors) of the register tile; contraction
    steps that a tile alone fetches its panel ahead; rows computed together (0: all); for attention, heads an item
    takes, parts of its values and the tokens of the largest step whose sequences are split over workers. No field may
    change a bit of the result.

    ```mlir
    #kern.tile<avx512, lanes = 16, mr = 14, nr = 2, prefetch = 16, rows_block = 256, head_tile = 1, value_parts = 1>
    ```
    [C1] prefetch, rows_block and split_tokens are not negative, all other numbers are positive.
  }];
  let parameters = (ins EnumParameter<Kern_Vocabulary>:$vocabulary, "int64_t":$lanes, "int64_t":$mr, "int64_t":$nr,
                        "int64_t":$prefetch, "int64_t":$rows_block, "int64_t":$head_tile, "int64_t":$value_parts,
                        DefaultValuedParameter<"int64_t", "0">:$split_tokens);
  let assemblyFormat = [{
    `<` $vocabulary `,` `lanes` `=` $lanes `,` `mr` `=` $mr `,` `nr` `=` $nr `,` `prefetch` `=` $prefetch `,`
    `rows_block` `=` $rows_block `,` `head_tile` `=` $head_tile `,` `value_parts` `=` $value_parts
    (`,` `split_tokens` `=` $split_tokens^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Kern_WeightAttr : AttrDef<KernDialect, "Weight"> {
  let mnemonic = "weight";
  let summary = "a weight argument of a call: `@w[%l]`, or `@w` if not layered";
  let description = [{
    ```mlir
    #kern.weight<@w, true>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$family, "bool":$layered);
  let assemblyFormat = "`<` $family `,` $layered `>`";
}

class Kern_Op<string mnemonic, list<Trait> traits = []> : Op<KernDialect, mnemonic, traits>;

def Kern_FuncOp : Kern_Op<"func", [IsolatedFromAbove, FunctionOpInterface, Symbol, OpAsmOpInterface]> {
  let summary = "A fused kernel";
  let description = [{
    The region computes results from operands; weights are block arguments of the logical tensor type, so one kernel
    serves all layers. `tile` says how it is computed and is absent until it is chosen.

    ```mlir
    kern.func @k_qa(%x: !x, %ln: tensor<64xf32>, %w: tensor<48x64xbf16>) -> !a
        tile<avx512, lanes = 16, mr = 14, nr = 2, prefetch = 16, rows_block = 256, head_tile = 1, value_parts = 1> {
      %h = nn.rms_norm %x, %ln : tensor<64xf32> eps 1.0e-06 : !x
      %a = nn.linear %h, %w : tensor<48x64xbf16> order tree<1> : !x -> !a
      kern.yield %a : !a
    }
    ```
    [C1] the region holds only ops that say their fusion role. [C2] the yield has the function's result types.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<Kern_TileAttr>:$tile, OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type)>];
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    /// Arguments are printed as %x (rows), %w (weights), %l (the layer) or as their type says.
    void getAsmBlockArgumentNames(::mlir::Region &region, ::mlir::OpAsmSetValueNameFn set);
  }];
}

def Kern_YieldOp : Kern_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"FuncOp">]> {
  let summary = "The results of a kernel";
  let description = [{
    ```mlir
    kern.yield %a : !a
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
}

def Kern_CallOp : Kern_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, OpAsmOpInterface]> {
  let summary = "Run a kernel";
  let description = [{
    Arguments are values, or weights of the layer the call names. `at` gives the arena offset of each result in bytes,
    after assign-memory. The trailing types are those of the value arguments and of the results.

    Workers meet after a call before any of them begins the next. After an `open` call they do not: it and the calls up
    to the next that is not open are a group, and run at the same time.

    ```mlir
    %a = kern.call open @k_qa(%x, @ln1[%l], @qa[%l]) at [4096] : (!x) -> !a
    %c = kern.call @k_kva(%x, @ln1[%l], @kva[%l]) at [8192] : (!x) -> !c
    ```
    [C1] the callee is a kern.func. [C2] the call has as many arguments as the kernel. [C3] argument and result types
    are the kernel's. [C4] `at` has one offset for each result, none negative and all multiples of 64. [C5] bindings
    take exactly the operands. [C6] an open call has another call behind it in its block.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$operands, ArrayAttr:$bindings,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets, UnitAttr:$open);
  let results = (outs Variadic<AnyType>:$outputs);
  let hasVerifier = 1;
  let assemblyFormat = [{
    (`open` $open^)? $callee `` custom<CallArguments>($operands, type($operands), $bindings, type($outputs), $offsets)
    attr-dict
  }];
  let extraClassDeclaration = [{
    /// One argument of the kernel: a value, or a weight and its layer index (null if it has none).
    struct Argument {
      ::k2c::kern::WeightAttr weight;
      ::mlir::Value value;
    };
    /// The arguments in the kernel's order.
    ::llvm::SmallVector<Argument> getCallArguments();
    /// The first result is printed as the kernel without `k_`.
    void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) {
      if (getNumResults())
        set(getResult(0), getCallee().starts_with("k_") ? getCallee().drop_front(2) : getCallee());
    }
  }];
}

#endif
