//===- NnFold.cpp - Folds and canonicalisations of nn ops -----------------===//
//
// Views of views become one view; what does nothing disappears. Nothing here touches arithmetic: bits are the contract.
//
//===----------------------------------------------------------------------===//
#include "dialects/Nn/Nn.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace k2c::nn;

/// Rotating nothing is the identity.
OpFoldResult RotaryOp::fold(FoldAdaptor) { return getCount() == 0 ? getInput() : Value(); }

/// A reshape to its own type is the identity; a reshape of a reshape is one reshape.
OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getResult().getType())
    return getInput();
  auto inner = getInput().getDefiningOp<ReshapeOp>();
  if (!inner)
    return {};
  getInputMutable().assign(inner.getInput());
  return getResult();
}

namespace {
/// split(x) -> x.
struct DropWholeSplit final : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SplitOp split, PatternRewriter &rewriter) const override {
    if (split.getPieces().size() != 1)
      return rewriter.notifyMatchFailure(split, "has several pieces");
    rewriter.replaceOp(split, split.getInput());
    return success();
  }
};

/// split(split(x)#i) -> split(x) with the inner pieces in place of piece i, if nothing else reads piece i.
struct MergeSplits final : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SplitOp inner, PatternRewriter &rewriter) const override {
    auto outer = inner.getInput().getDefiningOp<SplitOp>();
    if (!outer || !inner.getInput().hasOneUse())
      return rewriter.notifyMatchFailure(inner, "is not the only reader of a piece");
    unsigned at = cast<OpResult>(inner.getInput()).getResultNumber();
    SmallVector<Type> types(outer.getResultTypes());
    types.erase(types.begin() + at);
    types.insert(types.begin() + at, inner.getResultTypes().begin(), inner.getResultTypes().end());
    rewriter.setInsertionPoint(outer);
    auto merged = SplitOp::create(rewriter, outer.getLoc(), types, outer.getInput());
    SmallVector<Value> pieces(merged.getPieces());
    unsigned count = inner.getNumResults();
    rewriter.replaceOp(inner, ValueRange(pieces).slice(at, count));
    // Piece `at` of the outer split is dead; any value of the merged split stands for it.
    SmallVector<Value> rest(pieces.begin(), pieces.begin() + at + 1);
    rest.append(pieces.begin() + at + count, pieces.end());
    for (auto [old, fresh] : llvm::zip(outer.getPieces(), rest))
      if (!old.use_empty())
        rewriter.replaceAllUsesWith(old, fresh);
    rewriter.eraseOp(outer);
    return success();
  }
};
} // namespace

void SplitOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropWholeSplit, MergeSplits>(context);
}
