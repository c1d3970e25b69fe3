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
    /// The rows that it takes: what it carries, then what it only reads.
    ::llvm::ArrayRef<::mlir::BlockArgument> getRows() { return getBody().getArguments().drop_front().drop_back(); }
    /// What it carries on; the next layer takes what is yielded for each.
    ::llvm::ArrayRef<::mlir::BlockArgument> getCarried() { return getRows().take_front(getResultTypes().size()); }
    ::mlir::OperandRange getYielded() { return getBody().front().getTerminator()->getOperands(); }
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

def Nn_LayersOp : Nn_Op<"layers", [], [AttrSizedOperandSegments, SymbolUserOpInterface, Nn_SharedPlaceOp],
                        /*inKernel=*/0> {
  let summary = "Run layers over their indices";
  let description = [{
    Calls each run's layers for its indices in turn. What one carries, the next takes; result i is what the last layer
    carries as value i, and lies in its place. What stands behind `reads` every layer is given as it is; the step is the
    last of it. A list of runs keeps the module's size independent of the number of layers; dense-first and alternating
    models are data. Where ranks are stages, each calls those `of_stage`: its own part of the list.

    ```mlir
    %1 = nn.layers %0, %b [@dense_layer[0 to 1], @moe_layer[1 to 3]] : !x
    %own = nn.layers %1, %b [@dense_layer[0 to 1], @moe_layer[1 to 9]] of_stage : !x
    %t = nn.layers %1, %b [@dense_layer[0 to 1], (@moe_layer, @moe_layer, @dense_layer)[1 to 9]] : !x
    %2:2 = nn.layers %t, %y reads %w, %b [@two[0 to 4]] : !x, !y reads !w
    ```
    [C1] it carries at least one value, and its results have the types of what it carries; each keeps its row space.
    [C2] runs are not empty and ascend without a gap. [C3] each function is an nn.layer of type
    (index, carried.., read.., !nn.batch) -> carried. [C4] it stands in no layer: lists do not nest.
  }];
  let names = ["x"];
  let changesRows = 1; // its values may be of several row spaces
  let arguments = (ins Variadic<Nn_Rows>:$carried, Variadic<Nn_Rows>:$read, Nn_Batch:$batch,
                       TypedArrayAttrBase<Nn_LayerRunAttr, "layer runs">:$runs, UnitAttr:$of_stage);
  let results = (outs Variadic<Nn_Rows>:$outputs);
  let assemblyFormat = [{
    custom<LayerOperands>($carried, $read, $batch) custom<LayerRuns>($runs) (`of_stage` $of_stage^)?
    attr-dict `:` custom<LayerTypes>(type($carried), type($read), type($outputs))
  }];
  let methods = [{
    ::llvm::LogicalResult verifySymbolUses(::mlir::SymbolTableCollection &tables);
    /// Of all runs, in their order; a function may occur several times.
    ::llvm::SmallVector<::mlir::FlatSymbolRefAttr> getCallees();
    ::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>> getSharedPlaces();
    /// What is carried, then what is read: getRows() of its layers takes these.
    ::mlir::OperandRange getRows() { return getOperands().drop_back(); }
  }];
}

#endif
