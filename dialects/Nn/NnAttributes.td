//===- NnAttributes.td - Attributes of the nn dialect ---------------------===//
#ifndef K2C_DIALECTS_NN_ATTRIBUTES
#define K2C_DIALECTS_NN_ATTRIBUTES

include "dialects/Nn/NnBase.td"
include "dialects/Nn/NnEnums.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"

class Nn_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<NnDialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Nn_ActivationAttr : EnumAttr<NnDialect, Nn_Activation, "activation">;
def Nn_PairingAttr : EnumAttr<NnDialect, Nn_Pairing, "pairing">;
def Nn_CaptureKindAttr : EnumAttr<NnDialect, Nn_CaptureKind, "capture">;

/// A real number, printed so that it reads back exactly.
def Nn_Real : AttrParameter<"::mlir::FloatAttr", "f64"> {
  let parser = "::k2c::parseReal($_parser)";
  let printer = "::k2c::printReal($_printer, $_self)";
}

/// The same where there may be none.
def Nn_OptionalReal : AttrParameter<"::mlir::FloatAttr", "f64, or null"> {
  let parser = "::k2c::parseReal($_parser)";
  let printer = "::k2c::printReal($_printer, $_self)";
  let defaultValue = "::mlir::FloatAttr()";
}

def Nn_RowsAttr : Nn_Attr<"Rows", "rows", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
                                          DeclareAttrInterfaceMethods<OpAsmAttrInterface, ["getAlias"]>]> {
  let summary = "the row space of dimension 0";
  let description = [{
    Encoding of a token tensor: what its rows are. Two tensors can meet in an op only if their row spaces are equal.
    `token`: rows of the step; `output`: rows of which the step computes logits; `seq`: sequences of the step; `slot`:
    (token, choice) pairs sorted by expert, `per_token` of them for each token. On several ranks: `message`: rows as
    they travel at a collective site; `recv`: the rows that arrived there; `slot` of a site: `per_token` of them for
    each row that arrived; `subtree`: partial sums of experts that go back there; `entering`: rows of the step where
    this rank's stage is the first, none elsewhere; `gathered`: the rows of all ranks of a tensor-parallel group, of
    which each has a slice as its `token` rows. `max` is the bound of the spaces that have no entry in `nn.limits`,
    of slots of a site that of the rows that arrive.

    ```mlir
    tensor<?x64xf32, #nn.rows<output>>
    tensor<?x8xf32, #nn.rows<slot, 8>>
    tensor<?x8xf32, #nn.rows<recv, site = 12, max = 8192>>
    tensor<?x8xf32, #nn.rows<slot, 8, site = 12, max = 8192>>
    ```
    [C1] dimension 0 of a row tensor is dynamic. [C2] `slot` has at least one slot for each token, other spaces have
    none. [C3] spaces of a site have a bound.
  }];
  let parameters = (ins
      EnumParameter<Nn_RowKind>:$kind,
      DefaultValuedParameter<"int64_t", "0", "slots for each token">:$per_token,
      DefaultValuedParameter<"int64_t", "-1", "collective site">:$site,
      DefaultValuedParameter<"int64_t", "-1", "bound in rows">:$max);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "RowKind":$kind), [{ return $_get($_ctxt, kind, 0, -1, -1); }]>];
}

def Nn_LimitsAttr : Nn_Attr<"Limits", "limits"> {
  let summary = "bounds of the row spaces and the context";
  let description = [{
    `token` rows, `seq` sequences and `output` rows of logits of one step (where it is not given, one a sequence),
    `context` positions of a sequence. Where ranks of a tensor-parallel group have slices of a step, `token` rows are
    those of a slice, `of` so many in the step. Lies on the module as `nn.limits`; assign-memory multiplies these
    bounds.

    ```mlir
    #nn.limits<token = 2048, seq = 16, context = 8192, output = 64>
    #nn.limits<token = 512 of 2048, seq = 16, context = 8192, output = 64>
    ```
    [C1] every bound is positive. [C2] a slice has no more rows than the step.
  }];
  let parameters = (ins "int64_t":$token, "int64_t":$seq, "int64_t":$positions,
                        OptionalParameter<"std::optional<int64_t>">:$output,
                        OptionalParameter<"std::optional<int64_t>">:$gathered);
  let assemblyFormat = [{
    `<` `token` `=` $token (`of` $gathered^)? `,` `seq` `=` $seq `,` `context` `=` $positions
    (`,` `output` `=` $output^)? `>`
  }];
  let extraClassDeclaration = [{
    /// The output rows of a step, at most.
    int64_t getOutputRows() const { return getOutput().value_or(getSeq()); }
    /// The rows of a step that attention sees, at most.
    int64_t getStepRows() const { return getGathered().value_or(getToken()); }
  }];
  let genVerifyDecl = 1;
}

def Nn_NumericsAttr : Nn_Attr<"Numerics", "numerics"> {
  let summary = "the numerics id of a program (numerics N0)";
  let description = [{
    The four things the bits of a logit depend on besides checkpoint and tokens. Lies on the module as `nn.numerics`.

    ```mlir
    #nn.numerics<version = 2, compute = f32, mla = phased, class = "f32">
    ```
  }];
  let parameters = (ins "int64_t":$version, EnumParameter<Nn_ComputeType>:$compute, EnumParameter<Nn_MlaForm>:$mla,
                        StringRefParameter<"class of equal bits (N6)">:$bitClass);
  let assemblyFormat = [{
    `<` `version` `=` $version `,` `compute` `=` $compute `,` `mla` `=` $mla `,` `class` `=` $bitClass `>`
  }];
}

def Nn_TreeAttr : Nn_Attr<"Tree", "tree"> {
  let summary = "order of a contraction (N1)";
  let description = [{
    The contraction is cut into this many leaves, each one FMA chain; the leaves merge as a balanced binary tree in f32.

    ```mlir
    %q0 = nn.linear %n, @q[%l] ... order tree<8> : !x -> !x
    ```
    [C1] the number of leaves is 1, 2, 4 or 8.
  }];
  let parameters = (ins "int64_t":$leaves);
  let assemblyFormat = "`<` $leaves `>`";
  let genVerifyDecl = 1;
}

def Nn_SoftmaxAttr : Nn_Attr<"Softmax", "softmax"> {
  let summary = "order of an attention row (N3)";
  let description = [{
    Online softmax over absolute blocks of `block` keys; `split = by_position` restarts it every C(p) keys and merges
    the partials in ascending order.

    ```mlir
    %o0 = nn.attention %q, %kv, %b ... order softmax<block = 64, split = by_position> : !h, !kv -> !h
    ```
    [C1] the block is positive.
  }];
  let parameters = (ins "int64_t":$block, EnumParameter<Nn_SplitRule>:$split);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Nn_BlocksAttr : Nn_Attr<"Blocks", "blocks"> {
  let summary = "block-scaled storage of a weight family";
  let description = [{
    The checkpoint holds elements of type `element` and one `scale` for each block of the last dimensions; the value is
    their product. The family's tensor type stays logical.

    ```mlir
    nn.weights @q ... stored blocks<f8E4M3FN, [128, 128], f32> : tensor<64x64xbf16>
    ```
    [C1] every block dimension is positive.
  }];
  let parameters = (ins "::mlir::Type":$element, ArrayRefParameter<"int64_t">:$block, "::mlir::Type":$scale);
  let assemblyFormat = "`<` $element `,` `[` $block `]` `,` $scale `>`";
  let genVerifyDecl = 1;
}

def Nn_SliceAttr : Nn_Attr<"Slice", "slice"> {
  let summary = "how a family is taken from its source tensor";
  let description = [{
    Read the source tensor as `dims`, keep [`from`, `to`) of dimension `dim`, and swap the last two dimensions if
    `transpose` is given. absorb-mla names W_UK and W_UV this way: no weight is copied to the IR, the packer does the
    work.

    ```mlir
    nn.weights @uk ... view slice<dims = [4, 48, 64], dim = 1, from = 0, to = 32, transpose> : tensor<4x64x32xbf16>
    ```
    [C1] `dim` is one of `dims`. [C2] 0 <= from < to <= dims[dim]. [C3] a transpose needs two dimensions.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$dims, "int64_t":$dim, "int64_t":$from, "int64_t":$to,
                        "bool":$transpose);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The shape of the slice, after the transpose.
    ::llvm::SmallVector<int64_t> getShape() const;
  }];
}

def Nn_IndicesAttr : Nn_Attr<"Indices", "indices"> {
  let summary = "a set of layer or expert indices";
  let description = [{
    The union of ranges `from`, `from + step`, ... below `to`. Layer indices are those of the checkpoint. Layers of one
    kind that alternate with others are a few ranges, however many layers there are.

    ```mlir
    nn.weights @ln ... over (layer = 0 to 3) : tensor<64xbf16>
    nn.weights @dense ... over (layer = 0 to 2 and 3 to 10 step 2) : tensor<64xbf16>
    ```
    [C1] 0 <= from < to. [C2] the step is positive. [C3] no index is in two ranges.
  }];
  let parameters = (ins ArrayRefParameter<"::k2c::IndexRange">:$ranges);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "int64_t":$from, "int64_t":$to), [{
    return $_get($_ctxt, ::k2c::IndexRange{from, to, 1});
  }]>];
  let extraClassDeclaration = [{
    /// Number of indices.
    int64_t size() const;
    /// Position of `index` in the ascending list of the indices, or -1.
    int64_t ordinal(int64_t index) const;
    /// The ranges as a value.
    ::k2c::IndexSet set() const { return ::k2c::IndexSet(getRanges().begin(), getRanges().end()); }
  }];
}

def Nn_DomainAttr : Nn_Attr<"Domain", "domain"> {
  let summary = "one index of a family: `layer = 0 to 61`";
  let description = [{
    ```mlir
    nn.weights @experts ... over (layer = 1 to 3, expert = 0 to 384) : tensor<384x2x96x64xbf16>
    ```
  }];
  let parameters = (ins StringRefParameter<>:$name, "::k2c::nn::IndicesAttr":$indices);
  let assemblyFormat = "`<` $name `,` $indices `>`";
}

def Nn_PlaneAttr : Nn_Attr<"Plane", "plane"> {
  let summary = "one plane of a cache pool: `latent = 512 x f32`";
  let description = [{
    What one token of one layer leaves in the plane.

    ```mlir
    nn.pool @cache ... planes (k = 2 x 16 x f32, v = 2 x 16 x f32) page 64 group 0
    ```
    [C1] every dimension is positive.
  }];
  let parameters = (ins StringRefParameter<>:$name, ArrayRefParameter<"int64_t">:$dims, "::mlir::Type":$element);
  let assemblyFormat = "`<` $name `,` `[` $dims `]` `,` $element `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Elements a token.
    int64_t getWidth() const;
  }];
}

def Nn_LayerRunAttr : Nn_Attr<"LayerRun", "run"> {
  let summary = "layer functions and the indices they serve in turn: `@moe_layer[1 to 61]`";
  let description = [{
    Layer `from` + i is served by callee i modulo their number, so that a model whose kinds of layers take turns has one
    run for all of them, whatever its depth. The last turn may end early.

    ```mlir
    %1 = nn.layers %0, %b [@dense_layer[0 to 1], @moe_layer[1 to 3]] : !x
    %t = nn.layers %1, %b [@dense_layer[0 to 1], (@moe_layer, @moe_layer, @dense_layer)[1 to 9]] : !x
    ```
    [C1] 0 <= from < to. [C2] there is a callee, and an index for each.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::FlatSymbolRefAttr", "layer functions">:$callees, "int64_t":$from,
                        "int64_t":$to);
  let assemblyFormat = "`<` `[` $callees `]` `,` $from `,` $to `>`";
  let extraClassDeclaration = [{
    /// Layers that the callee number `turn` serves.
    int64_t callsOf(size_t turn) const {
      auto first = getFrom() + static_cast<int64_t>(turn);
      return ::k2c::IndexRange{first, getTo(), static_cast<int64_t>(getCallees().size())}.size();
    }
  }];
  let genVerifyDecl = 1;
}

def Nn_YarnAttr : Nn_Attr<"Yarn", "yarn"> {
  let summary = "YaRN scaling of rotary frequencies";
  let description = [{
    `magnitude` multiplies cos and sin. Frequencies between the two betas are interpolated; `truncate` rounds the ends
    of the ramp to whole dimensions.

    ```mlir
    #nn.yarn<factor = 32.0, original = 4096, beta_fast = 1.0, beta_slow = 1.0, magnitude = 1.0, truncate = true>
    ```
  }];
  let parameters = (ins Nn_Real:$factor, "int64_t":$original, Nn_Real:$beta_fast, Nn_Real:$beta_slow,
                        Nn_Real:$magnitude, "bool":$truncate);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Nn_Llama3Attr : Nn_Attr<"Llama3", "llama3"> {
  let summary = "Llama 3.1 scaling of rotary frequencies";
  let description = [{
    ```mlir
    #nn.llama3<factor = 8.0, low = 1.0, high = 4.0, original = 8192>
    ```
  }];
  let parameters = (ins Nn_Real:$factor, Nn_Real:$low, Nn_Real:$high, "int64_t":$original);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Nn_LinearScalingAttr : Nn_Attr<"LinearScaling", "linear_scaling"> {
  let summary = "positions divided by a factor";
  let description = [{
    ```mlir
    #nn.linear_scaling<factor = 4.0>
    ```
  }];
  let parameters = (ins Nn_Real:$factor);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Nn_FrequenciesAttr : Nn_Attr<"Frequencies", "frequencies"> {
  let summary = "the angles of rotated pairs at position 1, as published";
  let description = [{
    ```mlir
    #nn.frequencies<[1.0, 0.25]>
    ```
  }];
  let parameters = (ins "::mlir::DenseF32ArrayAttr":$values);
  let assemblyFormat = "`<` $values `>`";
}

def Nn_RopeAttr : Nn_Attr<"Rope", "rope"> {
  let summary = "the rotary table: frequencies of `dims` rotated dimensions";
  let description = [{
    inv_freq[j] = theta^(-2j / dims), changed by `scaling` (#nn.yarn, #nn.llama3 or #nn.linear_scaling), or those
    that it has (#nn.frequencies). The table has the shape [positions, 2, dims / 2]: cos, then sin.

    ```mlir
    nn.constant_table @rope4 rope<theta = 1.0e4, dims = 16, scaling = #nn.linear_scaling<factor = 4.0>> : ...
    ```
    [C1] `dims` is positive and even.
    [C2] #nn.frequencies has one of each pair of dims.
  }];
  let parameters = (ins Nn_Real:$theta, "int64_t":$dims, OptionalParameter<"::mlir::Attribute">:$scaling);
  let assemblyFormat = "`<` `theta` `=` $theta `,` `dims` `=` $dims (`,` `scaling` `=` $scaling^)? `>`";
  let genVerifyDecl = 1;
}

#endif
