//===- MoeEnums.td - Enumerations of the moe dialect ----------------------===//
#ifndef K2C_DIALECTS_MOE_ENUMS
#define K2C_DIALECTS_MOE_ENUMS

include "mlir/IR/EnumAttr.td"

class Moe_Enum<string name, string summary, list<EnumCase> cases> : I32Enum<name, summary, cases> {
  let cppNamespace = "::k2c::moe";
}

def Moe_Scoring : Moe_Enum<"Scoring", "how router logits become scores", [
    I32EnumCase<"Sigmoid", 0, "sigmoid">, I32EnumCase<"Softmax", 1, "softmax">]>;

def Moe_GroupScore : Moe_Enum<"GroupScore", "how a group of experts is scored", [
    I32EnumCase<"Top2", 0, "top2">, I32EnumCase<"Max", 1, "max">]>;

#endif
