//===- DistOps.td - The dist dialect --------------------------------------===//
//
// Cluster and plan as attributes. The collectives of programs of several ranks are not in this version: a program of
// one rank has none.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_DIST_OPS
#define K2C_DIALECTS_DIST_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def DistDialect : Dialect {
  let name = "dist";
  let summary = "Cluster, placement and plan";
  let description = [{
    The `dist` dialect says on which ranks a program runs and what the planner decided. See Rationale.md.
  }];
  let cppNamespace = "::k2c::dist";
  let useDefaultAttributePrinterParser = 1;
}

class Dist_Attr<string name, string attrMnemonic> : AttrDef<DistDialect, name> {
  let mnemonic = attrMnemonic;
}

def Dist_TopologyAttr : Dist_Attr<"Topology", "topology"> {
  let summary = "the cluster a program is compiled for";
  let description = [{
    The name of a topology and the size of the world. Lies on the module as `dist.topology`.

    ```mlir
    #dist.topology<"host", ranks = 1>
    ```
    [C1] there is at least one rank.
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$ranks);
  let assemblyFormat = "`<` $name `,` `ranks` `=` $ranks `>`";
  let genVerifyDecl = 1;
}

def Dist_LayoutAttr : Dist_Attr<"Layout", "layout"> {
  let summary = "how ranks divide the work";
  let description = [{
    Data-parallel, expert-parallel and pipeline-parallel sizes.

    ```mlir
    #dist.layout<dp = 1, ep = 1, pp = 1>
    ```
    [C1] every size is positive.
  }];
  let parameters = (ins "int64_t":$dp, "int64_t":$ep, "int64_t":$pp);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Dist_MemoryAttr : Dist_Attr<"Memory", "memory"> {
  let summary = "predicted bytes of one rank";
  let description = [{
    ```mlir
    #dist.memory<weights = 1048576, cache = 65536, arena = 32768, reserve = 0>
    ```
    [C1] no size is negative.
  }];
  let parameters = (ins "int64_t":$weights, "int64_t":$cache, "int64_t":$arena, "int64_t":$reserve);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Dist_PlanAttr : Dist_Attr<"Plan", "plan"> {
  let summary = "what the planner decided";
  let description = [{
    Lies on the module as `dist.plan`; every pass after attach-plan reads it and decides nothing of this kind itself.
    `expanded_from`: a prompt segment of at least this many new tokens runs expanded where the forms say `table`; 0 =
    always, -1 = never. Times are predicted nanoseconds.

    ```mlir
    #dist.plan<layout = #dist.layout<dp = 1, ep = 1, pp = 1>, expanded_from = 64,
               memory = #dist.memory<weights = 1048576, cache = 65536, arena = 32768, reserve = 0>,
               prefill_ns = 1000000, decode_ns = 20000>
    ```
    [C1] expanded_from is at least -1. [C2] no time is negative.
  }];
  let parameters = (ins "::k2c::dist::LayoutAttr":$layout, "int64_t":$expanded_from, "::k2c::dist::MemoryAttr":$memory,
                        "int64_t":$prefill_ns, "int64_t":$decode_ns);
  let assemblyFormat = [{
    `<` `layout` `=` qualified($layout) `,` `expanded_from` `=` $expanded_from `,` `memory` `=` qualified($memory) `,`
    `prefill_ns` `=` $prefill_ns `,` `decode_ns` `=` $decode_ns `>`
  }];
  let genVerifyDecl = 1;
}

#endif
