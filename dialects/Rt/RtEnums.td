//===- RtEnums.td - Enumerations of the rt dialect ------------------------===//
#ifndef K2C_DIALECTS_RT_ENUMS
#define K2C_DIALECTS_RT_ENUMS

include "mlir/IR/EnumAttr.td"

def Rt_Count : I32Enum<"Count", "a row count of the step", [
    I32EnumCase<"Token", 0, "token">, I32EnumCase<"Output", 1, "output">, I32EnumCase<"Seq", 2, "seq">,
    I32EnumCase<"Entering", 3, "entering">, I32EnumCase<"Gathered", 4, "gathered">]> {
  let cppNamespace = "::k2c::rt";
}

/// The numbers are those of k2rt/program.h.
def Rt_Collective : I32Enum<"Collective", "what ranks do at a site", [
    I32EnumCase<"Send", 5, "send">, I32EnumCase<"Receive", 6, "receive">,
    I32EnumCase<"AllToAllRows", 9, "all_to_all_rows">, I32EnumCase<"GatherSlices", 12, "gather_slices">,
    I32EnumCase<"ScatterSlices", 13, "scatter_slices">]> {
  let cppNamespace = "::k2c::rt";
}

def Rt_StageEnd : I32Enum<"StageEnd", "a stage of ranks that has what others have not", [
    I32EnumCase<"First", 0, "first">, I32EnumCase<"Last", 1, "last">]> {
  let cppNamespace = "::k2c::rt";
}

/// The numbers are those of k2rt/program.h.
def Rt_Axis : I32Enum<"Axis", "in what the ranks of a group differ", [
    I32EnumCase<"Tp", 1, "tp">, I32EnumCase<"Etp", 3, "etp">, I32EnumCase<"Ep", 4, "ep">, I32EnumCase<"Pp", 5, "pp">,
    I32EnumCase<"Node", 7, "node">, I32EnumCase<"Rail", 8, "rail">, I32EnumCase<"Stage", 9, "stage">]> {
  let cppNamespace = "::k2c::rt";
}

def Rt_Part : I32Enum<"Part", "of a layer's placement", [
    I32EnumCase<"Places", 0, "places">, I32EnumCase<"Held", 1, "held">, I32EnumCase<"Subtrees", 2, "subtrees">]> {
  let cppNamespace = "::k2c::rt";
}

def Rt_Holder : I32Enum<"Holder", "who holds experts: a part of a rank, a rank, all of a node, all of the topology", [
    I32EnumCase<"Part", 0, "part">, I32EnumCase<"Rank", 1, "rank">, I32EnumCase<"Node", 2, "node">,
    I32EnumCase<"World", 3, "world">]> {
  let cppNamespace = "::k2c::rt";
}

/// Effect of k2c/Kernels/Effect.h, which says what these mean.
def Rt_Touch : I32BitEnum<"Touch", "what a kernel does to an argument", [
    I32BitEnumCaseNone<"None", "none">,
    I32BitEnumCaseBit<"Reads", 0, "reads">, I32BitEnumCaseBit<"Writes", 1, "writes">,
    I32BitEnumCaseBit<"ByRow", 2, "by_row">, I32BitEnumCaseBit<"InAnyOrder", 3, "in_any_order">,
    I32BitEnumCaseBit<"Expanded", 4, "expanded">, I32BitEnumCaseBit<"Absorbed", 5, "absorbed">,
    I32BitEnumCaseBit<"Hidden", 6, "hidden">, I32BitEnumCaseBit<"Experts", 7, "experts">,
    I32BitEnumCaseBit<"Weights", 8, "weights">, I32BitEnumCaseBit<"MaxLogit", 9, "max_logit">,
    I32BitEnumCaseBit<"Samples", 10, "samples">]> {
  let cppNamespace = "::k2c::rt";
}

#endif
