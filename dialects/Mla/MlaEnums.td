//===- MlaEnums.td - Enumerations of the mla dialect ----------------------===//
#ifndef K2C_DIALECTS_MLA_ENUMS
#define K2C_DIALECTS_MLA_ENUMS

include "mlir/IR/EnumAttr.td"

def Mla_Form : I32Enum<"Form", "how a segment is evaluated (N4)", [
    I32EnumCase<"Absorbed", 0, "absorbed">, I32EnumCase<"Expanded", 1, "expanded">, I32EnumCase<"Table", 2, "table">]> {
  let cppNamespace = "::k2c::mla";
}

#endif
