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
include "dialects/Nn/NnBase.td"
include "dialects/Nn/NnInterfaces.td"

def KernDialect : Dialect {
  let name = "kern";
  let summary = "Fused kernels: what they compute and how they are tiled";
  let description = [{
    A kernel is a region of nn, moe and mla ops plus a tile attribute; evaluate, cost and emit all read it. A call names
    the weights of its layer and, after assign-memory, the arena offsets of its results. See Rationale.md.

    What the program is compiled for lies on the module as `kern.target`: `#kern.cpu` or `#kern.gpu`.

    In the examples, rows of 64 and of 48 elements are

    ```mlir
    #tok = #nn.rows<token>
    !x = tensor<?x64xf32, #tok>
    !a = tensor<?x48xf32, #tok>
    ```
  }];
  let cppNamespace = "::k2c::kern";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The module's target.
    static constexpr ::llvm::StringLiteral targetAttrName = "kern.target";
  }];
}

def Kern_CpuAttr : AttrDef<KernDialect, "Cpu"> {
  let mnemonic = "cpu";
  let summary = "a processor that a program is compiled for";
  let description = [{
    LLVM's name, the cores that share a launch, the data caches of a core in bytes, and the features that a machine must
    have; lanes and registers of a vector follow from these. `weights` is the layout in which its kernels read matrices
    (k2c/Kernels/WeightLayout.h). Lies on the module as `kern.target`.

    ```mlir
    #kern.cpu<"x86-64-v4", cores = 8, l1 = 49152, l2 = 2097152, features = ["avx2", "avx512f"]>
    ```
    [C1] cores and sizes are positive. [C2] every feature is a string.
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$cores, "int64_t":$l1, "int64_t":$l2,
                        "::mlir::ArrayAttr":$features,
                        DefaultValuedParameter<"::k2c::kern::WeightLayout", "WeightLayout::Panels">:$weights);
  let assemblyFormat = [{
    `<` $name `,` `cores` `=` $cores `,` `l1` `=` $l1 `,` `l2` `=` $l2 `,` `features` `=` $features
    (`,` `weights` `=` $weights^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Kern_GpuAttr : AttrDef<KernDialect, "Gpu"> {
  let mnemonic = "gpu";
  let summary = "a GPU that a program is compiled for";
  let description = [{
    NVIDIA's name of the architecture and the multiprocessors; threads of a CTA, the workers that they are, and the CTAs
    of a launch, at most. `host` is the processor that runs the step function, `weights` the layout in which kernels
    read matrices. Lies on the module as `kern.target`.

    ```mlir
    #kern.gpu<"sm_90a", sms = 132, threads = 128, workers = 4, ctas = 264,
              host = <"x86-64-v3", cores = 1, l1 = 32768, l2 = 1048576, features = ["avx2", "fma"]>>
    ```
    [C1] all numbers are positive. [C2] workers divide threads.
  }];
  let parameters = (ins StringRefParameter<>:$arch, "int64_t":$sms, "int64_t":$threads, "int64_t":$workers,
                        "int64_t":$ctas, "::k2c::kern::CpuAttr":$host,
                        DefaultValuedParameter<"::k2c::kern::WeightLayout", "WeightLayout::Panels">:$weights);
  let assemblyFormat = [{
    `<` $arch `,` `sms` `=` $sms `,` `threads` `=` $threads `,` `workers` `=` $workers `,` `ctas` `=` $ctas `,`
    `host` `=` $host (`,` `weights` `=` $weights^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Kern_TileAttr : AttrDef<KernDialect, "Tile"> {
  let mnemonic = "tile";
  let summary = "how a kernel is computed";
  let description = [{
    The target's instruction set and f32 lanes of a vector; `mr` x `nr` (rows x vectors) of the register tile;
    contraction steps that a tile alone fetches its panel ahead; rows computed together (0: all); for attention, heads
    an item takes, parts of its values and the tokens of the largest step whose sequences are split over workers;
    `weights`, the layout of its matrices. No field may change a bit of the result.

    ```mlir
    kern.func @linear_qa(...) -> !a
        tile<avx512, lanes = 16, mr = 14, nr = 2, prefetch = 16, rows_block = 256, head_tile = 1, value_parts = 1> {
    ```
    [C1] prefetch, rows_block and split_tokens are not negative, all other numbers are positive.
  }];
  let parameters = (ins EnumParameter<Kern_InstructionSet>:$instruction_set, "int64_t":$lanes, "int64_t":$mr,
                        "int64_t":$nr, "int64_t":$prefetch, "int64_t":$rows_block, "int64_t":$head_tile,
                        "int64_t":$value_parts,
                        DefaultValuedParameter<"int64_t", "0">:$split_tokens,
                        DefaultValuedParameter<"::k2c::kern::WeightLayout", "WeightLayout::Panels">:$weights);
  let assemblyFormat = [{
    `<` $instruction_set `,` `lanes` `=` $lanes `,` `mr` `=` $mr `,` `nr` `=` $nr `,` `prefetch` `=` $prefetch `,`
    `rows_block` `=` $rows_block `,` `head_tile` `=` $head_tile `,` `value_parts` `=` $value_parts
    (`,` `split_tokens` `=` $split_tokens^)? (`,` `weights` `=` $weights^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Kern_WeightAttr : AttrDef<KernDialect, "Weight"> {
  let mnemonic = "weight";
  let summary = "a weight argument of a call: `@w[%l]`, or `@w` if not layered";
  let description = [{
    ```mlir
    %0 = kern.call @linear_qa(%x, @ln[%l], @qa[%l]) ...
    %1 = kern.call @linear_qa(%x, %ln, @one) ...
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
    kern.func @linear_qa(%x: !x, %ln: tensor<64xf32>, %w: tensor<48x64xbf16>) -> !a
        tile<avx512, lanes = 16, mr = 14, nr = 2, prefetch = 16, rows_block = 256, head_tile = 1, value_parts = 1> {
      %h = nn.rms_norm %x, %ln : tensor<64xf32> eps 1.0e-05 : !x
      %a = nn.linear %h, %w : tensor<48x64xbf16> order tree<1> : !x -> !a
      kern.yield %a : !a
    }
    ```
    [C1] the region holds only ops that stand in kernels (KernelOp). [C2] the yield has the function's result types.
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

def Kern_CallOp
    : Kern_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, OpAsmOpInterface, Nn_PlacedOp]> {
  let summary = "Run a kernel";
  let description = [{
    Arguments are values, or weights of the layer the call names. `at` gives the arena offset of each result in bytes,
    after assign-memory. The trailing types are those of the value arguments and of the results.

    Workers meet after a call before any of them begins the next. After a `nowait` call they do not: it and the calls up
    to the next that is not nowait are a group, and run at the same time.

    ```mlir
    %0 = kern.call @linear_qa(%x, @ln[%l], @qa[%l]) at [4096] : (!x) -> !a
    kern.call nowait @capture(%x, %b) : (!x, !nn.batch) -> ()
    kern.call @capture(%x, %b) : (!x, !nn.batch) -> ()
    ```
    [C1] the callee is a kern.func. [C2] the call has as many arguments as the kernel. [C3] argument and result types
    are the kernel's. [C4] `at` has one offset for each result, none negative and all multiples of 64. [C5] bindings
    take exactly the operands. [C6] a nowait call has another call behind it in its block. [C7] `partials`, where split
    attention keeps what its workers merge, is a multiple of 64 that is not negative.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$operands, ArrayAttr:$bindings,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets, OptionalAttr<Nn_Int>:$partials, UnitAttr:$nowait);
  let results = (outs Variadic<AnyType>:$outputs);
  let hasVerifier = 1;
  let assemblyFormat = [{
    (`nowait` $nowait^)? $callee ``
    custom<CallArguments>($operands, type($operands), $bindings, type($outputs), $offsets)
    (`partials` $partials^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// One argument of the kernel: a value, or a weight and its layer index (null if it has none).
    struct Argument {
      ::k2c::kern::WeightAttr weight;
      ::mlir::Value value;
    };
    /// The arguments in the kernel's order.
    ::llvm::SmallVector<Argument> getCallArguments();
    /// The first result is printed as the kernel.
    void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) {
      if (getNumResults())
        set(getResult(0), getCallee());
    }
  }];
}

#endif
