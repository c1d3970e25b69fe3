//===- DistEnums.td - Enumerations of the dist dialect --------------------===//
#ifndef K2C_DIALECTS_DIST_ENUMS
#define K2C_DIALECTS_DIST_ENUMS

include "mlir/IR/EnumAttr.td"

/// The numbers are those of k2rt/program.h.
def Dist_Axis : I32Enum<"Axis", "in what the ranks of a group differ", [
  I32EnumCase<"Etp", 3, "etp">, I32EnumCase<"Ep", 4, "ep">, I32EnumCase<"Node", 7, "node">,
  I32EnumCase<"Rail", 8, "rail">, I32EnumCase<"Stage", 9, "stage">
]> {
  let cppNamespace = "::k2c::dist";
}

def Dist_Holder : I32Enum<"Holder", "who holds experts: a part of a rank, a rank, all of a node, all of the topology", [
  I32EnumCase<"Part", 0, "part">, I32EnumCase<"Rank", 1, "rank">, I32EnumCase<"Node", 2, "node">,
  I32EnumCase<"World", 3, "world">
]> {
  let cppNamespace = "::k2c::dist";
}

#endif
