//===- NnBase.td - The nn dialect and what every token dialect shares -----===//
//
// Row tensors, weight references and the base class of nn, moe and mla ops.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_NN_BASE
#define K2C_DIALECTS_NN_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def NnDialect : Dialect {
  let name = "nn";
  let summary = "Transformer operations that are neither routing nor latent attention";
  let description = [{
    The `nn` dialect says what a transformer computes on ragged batches: rows of token tensors carry a row space,
    weights are families named as in the checkpoint, the key-value cache is a pool of named planes. See Rationale.md.

    In the examples, rows of 64 elements, of 4 query heads, of 2 heads of keys and values, and a view of the cache are

    ```mlir
    #tok = #nn.rows<token>
    !x = tensor<?x64xf32, #tok>
    !h = tensor<?x4x16xf32, #tok>
    !kvh = tensor<?x2x16xf32, #tok>
    !kv = !nn.kv_view<k = 2 x 16 x f32, v = 2 x 16 x f32>
    ```
  }];
  let cppNamespace = "::k2c::nn";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Of the module, and of functions that a step enters.
    static constexpr ::llvm::StringLiteral limitsAttrName = "nn.limits", numericsAttrName = "nn.numerics",
                                           entryAttrName = "nn.entry";
  }];
}

/// A tensor whose dimension 0 lives in a row space: it carries a #nn.rows encoding.
def Nn_Rows : Type<
    And<[IsRankedTensorTypePred, CPred<"::k2c::nn::rowsOf($_self) != nullptr">]>,
    "ranked tensor with a #nn.rows encoding", "::mlir::RankedTensorType">;

/// A signed 64-bit integer (I64Attr's accessors are unsigned).
def Nn_Int : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit integer">;

/// What a weight reference carries besides its symbol: the layer index of `@w[%l]`, or, inside a kernel,
/// the weight itself.
def Nn_WeightOperand : AnyTypeOf<[Index, AnyRankedTensor], "layer index or weight tensor">;

#endif
