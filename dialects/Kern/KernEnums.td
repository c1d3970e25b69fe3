//===- KernEnums.td - Enumerations of the kern dialect --------------------===//
#ifndef K2C_DIALECTS_KERN_ENUMS
#define K2C_DIALECTS_KERN_ENUMS

include "mlir/IR/EnumAttr.td"

def Kern_Vocabulary : I32Enum<"Vocabulary", "the target's instructions a kernel is written in", [
    I32EnumCase<"Generic", 0, "generic">, I32EnumCase<"Avx512", 1, "avx512">]> {
  let cppNamespace = "::k2c::kern";
}

#endif
