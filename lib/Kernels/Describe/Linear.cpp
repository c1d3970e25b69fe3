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
  nn::GatedActOp gate;
  nn::AddOp add;

  Operation *contraction() { return linear ? linear.getOperation() : grouped.getOperation(); }
  Value weight() { return linear ? linear.getWeightOperand() : grouped.getWeightOperand(); }
  Value input() { return linear ? linear.getInput() : grouped.getInput(); }
  nn::TreeAttr order() { return linear ? linear.getOrderAttr() : grouped.getOrderAttr(); }
  /// What the residual is added to.
  Value beforeAdd() {
    if (gate)
      return gate.getResult();
    return contraction()->getResult(0);
  }
  Value result() {
    if (add)
      return add.getResult();
    return beforeAdd();
  }
};

/// Sorts the kernel's ops into parts; false when one has no place.
bool sort(ArrayRef<Operation *> ops, Parts &parts) {
  for (Operation *op : ops) {
    bool placed = TypeSwitch<Operation *, bool>(op)
                      .Case([&](nn::RmsNormOp o) { return !parts.norm && (parts.norm = o, true); })
                      .Case([&](nn::LinearOp o) { return !parts.contraction() && (parts.linear = o, true); })
                      .Case([&](moe::GroupedLinearOp o) { return !parts.contraction() && (parts.grouped = o, true); })
                      .Case([&](nn::GatedActOp o) { return !parts.gate && (parts.gate = o, true); })
                      .Case([&](nn::AddOp o) { return !parts.add && (parts.add = o, true); })
                      .Default([](Operation *) { return false; });
    if (!placed)
      return false;
  }
  return parts.contraction() != nullptr;
}

/// A weight [matrices...][n...][k].
FailureOr<Matrix> matrixOf(Value weight, bool grouped, bool gated) {
  auto type = cast<RankedTensorType>(weight.getType());
  ArrayRef<int64_t> shape = type.getShape();
  Matrix matrix;
  matrix.count = grouped ? shape.front() : 1;
  matrix.k = shape.back();
  matrix.n = type.getNumElements() / matrix.count / matrix.k;
  matrix.parts = gated ? 2 : 1;
  if (failed(setStorage(matrix, weight)))
    return failure();
  return matrix;
}

} // namespace

MaybeDescribed describeLinear(kern::FuncOp kernel, ArrayRef<Operation *> ops) {
  Parts parts;
  if (!sort(ops, parts))
    return std::nullopt;
  DescBuilder b(kernel);
  LinearDesc desc;
  FailureOr<Matrix> matrix = matrixOf(parts.weight(), !!parts.grouped, !!parts.gate);
  if (failed(matrix) || !parts.order())
    return FailureOr<DescribedKernel>(
        parts.contraction()->emitOpError("has no declared order or an unknown weight type"));
  if (parts.gate && parts.gate.getAct() != nn::Activation::Silu)
    return FailureOr<DescribedKernel>(
        parts.gate.emitOpError("gates by another activation than silu, which is not in this build"));
  desc.w = *matrix;
  desc.order = {desc.w.k, parts.order().getLeaves()};
  desc.grouped = !!parts.grouped;

  bool ok = b.addRows(parts.norm ? parts.norm.getInput() : parts.input(), desc.x);
  if (parts.norm) {
    desc.normEps = parts.norm.getEps().convertToDouble();
    desc.normWeight = *dtypeOf(cast<RankedTensorType>(parts.norm.getWeightOperand().getType()).getElementType());
    ok = ok && b.addArgument(parts.norm.getWeightOperand());
  }
  ok = ok && b.addArgument(parts.weight());
  if (parts.linear && parts.linear.getBiasOperand()) {
    desc.epilogue.bias = true;
    desc.epilogue.biasType = *dtypeOf(cast<RankedTensorType>(parts.linear.getBiasOperand().getType()).getElementType());
    ok = ok && b.addArgument(parts.linear.getBiasOperand());
  }
  desc.epilogue.gatedSilu = !!parts.gate;
  if (parts.grouped) {
    desc.slotsPerToken = parts.grouped.getPlan().getType().getTop();
    if (Value weights = parts.grouped.getRouterWeights()) {
      desc.epilogue.weighted = true;
      ok = ok && b.addArgument(weights);
    }
  }
  if (parts.add) {
    desc.epilogue.residual = true;
    ok = ok &&
         b.addRows(parts.add.getLhs() == parts.beforeAdd() ? parts.add.getRhs() : parts.add.getLhs(), desc.residual);
  }
  if (parts.grouped)
    ok = ok && b.addArgument(parts.grouped.getPlan());
  ok = ok && b.addResult(parts.result(), desc.y);
  return ok ? FailureOr<DescribedKernel>(b.finish(desc)) : FailureOr<DescribedKernel>(failure());
}

} // namespace k2c
