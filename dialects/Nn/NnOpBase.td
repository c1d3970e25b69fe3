//===- NnOpBase.td - The base class of nn, moe and mla ops ----------------===//
//
// `TokenOp` attaches the interfaces every op on token tensors has and generates their answers from a few fields. A
// weight argument `w` consists of the attribute `w` (symbol) and the operand `w_operand` (see WeightUser); `weights`
// lists them.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_NN_OPBASE
#define K2C_DIALECTS_NN_OPBASE

include "dialects/Nn/NnAttributes.td"
include "dialects/Nn/NnInterfaces.td"
include "dialects/Nn/NnTypes.td"

/// A declared reduction: the attribute that holds its order, its kind, the C++ expression of its length.
class Reduces<string attribute, string kind, string length> {
  string cpp = "{\"" # attribute # "\", ::k2c::nn::ReductionKind::" # kind # ", " # length # ", (*this)->getAttr(\"" #
                attribute # "\")}";
}

class TokenOp<Dialect dialect, string mnemonic, list<string> weights, list<Trait> traits, bit inKernel = 1>
    : Op<dialect, mnemonic, traits # [Nn_RowSpaceOp, Nn_ReductionOp, OpAsmOpInterface] #
         !if(inKernel, [Nn_KernelOp], []<Trait>) #
         !if(!empty(weights), []<Trait>, [Nn_WeightUser, SymbolUserOpInterface])> {
  /// Declared orders.
  list<Reduces> reductions = [];
  /// Results live in another row space than operands.
  bit changesRows = 0;
  /// Names of the results when printed; without them, the weight family or the mnemonic.
  list<string> names = [];
  /// What the op is for in a layer: the name of its kernel.
  string role = mnemonic;
  /// The first of `weights` that must be there.
  int requiredWeights = !size(weights);
  /// Further C++ members.
  code methods = "";

  let hasVerifier = 1;
  let extraClassDeclaration =
      "void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) { ::k2c::nn::detail::nameResults(*this, {" #
      !interleave(!foreach(n, names, "\"" # n # "\""), ", ") # "}, set); }\n" #
      !if(!empty(reductions), "",
          "::llvm::SmallVector<::k2c::nn::Reduction> getReductions() { return {" #
          !interleave(!foreach(r, reductions, r.cpp), ", ") # "}; }\n") #
      !if(inKernel, "::llvm::StringRef getRole() { return \"" # role # "\"; }\n", "") #
      !if(changesRows, "bool changesRowSpace() { return true; }\n", "") #
      !if(!empty(weights), "",
          "::llvm::SmallVector<::k2c::nn::WeightRef> getWeightRefs() { return ::k2c::nn::detail::presentRefs({" #
          !interleave(!foreach(w, weights,
              "{\"" # w # "\", get" # !toupper(!substr(w, 0, 1)) # !substr(w, 1) # "Attr(), get" #
              !toupper(!substr(w, 0, 1)) # !substr(w, 1) # "OperandMutable()}"), ", ") # "}); }\n" #
          "::llvm::LogicalResult verifySymbolUses(::mlir::SymbolTableCollection &tables) {" #
          " return ::k2c::nn::detail::verifyWeights(*this, " # requiredWeights # ", tables); }\n" #
          "::llvm::LogicalResult verifyWeightTypes(::llvm::ArrayRef<::mlir::RankedTensorType> types);\n") # methods;
}

#endif
