//===- NnInterfaces.td - What every token op declares ---------------------===//
//
// The interfaces by which passes handle nn, moe and mla ops without naming them. Every such op has the first two;
// `WeightUser` is how a pass finds and rebinds weights.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_NN_INTERFACES
#define K2C_DIALECTS_NN_INTERFACES

include "mlir/IR/OpBase.td"

class Nn_Interface<string name> : OpInterface<name> {
  let cppNamespace = "::k2c::nn";
}

def Nn_RowSpaceOp : Nn_Interface<"RowSpaceOp"> {
  let description = [{
    In which row space the results live. An op either keeps the space (all row tensors it touches have the same one; the
    interface's verifier checks it, [C1] of every op that does not say otherwise) or changes it, and then checks itself.
  }];
  let methods = [
    InterfaceMethod<"True if results live in another row space than operands.", "bool", "changesRowSpace", (ins), "", [{
      return false;
    }]>,
    InterfaceMethod<"The row space of the results; of the operands when there is no row tensor among the results.",
                    "::k2c::nn::RowsAttr", "getRowSpace", (ins), "", [{
      return ::k2c::nn::detail::rowSpaceOf($_op);
    }]>,
  ];
  let verify = [{ return ::k2c::nn::detail::verifyRowSpace($_op); }];
}

def Nn_ReductionOp : Nn_Interface<"ReductionOp"> {
  let description = [{
    Which reductions the op performs and in which declared order (numerics N1, N3, N5). set-numerics fills in the orders
    from the kinds and lengths alone; every later pass and every kernel may read but not change them. An op whose order
    is fixed by its description has no entry.
  }];
  let methods = [
    InterfaceMethod<"The reductions, in the order of setReductionOrder's index.",
                    "::llvm::SmallVector<::k2c::nn::Reduction>", "getReductions", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"Declares the order of reduction `index`.", "void", "setReductionOrder",
                    (ins "unsigned":$index, "::mlir::Attribute":$order), "", [{
      $_op->setAttr($_op.getReductions()[index].attribute, order);
    }]>,
  ];
}

def Nn_KernelOp : Nn_Interface<"KernelOp"> {
  let description = [{
    The op may stand in a fused kernel, and must from the scheduled form on. Lists of layers, the joining of forms and
    sampling are no part of a kernel, and do not have it.
  }];
  let methods = [
    InterfaceMethod<"What the op is for in a layer, after which its kernel is named: `routing`.", "::llvm::StringRef",
                    "getRole">,
    InterfaceMethod<"True if the op only says how the same bytes are read: it moves into each kernel that reads "
                    "through it.", "bool", "isView", (ins), "", [{ return false; }]>,
    InterfaceMethod<"True for a contraction whose sums an epilogue can take before they are stored.", "bool",
                    "isLinear", (ins), "", [{ return false; }]>,
  ];
}

def Nn_ElementwiseOp : Nn_Interface<"ElementwiseOp"> {
  let description = [{
    Each element of the only result is computed from the elements in its place of the operands, all of which are rows,
    and of nothing else. An operand that is a multiple of the result's width has so many parts, one behind the other.
  }];
  let methods = [
    InterfaceMethod<"Appends what the op computes to `list`; the last step is the result, rounded to `type`. `terms`: "
                    "of each operand, part by part. Fails, with an error at the op, if no kernel computes it.",
                    "::llvm::LogicalResult", "appendSteps",
                    (ins "::k2c::Elementwise &":$list, "::llvm::ArrayRef<::k2c::ElementTerm>":$terms,
                     "::k2c::DType":$type)>,
  ];
}

def Nn_StateOp : Nn_Interface<"StateOp"> {
  let description = [{ The op writes cached state, and names its pool. }];
  let methods = [
    InterfaceMethod<"The pool that the op names.", "::mlir::FlatSymbolRefAttr", "getStatePool">,
  ];
}

def Nn_SharedPlaceOp : Nn_Interface<"SharedPlaceOp"> {
  let description = [{
    Values of the op lie in one place: a result where an operand lay, or two operands that are parts of one buffer. An
    op that is pure as well is no work, only a name for what is there.
  }];
  let methods = [
    InterfaceMethod<"Pairs of values that share a place.",
                    "::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>>", "getSharedPlaces">,
  ];
}

def Nn_PlacedOp : Nn_Interface<"PlacedOp"> {
  let description = [{ The op writes its results into the arena, and says where once memory is assigned. }];
  let methods = [
    InterfaceMethod<"Offset of each result in the arena, in bytes; absent before assign-memory.",
                    "::std::optional<::llvm::ArrayRef<int64_t>>", "getOffsets">,
    InterfaceMethod<"Sets the offset of each result.", "void", "setOffsets",
                    (ins "::llvm::ArrayRef<int64_t>":$offsets)>,
  ];
}

def Nn_AsyncStart : Nn_Interface<"AsyncStart"> {
  let description = [{
    The op starts work that goes on beside what follows it, and gives a token. Whoever takes the token waits for the end
    of that work; up to there its memory is held.
  }];
  let methods = [
    InterfaceMethod<"The token, a result of the op.", "::mlir::Value", "getToken">,
    InterfaceMethod<"Values whose memory the work reads.", "::llvm::SmallVector<::mlir::Value>", "getReadValues">,
    InterfaceMethod<"Values whose memory the work writes.", "::llvm::SmallVector<::mlir::Value>", "getWrittenValues">,
  ];
}

def Nn_WeightUser : Nn_Interface<"WeightUser"> {
  let description = [{
    The op reads weights. A reference is either `@family[%layer]` (symbol, index operand), `@tensor` (symbol alone), or,
    in a kernel, a tensor value. Absent optional weights have no entry. [W1] the symbol is nn.weights or
    nn.constant_table. [W2] `[%layer]` is there if and only if the family has a layer domain. [W3] without a symbol the
    operand is a tensor, with a symbol an index. [W4] the weights that are not optional are there.
  }];
  let methods = [
    InterfaceMethod<"The references, in the order of the op's arguments.", "::llvm::SmallVector<::k2c::nn::WeightRef>",
                    "getWeightRefs", (ins)>,
    InterfaceMethod<"Replaces reference `index` by the tensor `value`.", "void", "bindWeight",
                    (ins "unsigned":$index, "::mlir::Value":$value), "", [{
      ::k2c::nn::detail::bindWeight($_op, $_op.getWeightRefs()[index], value);
    }]>,
    InterfaceMethod<"Checks the logical types of the weights, one for each of getWeightRefs.", "::llvm::LogicalResult",
                    "verifyWeightTypes", (ins "::llvm::ArrayRef<::mlir::RankedTensorType>":$types), "", [{
      return ::llvm::success();
    }]>,
  ];
}

#endif
