//===- NnSupport.cpp - What the interfaces of token ops share -------------===//
#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace k2c::nn;

Value WeightRef::value() const { return operand.size() ? operand[0].get() : Value(); }

RowsAttr k2c::nn::detail::rowSpaceOf(Operation *op) {
  for (Type type : op->getResultTypes())
    if (RowsAttr rows = rowsOf(type))
      return rows;
  for (Type type : op->getOperandTypes())
    if (RowsAttr rows = rowsOf(type))
      return rows;
  return nullptr;
}

SmallVector<WeightRef> k2c::nn::detail::presentRefs(ArrayRef<WeightRef> refs) {
  SmallVector<WeightRef> present;
  llvm::copy_if(refs, std::back_inserter(present), [](const WeightRef &ref) { return ref.family || ref.operand.size(); });
  return present;
}

void k2c::nn::detail::bindWeight(Operation *op, WeightRef ref, Value value) {
  ref.operand.assign(value);
  op->removeAttr(ref.name);
}

LogicalResult k2c::nn::detail::verifyRowSpace(Operation *) { return success(); }
LogicalResult k2c::nn::detail::verifySymbols(Operation *, SymbolTableCollection &) { return success(); }
