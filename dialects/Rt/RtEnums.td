//===- RtEnums.td - Enumerations of the rt dialect ------------------------===//
#ifndef K2C_DIALECTS_RT_ENUMS
#define K2C_DIALECTS_RT_ENUMS

include "mlir/IR/EnumAttr.td"

def Rt_Count : I32Enum<"Count", "a row count of the step", [
    I32EnumCase<"Token", 0, "token">, I32EnumCase<"Output", 1, "output">, I32EnumCase<"Seq", 2, "seq">]> {
  let cppNamespace = "::k2c::rt";
}

#endif
