//===- NnElementwise.cpp - What element-wise ops compute --------------------===//
#include "dialects/Nn/NnVerify.h"

using namespace mlir;

namespace k2c::nn {

using Term = ElementTerm;

LogicalResult AddOp::appendSteps(Elementwise &list, ArrayRef<Term> terms, DType type) {
  list.append(ElementOp::Add, type, terms[0], terms[1]);
  return success();
}

/// Neighbours first, then their sums; only the last sum is of the result type.
LogicalResult AddPartialsOp::appendSteps(Elementwise &list, ArrayRef<Term> terms, DType type) {
  SmallVector<Term> sums(terms);
  while (sums.size() > 1) {
    const size_t pairs = sums.size() / 2;
    for (size_t pair = 0; pair < pairs; ++pair)
      sums[pair] = list.append(ElementOp::Add, pairs == 1 ? type : DType::F32, sums[2 * pair], sums[2 * pair + 1]);
    sums.resize(pairs);
  }
  return success();
}

/// [C2], [C3] of add_partials.
LogicalResult AddPartialsOp::verify() {
  for (Value partial : getPartials())
    if (failed(checkElement(*this, "C2", "an input", partial.getType(), Float32Type::get(getContext()))) ||
        failed(
            checkShape(*this, "C2", "input columns", columnsOf(partial.getType()), columnsOf(getResult().getType()))))
      return failure();
  if (const size_t count = getPartials().size(); count < 2 || !llvm::isPowerOf2_64(count))
    return emitOpError("[C3] expects inputs that are a power of two, two or more, got ") << count;
  return success();
}

LogicalResult ClipOp::appendSteps(Elementwise &list, ArrayRef<Term> terms, DType type) {
  double limit = getLimit().convertToDouble();
  Term below = list.append(ElementOp::Min, DType::F32, Term::constant(limit), terms[0]);
  list.append(ElementOp::Max, type, Term::constant(-limit), below);
  return success();
}

/// [C2] of clip.
LogicalResult ClipOp::verify() {
  if (!(getLimit().convertToDouble() > 0))
    return emitOpError("[C2] expects a positive limit, got ") << getLimit().convertToDouble();
  return success();
}

LogicalResult GatedActOp::appendSteps(Elementwise &list, ArrayRef<Term> terms, DType type) {
  if (getAct() != Activation::Silu)
    return emitOpError("gates by another activation than silu, which is not in this build");
  Term gate = list.append(ElementOp::Silu, DType::F32, terms[0]);
  list.append(ElementOp::Mul, type, gate, terms[1]);
  return success();
}

/// [C2] of gated_act.
LogicalResult GatedActOp::verify() {
  ArrayRef<int64_t> columns = columnsOf(getInput().getType());
  if (failed(checkRank(*this, "C2", "an input", getInput().getType(), 3)) ||
      failed(checkEqual(*this, "C2", "dimension 1", columns[0], "gate and up,", 2)))
    return failure();
  return checkShape(*this, "C2", "result columns", columnsOf(getResult().getType()), columns[1]);
}

} // namespace k2c::nn
