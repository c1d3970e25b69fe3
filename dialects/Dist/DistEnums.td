//===- DistEnums.td - Enumerations of the dist dialect --------------------===//
#ifndef K2C_DIALECTS_DIST_ENUMS
#define K2C_DIALECTS_DIST_ENUMS

include "mlir/IR/EnumAttr.td"

/// The numbers are those of k2rt/program.h.
def Dist_Axis : I32Enum<"Axis", "in what the ranks of a group differ", [I32EnumCase<"Ep", 4, "ep">]> {
  let cppNamespace = "::k2c::dist";
}

#endif
