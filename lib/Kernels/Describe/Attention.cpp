//===- Attention.cpp - Attention and its per-head linears -----------------===//
#include "Builder.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Nn/Nn.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace k2c {

namespace {

int64_t dim(Value value, unsigned index) { return cast<RankedTensorType>(value.getType()).getDimSize(index); }

/// Heads as the matrices of a weight [heads][n][k].
bool headMatrices(kern::FuncOp kernel, Value weight, Matrix &matrix) {
  matrix.count = dim(weight, 0);
  matrix.n = dim(weight, 1);
  matrix.k = dim(weight, 2);
  if (succeeded(setStorage(matrix, weight)))
    return true;
  kernel.emitError() << "kernel '" << kernel.getSymName() << "' reads a weight of type " << weight.getType()
                     << ", which no kernel of this build does";
  return false;
}

template <class Op> AttentionShape shapeOf(Op op) {
  AttentionShape shape;
  shape.heads = dim(op.getQuery(), 1);
  shape.scale = op.getScale().convertToDouble();
  shape.cache = *dtypeOf(op.getView().getType().getElement());
  shape.group = op.getView().getType().getGroup();
  shape.maxLogit = true; // one comparison for each score; a second set of kernels would cost more
  return shape;
}

FailureOr<DescribedKernel> describeGqa(kern::FuncOp kernel, nn::AttentionOp op) {
  if (op.getWindow())
    return op.emitOpError("has a window; windowed attention is not in this build");
  DescBuilder b(kernel);
  GqaAttentionDesc desc;
  desc.shape = shapeOf(op);
  desc.kvHeads = op.getView().getType().getHeads();
  desc.keyDim = op.getView().getType().getKeyDims();
  desc.valueDim = op.getView().getType().getValueDims();
  bool ok = b.addRows(op.getQuery(), desc.q) && b.addPlane(op.getView(), 0) && b.addPlane(op.getView(), 1) &&
            b.addArgument(op.getBatch()) && b.addOwnLayer() && b.addResult(op.getResult(), desc.o);
  return b.finish(ok, desc);
}

FailureOr<DescribedKernel> describeAbsorbed(kern::FuncOp kernel, mla::AttentionAbsorbedOp op) {
  DescBuilder b(kernel);
  AbsorbedAttentionDesc desc;
  desc.shape = shapeOf(op);
  desc.latent = op.getView().getType().getLatent();
  desc.rope = op.getView().getType().getRope();
  bool ok = b.addRows(op.getQuery(), desc.qLatent) && b.addHeads(op.getRotary(), desc.qRope, desc.qRopeHeadStride) &&
            b.addPlane(op.getView(), 0) && b.addPlane(op.getView(), 1) && b.addArgument(op.getBatch()) &&
            b.addOwnLayer() && b.addResult(op.getResult(), desc.o);
  return b.finish(ok, desc);
}

FailureOr<DescribedKernel> describeExpanded(kern::FuncOp kernel, mla::AttentionExpandedOp op) {
  DescBuilder b(kernel);
  ExpandedAttentionDesc desc;
  desc.shape = shapeOf(op);
  desc.latent = op.getView().getType().getLatent();
  desc.rope = op.getView().getType().getRope();
  bool ok = headMatrices(kernel, op.getUkOperand(), desc.uk) && headMatrices(kernel, op.getUvOperand(), desc.uv);
  desc.nope = desc.uk.n;
  desc.value = desc.uv.n;
  ok = ok && b.addRows(op.getQuery(), desc.q) && b.addPlane(op.getView(), 0) && b.addPlane(op.getView(), 1) &&
       b.addArgument(op.getUkOperand()) && b.addArgument(op.getUvOperand()) && b.addArgument(op.getBatch()) &&
       b.addOwnLayer() && b.addResult(op.getResult(), desc.o);
  return b.finish(ok, desc);
}

template <class Op> FailureOr<DescribedKernel> describeHeadLinear(kern::FuncOp kernel, Op op) {
  if (!op.getOrderAttr())
    return op.emitOpError("has no declared order");
  DescBuilder b(kernel);
  HeadLinearDesc desc;
  desc.heads = dim(op.getInput(), 1);
  bool ok = headMatrices(kernel, op.getWeightOperand(), desc.w);
  desc.order = {desc.w.k, op.getOrderAttr().getLeaves()};
  desc.rows = FormFilter::Absorbed;
  ok = ok && b.addHeads(op.getInput(), desc.x, desc.xHeadStride) && b.addArgument(op.getWeightOperand()) &&
       b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

} // namespace

MaybeDescribed describeAttention(kern::FuncOp kernel, Operation *op) {
  return TypeSwitch<Operation *, MaybeDescribed>(op)
      .Case([&](nn::AttentionOp o) { return describeGqa(kernel, o); })
      .Case([&](mla::AttentionAbsorbedOp o) { return describeAbsorbed(kernel, o); })
      .Case([&](mla::AttentionExpandedOp o) { return describeExpanded(kernel, o); })
      .Case([&](mla::AbsorbQueryOp o) { return describeHeadLinear(kernel, o); })
      .Case([&](mla::ExpandOutputOp o) { return describeHeadLinear(kernel, o); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace k2c
