//===- NnLayers.td - Layers, and lists of them ----------------------------===//
//
// Included by NnOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_NN_LAYERS
#define K2C_DIALECTS_NN_LAYERS

def Nn_LayerOp : Op<NnDialect, "layer", [IsolatedFromAbove, FunctionOpInterface, Symbol, OpAsmOpInterface]> {
  let summary = "A kind of layer";
  let description = [{
    A function of the layer's index, of what it carries on to the next layer, of what it only reads, and of the step. It
    yields what it carries, in the order of its arguments. The list that names it (nn.layers) says for which indices it
    runs.

    ```mlir
    nn.layer @moe_layer(%layer: index, %x: !x, %b: !nn.batch) -> !x {
      %n = nn.rms_norm %x, @ln[%layer] eps 1.0e-05 : !x
      %y = nn.add %x, %n : !x
      nn.yield %y : !x
    }
    ```
    [C1] its arguments are an index, rows and the step; its results have the types of the first of these rows, and are
    at least one. [C2] the yield has the types of the results.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type)>];
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Value getIndex() { return getBody().getArgument(0); }
    ::mlir::Value getBatch() { return getBody().getArguments().back(); }
    /// The rows that it carries on; result i is the next layer's argument i of these.
    ::llvm::ArrayRef<::mlir::BlockArgument> getCarried() { return getBody().getArguments().slice(1, getResultTypes().size()); }
    /// The rows that it only reads.
    ::llvm::ArrayRef<::mlir::BlockArgument> getRead() {
      return getBody().getArguments().drop_front(1 + getResultTypes().size()).drop_back();
    }
    /// Arguments are printed as %layer, %x (carried), %read, or as their type says.
    void getAsmBlockArgumentNames(::mlir::Region &region, ::mlir::OpAsmSetValueNameFn set);
  }];
}

def Nn_YieldOp : Op<NnDialect, "yield", [Pure, Terminator, ReturnLike, HasParent<"LayerOp">]> {
  let summary = "What a layer carries on to the next";
  let description = [{
    ```mlir
    nn.yield %y : !x
    ```
  }];
  let arguments = (ins Variadic<Nn_Rows>:$operands);
  let assemblyFormat = "$operands attr-dict `:` type($operands)";
}

def Nn_LayersOp : Nn_Op<"layers", [],
                        [AllTypesMatch<["input", "result"]>, SymbolUserOpInterface, Nn_SharedPlaceOp],
                        /*inKernel=*/0> {
  let summary = "Run layers over their indices";
  let description = [{
    Calls each run's functions for its layer indices in turn: x = f(layer, x, batch). A list of runs keeps the module's
    size independent of the number of layers; dense-first and alternating models are data.

    ```mlir
    %1 = nn.layers %0, %b [@dense_layer[0 to 1], @moe_layer[1 to 3]] : !x
    %t = nn.layers %1, %b [@dense_layer[0 to 1], (@moe_layer, @moe_layer, @dense_layer)[1 to 9]] : !x
    ```
    [C2] runs are not empty and ascend without a gap. [C3] each function is an nn.layer of type (index, X, !nn.batch) ->
    X.
  }];
  let names = ["x"];
  let arguments = (ins Nn_Rows:$input, Nn_Batch:$batch, TypedArrayAttrBase<Nn_LayerRunAttr, "layer runs">:$runs);
  let results = (outs Nn_Rows:$result);
  let assemblyFormat = "$input `,` $batch custom<LayerRuns>($runs) attr-dict `:` type($result)";
  let methods = "::llvm::LogicalResult verifySymbolUses(::mlir::SymbolTableCollection &tables);\n"
                "/// Of all runs, in their order; a function may occur several times.\n"
                "::llvm::SmallVector<::mlir::FlatSymbolRefAttr> getCallees();\n"
                "::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>> getSharedPlaces() {"
                " return {{getResult(), getInput()}}; }\n";
}

#endif
