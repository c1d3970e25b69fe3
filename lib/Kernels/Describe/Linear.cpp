//===- Linear.cpp - Linears with prologue and epilogue --------------------===//
#include "Builder.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace k2c {

namespace {

/// The parts of a fused linear; all but the contraction may be absent.
struct Parts {
  nn::RmsNormOp norm;
  nn::LinearOp linear;
  moe::GroupedLinearOp grouped;
  SmallVector<nn::ElementwiseOp> epilogue;

  Operation *contraction() { return linear ? linear.getOperation() : grouped.getOperation(); }
  Value sum() { return contraction()->getResult(0); }
  Value weight() { return linear ? linear.getWeightOperand() : grouped.getWeightOperand(); }
  Value bias() { return linear ? linear.getBiasOperand() : Value(); }
  Value slotWeights() { return grouped ? grouped.getRouterWeights() : Value(); }
  Value input() { return linear ? linear.getInput() : grouped.getInput(); }
  nn::TreeAttr order() { return linear ? linear.getOrderAttr() : grouped.getOrderAttr(); }
  Value result() { return epilogue.empty() ? sum() : epilogue.back()->getResult(0); }
  /// 2 when gate and up, the halves of a sum's row, make one result.
  int64_t sumsOfResult() { return rowElements(sum()) / rowElements(result()); }
};

/// Sorts the kernel's ops into parts; false when one has no place.
bool sort(ArrayRef<Operation *> ops, Parts &parts) {
  for (Operation *op : ops) {
    bool placed = TypeSwitch<Operation *, bool>(op)
                      .Case([&](nn::RmsNormOp o) { return !parts.norm && (parts.norm = o, true); })
                      .Case([&](nn::LinearOp o) { return !parts.contraction() && (parts.linear = o, true); })
                      .Case([&](moe::GroupedLinearOp o) { return !parts.contraction() && (parts.grouped = o, true); })
                      .Case([&](nn::ElementwiseOp o) { return parts.epilogue.push_back(o), true; })
                      .Default([](Operation *) { return false; });
    if (!placed)
      return false;
  }
  return parts.contraction() != nullptr;
}

/// A weight [matrices...][n...][k].
FailureOr<Matrix> matrixOf(Value weight, bool grouped, int64_t parts) {
  auto type = cast<RankedTensorType>(weight.getType());
  ArrayRef<int64_t> shape = type.getShape();
  Matrix matrix;
  matrix.count = grouped ? shape.front() : 1;
  matrix.k = shape.back();
  matrix.n = type.getNumElements() / matrix.count / matrix.k;
  matrix.parts = parts;
  if (failed(setStorage(matrix, weight)))
    return failure();
  return matrix;
}

/// What the contraction itself makes of its sums, rounded to `type` where ops follow.
ElementTerms ownSteps(Parts parts, Elementwise &list, DType type) {
  ElementTerms terms;
  for (int64_t part = 0; part < parts.sumsOfResult(); ++part) {
    auto input = [&](LinearDesc::Input first) { return ElementTerm::input(first + part); };
    ElementTerm term = input(LinearDesc::Sum);
    if (parts.bias())
      term = list.append(ElementOp::Add, type, term, input(LinearDesc::Bias));
    else if (parts.slotWeights())
      term = list.append(ElementOp::Mul, type, term, ElementTerm::input(LinearDesc::SlotWeight));
    else if (!parts.epilogue.empty())
      term = list.append(ElementOp::Round, type, term);
    terms.push_back(term);
  }
  return terms;
}

} // namespace

MaybeDescribed describeLinear(kern::FuncOp kernel, ArrayRef<Operation *> ops) {
  Parts parts;
  if (!sort(ops, parts))
    return std::nullopt;
  DescBuilder b(kernel);
  LinearDesc desc;
  FailureOr<Matrix> matrix = matrixOf(parts.weight(), !!parts.grouped, parts.sumsOfResult());
  if (failed(matrix) || !parts.order())
    return FailureOr<DescribedKernel>(
        parts.contraction()->emitOpError("has no declared order or an unknown weight type"));
  desc.w = *matrix;
  desc.order = {desc.w.k, parts.order().getLeaves()};
  desc.grouped = !!parts.grouped;

  bool ok = b.addRows(parts.norm ? parts.norm.getInput() : parts.input(), desc.x);
  if (parts.norm) {
    desc.normEps = parts.norm.getEps().convertToDouble();
    desc.normWeight = elementOf(parts.norm.getWeightOperand());
    ok = ok && b.addArgument(parts.norm.getWeightOperand());
  }
  ok = ok && b.addArgument(parts.weight());
  if (Value bias = parts.bias()) {
    desc.biasType = elementOf(bias);
    ok = ok && b.addArgument(bias);
  }
  if (parts.grouped)
    desc.slotsPerToken = parts.grouped.getPermutation().getType().getTop();
  if (Value weights = parts.slotWeights())
    ok = ok && b.addArgument(weights);
  KnownTerms known = {{parts.sum(), ownSteps(parts, desc.epilogue, elementOf(parts.sum()))}};
  auto addResidual = [&](Value value, int64_t) -> FailureOr<ElementTerms> {
    if (desc.residual.width > 0)
      return ElementTerms(); // an epilogue takes one
    if (!b.addRows(value, desc.residual))
      return failure();
    return ElementTerms{ElementTerm::input(LinearDesc::Residual)};
  };
  for (nn::ElementwiseOp op : parts.epilogue)
    ok = ok && succeeded(appendSteps(op, desc.epilogue, known, addResidual));
  if (parts.grouped)
    ok = ok && b.addArgument(parts.grouped.getPermutation());
  ok = ok && b.addResult(parts.result(), desc.y);
  return b.finish(ok, desc);
}

} // namespace k2c
