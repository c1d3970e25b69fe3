//===- NnElementwise.cpp - What element-wise ops compute --------------------===//
#include "dialects/Nn/NnVerify.h"

using namespace mlir;

namespace k2c::nn {

using Term = ElementTerm;

LogicalResult AddOp::appendSteps(Elementwise &list, ArrayRef<Term> terms, DType type) {
  list.append(ElementOp::Add, type, terms[0], terms[1]);
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
