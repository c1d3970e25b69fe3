//===- NnEnums.td - Enumerations of the nn dialect ------------------------===//
#ifndef K2C_DIALECTS_NN_ENUMS
#define K2C_DIALECTS_NN_ENUMS

include "mlir/IR/EnumAttr.td"

class Nn_Enum<string name, string summary, list<EnumCase> cases> : I32Enum<name, summary, cases> {
  let cppNamespace = "::k2c::nn";
}

def Nn_RowKind : Nn_Enum<"RowKind", "what a row of a token tensor is", [
    I32EnumCase<"Token", 0, "token">, I32EnumCase<"Output", 1, "output">, I32EnumCase<"Seq", 2, "seq">,
    I32EnumCase<"Slot", 3, "slot">, I32EnumCase<"Recv", 4, "recv">, I32EnumCase<"Subtree", 5, "subtree">,
    I32EnumCase<"Message", 6, "message">, I32EnumCase<"Entering", 7, "entering">,
    I32EnumCase<"Gathered", 8, "gathered">]>;

def Nn_ComputeType : Nn_Enum<"ComputeType", "element type of activations", [
    I32EnumCase<"F32", 0, "f32">, I32EnumCase<"BF16", 1, "bf16">]>;

def Nn_MlaForm : Nn_Enum<"MlaForm", "how MLA evaluates a program's segments (N4)", [
    I32EnumCase<"Phased", 0, "phased">, I32EnumCase<"Absorbed", 1, "absorbed">,
    I32EnumCase<"Expanded", 2, "expanded">]>;

def Nn_SplitRule : Nn_Enum<"SplitRule", "where attention restarts its online softmax (N3)", [
    I32EnumCase<"None", 0, "none">, I32EnumCase<"ByPosition", 1, "by_position">]>;

def Nn_Activation : Nn_Enum<"Activation", "the gate's non-linearity", [
    I32EnumCase<"Silu", 0, "silu">, I32EnumCase<"GeluTanh", 1, "gelu_tanh">]>;

def Nn_Pairing : Nn_Enum<"Pairing", "which two elements rotate together", [
    I32EnumCase<"Interleaved", 0, "interleaved">, I32EnumCase<"Half", 1, "half">]>;

def Nn_CaptureKind : Nn_Enum<"CaptureKind", "what a capture copies", [
    I32EnumCase<"Embed", 0, "embed">, I32EnumCase<"Hidden", 1, "hidden">]>;

#endif
