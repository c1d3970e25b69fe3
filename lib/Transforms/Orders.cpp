//===- Orders.cpp - The declared order of each reduction ------------------===//
#include "Orders.h"
#include "dialects/Moe/Moe.h"
#include "k2c/Kernels/KernelDesc.h"

using namespace mlir;

namespace k2c {

namespace {

Attribute orderOf(MLIRContext *context, const nn::Reduction &reduction) {
  switch (reduction.kind) {
  case nn::ReductionKind::Contraction:
    return nn::TreeAttr::get(context, leafCount(reduction.length));
  case nn::ReductionKind::Softmax:
    return nn::SoftmaxAttr::get(context, softmaxBlock, nn::SplitRule::ByPosition);
  case nn::ReductionKind::Combine:
    return moe::TreeAttr::get(context, combineLeaves(reduction.length));
  }
  llvm_unreachable("a reduction of a known kind");
}

} // namespace

int64_t declareOrders(nn::ReductionOp op) {
  SmallVector<nn::Reduction> reductions = op.getReductions();
  for (auto [index, reduction] : llvm::enumerate(reductions))
    op.setReductionOrder(index, orderOf(op->getContext(), reduction));
  return reductions.size();
}

} // namespace k2c
