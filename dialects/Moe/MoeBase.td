//===- MoeBase.td - The moe dialect, its attributes and types -------------===//
#ifndef K2C_DIALECTS_MOE_BASE
#define K2C_DIALECTS_MOE_BASE

include "dialects/Dist/DistBase.td"
include "dialects/Moe/MoeEnums.td"
include "dialects/Nn/NnOpBase.td"

def MoeDialect : Dialect {
  let name = "moe";
  let summary = "Routing, permutation and combination of experts";
  let description = [{
    The `moe` dialect says which tokens meet which experts and in which order their outputs are added. See Rationale.md.

    In the examples, rows of tokens, logits of the router, chosen experts and their weights, rows of slots, and a
    permutation are

    ```mlir
    #tok = #nn.rows<token>
    !x = tensor<?x64xf32, #tok>
    !s = tensor<?x384xf32, #tok>
    !e = tensor<?x8xi32, #tok>
    !w = tensor<?x8xf32, #tok>
    !slots = tensor<?x64xf32, #nn.rows<slot, 8>>
    !permutation = !moe.permutation<experts = 384, top = 8>
    ```
  }];
  let cppNamespace = "::k2c::moe";
  let dependentDialects = ["::k2c::dist::DistDialect", "::k2c::nn::NnDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

def Moe_ScoringAttr : EnumAttr<MoeDialect, Moe_Scoring, "scoring">;
def Moe_GroupScoreAttr : EnumAttr<MoeDialect, Moe_GroupScore, "group_score">;

def Moe_TreeAttr : AttrDef<MoeDialect, "Tree"> {
  let mnemonic = "tree";
  let summary = "order of a combination of experts (N5)";
  let description = [{
    A balanced binary tree with this many leaves over the expert ids; ascending inside a leaf, absent experts skipped,
    each add rounded to the activation type.

    ```mlir
    %r = moe.unpermute %d, %p, %e order tree<128> : !slots, !permutation, !e -> !x
    ```
    [C1] the number of leaves is a power of two, at most 128.
  }];
  let parameters = (ins "int64_t":$leaves);
  let assemblyFormat = "`<` $leaves `>`";
  let genVerifyDecl = 1;
}

def Moe_BoundAttr : AttrDef<MoeDialect, "Bound"> {
  let mnemonic = "bound";
  let summary = "on which nodes the experts of a token may be";
  let description = [{
    Experts lie in the `slots` slots of each of `nodes` nodes; which are where, the placement says, a value of the
    program's run. `max`: the experts of a token are on at most so many nodes, 0: on any. `penalty`: by how much the
    choice of an expert falls that the token's home node has not.

    ```mlir
    %e3, %w3 = moe.routing %s, %b layer %l among 1 to 61 score sigmoid top 8 groups 1 of 1
        bound<nodes = 4, slots = 96, max = 2, penalty = 0.25> scale 1.0 : !s -> !e, !w
    ```
    [C1] there are several nodes, and they have slots. [C2] `max` is below `nodes`. [C3] a penalty is above 0 and at
    most 1. [C4] there is a limit or a penalty.
  }];
  let parameters = (ins "int64_t":$nodes, "int64_t":$slots, DefaultValuedParameter<"int64_t", "0">:$max,
                        Nn_OptionalReal:$penalty);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Moe_Permutation : TypeDef<MoeDialect, "Permutation", [OpAsmTypeInterface]> {
  let mnemonic = "permutation";
  let summary = "which slot belongs to which token and expert";
  let description = [{
    The stable counting sort of a step's (token, choice) pairs by expert: the first slot of each expert, the token of
    each slot, the slot of each pair. On several ranks that of the at most `max` rows that arrived at a `site`, by the
    experts that the rank holds; a choice may be an expert of another rank.

    ```mlir
    !moe.permutation<experts = 384, top = 8>
    !moe.permutation<experts = 4, top = 8, site = 0, max = 512>
    ```
    [C1] 0 < top, and top <= experts where no rows arrive. [C2] rows of a site have a bound.
  }];
  let parameters = (ins "int64_t":$experts, "int64_t":$top, DefaultValuedParameter<"int64_t", "-1">:$site,
                        DefaultValuedParameter<"int64_t", "-1">:$max);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let builders = [TypeBuilder<(ins "int64_t":$experts, "int64_t":$top), [{
    return $_get($_ctxt, experts, top, -1, -1);
  }]>];
  let extraClassDeclaration = [{
    /// The rows that are sorted, and the slots that they have.
    nn::RowsAttr getRows() const;
    nn::RowsAttr getSlots() const;
    void getAsmName(::mlir::OpAsmSetNameFn set) const { set("permutation"); }
    ::mlir::OpAsmAliasResult getAlias(::llvm::raw_ostream &os) const { return nn::detail::alias(os, "permutation"); }
  }];
}

#endif
