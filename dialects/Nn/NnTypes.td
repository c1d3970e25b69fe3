//===- NnTypes.td - Types of the nn dialect -------------------------------===//
#ifndef K2C_DIALECTS_NN_TYPES
#define K2C_DIALECTS_NN_TYPES

include "dialects/Nn/NnBase.td"
include "mlir/IR/AttrTypeBase.td"

class Nn_Type<string name, string typeMnemonic, list<Trait> traits = []> : TypeDef<NnDialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Nn_Batch : Nn_Type<"Batch", "batch", [OpAsmTypeInterface]> {
  let summary = "the step";
  let description = [{
    What a program is entered with: token ids, positions, sequence rows, segment forms, block tables, output rows,
    sampling parameters, forced routes and capture buffers of one ragged step.
  }];
  let builderCall = "::k2c::nn::BatchType::get($_builder.getContext())";
  let extraClassDeclaration = "void getAsmName(::mlir::OpAsmSetNameFn set) const { set(\"b\"); }";
}

def Nn_KvView : Nn_Type<"KvView", "kv_view", [OpAsmTypeInterface]> {
  let summary = "keys and values of the step's sequences in one layer's cache";
  let description = [{
    The result of `nn.append`: what was cached before and what this step added. Keys have `heads` x `key_dims`, values
    `heads` x `value_dims` elements a token. Block table and lengths are those of cache group `group`, 0 if it is not
    written.

    ```mlir
    !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
    !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32, group = 1>
    ```
    [C1] keys and values have equal head counts. [C2] every dimension is positive. [C3] the group is not negative.
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$key_dims, "int64_t":$value_dims, "::mlir::Type":$element,
                        "int64_t":$group);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    void getAsmName(::mlir::OpAsmSetNameFn set) const { set("kv"); }
    ::mlir::OpAsmAliasResult getAlias(::llvm::raw_ostream &os) const { return nn::detail::alias(os, "kv"); }
  }];
}

#endif
