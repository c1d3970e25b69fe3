//===- NnSymbols.td - Weight families, tables, cache pools ----------------===//
#ifndef K2C_DIALECTS_NN_SYMBOLS
#define K2C_DIALECTS_NN_SYMBOLS

include "dialects/Nn/NnAttributes.td"
include "dialects/Nn/NnTypes.td"

class Nn_Symbol<string mnemonic, list<Trait> traits = []> : Op<NnDialect, mnemonic, [Symbol] # traits>;

def Nn_WeightsOp : Nn_Symbol<"weights"> {
  let summary = "A family of weights";
  let description = [{
    The tensors of a checkpoint that play one role, indexed by layer (and expert). `source` is the checkpoint's name
    with `{layer}` and `{expert}` to be replaced and `{a|b}` for alternatives that are stacked. The type is the logical
    tensor of ONE layer: experts first, alternatives second, then the tensor's own dimensions. `stored` says that the
    checkpoint holds scaled blocks; `view` that the tensor is a slice of the source. A family without a layer domain is
    referenced `@w`, one with it `@w[%l]`.

    ```mlir
    nn.weights @q "model.layers.{layer}.self_attn.q_proj.weight" over (layer = 0 to 3)
        stored blocks<f8E4M3FN, [128, 128], f32> : tensor<64x64xbf16>
    nn.weights @experts "model.layers.{layer}.mlp.experts.{expert}.{gate_proj|up_proj}.weight"
        over (layer = 1 to 3, expert = 0 to 384) : tensor<384x2x96x64xbf16>
    ```
    Layers need not be consecutive: `over (layer = 0 to 4 and 5 to 61 step 2)`. The ordinal of a layer in its family is
    its position in the ascending list of the family's layers.

    On several ranks each holds a part of the experts: references are of the `held` experts of a rank, whichever these
    are, and the type stays that of all.

    ```mlir
    nn.weights @divided "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight"
        over (layer = 1 to 3, expert = 0 to 384) held 48 : tensor<384x96x64xbf16>
    ```
    Each rank of a tensor-parallel group has one of equal `parts` of dimension `along`, and references are of a part:

    ```mlir
    nn.weights @o "model.layers.{layer}.self_attn.o_proj.weight" over (layer = 0 to 3)
        parts 2 along 1 : tensor<64x2048xbf16>
    ```

    [C1] `source` has a placeholder for each domain and no other. [C2] dimension 0 counts the experts. [C3] the next
    dimension counts the alternatives. [C4] the type is static. [C5] `view` yields the type's own dimensions. [C6] a
    block has as many dimensions as it divides: no more than the tensor's own. [C7] a rank holds at least one of several
    experts. [C8] parts are two or more, and divide dimension `along`, which counts neither experts nor alternatives.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$source, TypedArrayAttrBase<Nn_DomainAttr, "domains">:$domains,
                       OptionalAttr<Nn_BlocksAttr>:$storage, OptionalAttr<Nn_SliceAttr>:$view,
                       OptionalAttr<Nn_Int>:$held, OptionalAttr<Nn_Int>:$parts, OptionalAttr<Nn_Int>:$along,
                       TypeAttrOf<AnyRankedTensor>:$type);
  let assemblyFormat = [{
    $sym_name $source `` custom<Domains>($domains) `` custom<OptionalAttribute>("\"stored\"", $storage)
    `` custom<OptionalAttribute>("\"view\"", $view) (`held` $held^)?
    (`parts` $parts^ `along` $along)? attr-dict `:` $type
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The logical tensor of one layer.
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
    /// The indices of the domain called `name`, or null.
    ::k2c::nn::IndicesAttr getDomain(::llvm::StringRef name);
    /// True if references carry a layer index.
    bool isLayered() { return static_cast<bool>(getDomain("layer")); }
    /// Dimensions of the type before those of one tensor: experts, alternatives.
    int64_t getLeadingDims();
    /// The alternatives of `{a|b}`, empty if there are none.
    ::llvm::SmallVector<::llvm::StringRef> getAlternatives();
  }];
}

def Nn_ConstantTableOp : Nn_Symbol<"constant_table"> {
  let summary = "A table computed at compile time";
  let description = [{
    Referenced like a weight without layers. The rotary table has the shape [positions, 2, dims / 2]: cos, then sin.

    ```mlir
    nn.constant_table @plain rope<theta = 1.0e4, dims = 16> : tensor<8192x2x8xf32>
    ```
    [C1] the shape is [positions, 2, dims / 2]. [C2] the elements are f32.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Nn_RopeAttr:$table, TypeAttrOf<AnyRankedTensor>:$type);
  let assemblyFormat = "$sym_name custom<Attribute>($table) attr-dict `:` $type";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
  }];
}

def Nn_PoolOp : Nn_Symbol<"pool"> {
  let summary = "A cache pool";
  let description = [{
    Pages of `page` tokens for each layer of the domain, divided into named planes. All pools of one `group` share block
    tables and lengths: they hold the same tokens of a sequence. Those of another group may hold others.

    ```mlir
    nn.pool @cache over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
    nn.pool @recent over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 1
    ```
    [C1] the pool has one domain, `layer`. [C2] there is at least one plane and plane names differ. [C3] the page is a
    positive multiple of 64. [C4] the group is not negative.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedArrayAttrBase<Nn_DomainAttr, "domains">:$domains,
                       TypedArrayAttrBase<Nn_PlaneAttr, "planes">:$planes, Nn_Int:$page, Nn_Int:$group);
  let assemblyFormat = [{
    $sym_name `` custom<Domains>($domains) custom<Planes>($planes) `page` $page `group` $group attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The layers.
    ::k2c::nn::IndicesAttr getLayers();
    /// The plane called `name`, or null.
    ::k2c::nn::PlaneAttr getPlane(::llvm::StringRef name);
  }];
}

#endif
