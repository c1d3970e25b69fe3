//===- KernEnums.td - Enumerations of the kern dialect --------------------===//
#ifndef K2C_DIALECTS_KERN_ENUMS
#define K2C_DIALECTS_KERN_ENUMS

include "mlir/IR/EnumAttr.td"

def Kern_InstructionSet : I32Enum<"InstructionSet", "the instruction set that a kernel is written in", [
    I32EnumCase<"Generic", 0, "generic">, I32EnumCase<"Avx512", 1, "avx512">]> {
  let cppNamespace = "::k2c::kern";
}

def Kern_WeightLayout : I32Enum<"WeightLayout", "how the matrices of kernels lie in memory", [
    I32EnumCase<"Panels", 0, "panels">, I32EnumCase<"Rows", 1, "rows">]> {
  let cppNamespace = "::k2c::kern";
}

#endif
