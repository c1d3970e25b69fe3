//===- ShardExperts.cpp - Experts become explicit movement of rows --------===//
//
// moe.experts says what a token's experts compute. Here it becomes what a program does on the ranks of the plan; on one
// rank, nothing travels:
//
//   %r = moe.experts %x, %e, %w, @gu[%l], @down[%l]
//   ->  %p = moe.permutation %e                           sort (token, choice) by expert
//       %s = moe.permute %x, %p                           rows once, never weights
//       %g = moe.grouped_linear %s, %p, @gu[%l]
//       %a = nn.gated_act %g
//       %d = moe.grouped_linear %a, %p, @down[%l] weighted %w
//       %r = moe.unpermute %d, %p, %e                     N5's tree: any placement gives these bits
//
//===----------------------------------------------------------------------===//
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Planner/Evaluate.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"
#include "mlir/IR/Builders.h"

namespace k2c {
#define GEN_PASS_DEF_SHARDEXPERTS
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// [rows of slots][columns...] of `element`.
RankedTensorType slotType(MLIRContext *context, ArrayRef<int64_t> columns, Type element, int64_t top) {
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  shape.append(columns.begin(), columns.end());
  auto rows = nn::RowsAttr::get(context, nn::RowKind::Slot, top, -1, -1);
  return RankedTensorType::get(shape, element, rows);
}

void expand(moe::ExpertsOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto input = cast<RankedTensorType>(op.getInput().getType());
  Type element = input.getElementType();
  int64_t top = cast<RankedTensorType>(op.getExperts().getType()).getShape().back();
  int64_t inner = op.getInner(), hidden = input.getShape().back();
  auto slots = [&](ArrayRef<int64_t> columns) { return slotType(b.getContext(), columns, element, top); };

  Value plan = moe::PermutationOp::create(b, loc, moe::PermutationType::get(b.getContext(), op.getCount(), top),
                                          op.getExperts());
  Value rows = moe::PermuteOp::create(b, loc, slots({hidden}), op.getInput(), plan);
  Value gateUp = moe::GroupedLinearOp::create(b, loc, slots({2, inner}), rows, plan, op.getUpAttr(), op.getUpOperand(),
                                              Value(), op.getUpOrderAttr());
  Value act = nn::GatedActOp::create(b, loc, slots({inner}), gateUp, op.getActAttr());
  Value down = moe::GroupedLinearOp::create(b, loc, slots({hidden}), act, plan, op.getDownAttr(), op.getDownOperand(),
                                            op.getWeights(), op.getDownOrderAttr());
  Value sum = moe::UnpermuteOp::create(b, loc, op.getType(), down, plan, op.getExperts(), op.getCombineAttr());
  remark(loc, "shard-experts", "one-rank", "all " + std::to_string(op.getCount()) + " experts on one rank: no exchange",
         {{"experts", int64_t(op.getCount())}, {"top_k", top}});
  op.replaceAllUsesWith(sum);
  op.erase();
}

/// The layout is that of one rank, in the words that attach-plan writes.
LogicalResult checkLayout(ModuleOp module) {
  dist::PlanAttr plan = planOf(module);
  if (!plan || plan.getLayout() == oneRankLayout)
    return success();
  Expected<ParallelLayout> layout = parseLayout(plan.getLayout().str(), PlanPhase::Serve);
  if (!layout)
    return module.emitError() << "shard-experts: " << layout.error().text();
  return module.emitError() << "shard-experts: the plan's layout is '" << plan.getLayout() << "' of "
                            << layout->devices() << " ranks; this build compiles for one, '" << oneRankLayout << "'";
}

struct ShardExperts : impl::ShardExpertsBase<ShardExperts> {
  using ShardExpertsBase::ShardExpertsBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Planned, Form::Distributed)))
      return signalPassFailure();
    if (failed(checkLayout(getOperation())))
      return signalPassFailure();
    SmallVector<moe::ExpertsOp> work;
    getOperation().walk([&](moe::ExpertsOp op) { work.push_back(op); });
    llvm::for_each(work, expand);
  }
};

} // namespace
} // namespace k2c
