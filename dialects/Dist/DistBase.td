//===- DistBase.td - The dist dialect, its attributes and types -----------===//
#ifndef K2C_DIALECTS_DIST_BASE
#define K2C_DIALECTS_DIST_BASE

include "mlir/IR/AttrTypeBase.td"
include "dialects/Dist/DistEnums.td"
include "dialects/Nn/NnAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"

def DistDialect : Dialect {
  let name = "dist";
  let summary = "Cluster, plan, and what ranks exchange";
  let description = [{
    The `dist` dialect says on which ranks a program runs, what the planner decided and where rows travel. See
    Rationale.md.
  }];
  let cppNamespace = "::k2c::dist";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The attributes of the module.
    static constexpr ::llvm::StringLiteral planAttrName = "dist.plan", topologyAttrName = "dist.topology";
  }];
}

class Dist_Attr<string name, string attrMnemonic> : AttrDef<DistDialect, name> {
  let mnemonic = attrMnemonic;
}

def Dist_TopologyAttr : Dist_Attr<"Topology", "topology"> {
  let summary = "the cluster a program is compiled for";
  let description = [{
    The name of a topology, the size of the world and how many nodes it has, each of as many ranks in a row, and the
    cores of a rank by NUMA node where there are several. Lies on the module as `dist.topology`.

    ```mlir
    #dist.topology<"two-nodes", ranks = 1, numa = [4, 4]>
    #dist.topology<"cpu4x2", ranks = 8 on 4 nodes>
    ```
    [C1] there is at least one rank. [C2] every NUMA node has cores. [C3] the nodes divide the ranks.
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$ranks, DefaultValuedParameter<"int64_t", "1">:$nodes,
                        OptionalArrayRefParameter<"int64_t">:$numa);
  let assemblyFormat = [{
    `<` $name `,` `ranks` `=` $ranks (`on` $nodes^ `nodes`)? (`,` `numa` `=` `[` $numa^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

def Dist_PlanAttr : Dist_Attr<"Plan", "plan"> {
  let summary = "what the planner decided";
  let description = [{
    Lies on the module as `dist.plan`; every pass after attach-plan reads it and decides nothing of this kind itself.
    `layout`: how ranks divide the work, as `--layout` takes it. `expanded_from`: a prompt segment of at least this many
    new tokens runs expanded where the forms say `table`; 0 = every segment runs expanded, -1 = none. `without`: the
    optional passes that are left out, by the names that `--without` takes. `tile_choice`: which candidate each kernel's
    tile is, by rising cost. `route_limit`: on how many nodes the experts of a token may be in a layer, 0 = on all.
    `locality_penalty`: by how much choices of experts fall that a token's home node has not. `halves_from`: a step of
    which a rank has at least so many token rows goes in two halves, 0 = none; the limits are then those of a half.
    `stages`: the first layer of each stage of ranks, and the end of the last; none where every rank has all layers.

    ```mlir
    #dist.plan<layout = "dp=1", expanded_from = -1, without = ["fusion", "prefetch-weights"], tile_choice = 2>
    #dist.plan<layout = "ep=8,dp=8", expanded_from = -1, route_limit = 2, locality_penalty = 0.25, halves_from = 64>
    #dist.plan<layout = "ep=4,dp=4,pp=2", expanded_from = -1, stages = [0, 31, 61]>
    ```
    [C1] expanded_from is at least -1. [C2] tile_choice is not negative. [C3] `without` holds strings. [C4] route_limit
    is not negative. [C5] a locality_penalty is above 0 and at most 1. [C6] halves_from is not negative. [C7] stages
    are two or more, ascend from 0, and none is empty.
  }];
  let parameters = (ins StringRefParameter<>:$layout, "int64_t":$expanded_from,
                        OptionalParameter<"::mlir::ArrayAttr">:$without,
                        DefaultValuedParameter<"int64_t", "0">:$tile_choice,
                        DefaultValuedParameter<"int64_t", "0">:$route_limit, Nn_OptionalReal:$locality_penalty,
                        DefaultValuedParameter<"int64_t", "0">:$halves_from,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$stages);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Dist_AxisAttr : EnumAttr<DistDialect, Dist_Axis, "axis">;
def Dist_HolderAttr : EnumAttr<DistDialect, Dist_Holder, "holder">;

def Dist_Counts : TypeDef<DistDialect, "Counts", [OpAsmTypeInterface]> {
  let mnemonic = "counts";
  let summary = "rows to or from each member of a group";
  let description = [{
    For each of the members, how many rows, and which of a buffer is the first of them.

    ```mlir
    !dist.counts<members = 8>
    ```
    [C1] there are members.
  }];
  let parameters = (ins "int64_t":$members);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    void getAsmName(::mlir::OpAsmSetNameFn set) const { set("counts"); }
  }];
}

#endif
