//===- ShardVocabulary.cpp - Embedding and head over the ranks of a stage -===//
//
// Where the plan has vocab, each rank of a stage has some columns of the embedding and some rows of the head, that is
// some logits. Rows that a rank needs of either go to all ranks of the stage, and what each makes of them comes back:
//
//   %x = nn.embed @embed, %b    ->  %ids = nn.token_ids %b
//                                   %sent, %returned = dist.share_plan %ids
//                                   %in, %came = dist.all_to_all %ids to %sent over stage  by quota
//                                   %all = dist.close_gaps %in, %came                      ids of all ranks
//                                   %part = nn.lookup %all, @embed                         its columns
//                                   %back = dist.share_return %all, %came
//                                   %parts = dist.all_to_all %part to %back from %returned over stage
//                                   %x = dist.join_columns %parts, %returned
//
// So it is with the head, of normalised output rows and with nn.linear in place of nn.lookup: a logit is of one row of
// the head, and no sum is divided.
//
// Rejected: rows of the embedding on each rank, whose owner an id would have to be sent to, as to an expert; it needs
// a plan for every step and moves as much.
//
//===----------------------------------------------------------------------===//
#include "dialects/Dist/Dist.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

namespace k2c {
#define GEN_PASS_DEF_SHARDVOCABULARY
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// Rows of all members, on each of them.
struct Shared {
  dist::SharePlanOp plan;
  dist::AllToAllOp dispatch;
  Value rows;
};

class Sharing {
public:
  Sharing(ModuleOp module, int64_t members)
      : symbols(module), members(members), limits(nn::limitsOf(module)), site(dist::countSites(module)),
        b(module.getContext()) {}

  LogicalResult divide(nn::EmbedOp op);
  LogicalResult divide(nn::LinearOp op);

private:
  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
  LogicalResult divideWeights(Operation *user, int64_t along);
  RankedTensorType rowsOf(nn::RowKind kind, int64_t ofSite, int64_t max, int64_t width, Type element);
  Shared share(Location loc, Value rows);
  Value returned(Location loc, Shared shared, Value part, RankedTensorType type);

  SymbolTable symbols;
  const int64_t members;
  const nn::LimitsAttr limits;
  int64_t site; ///< the next one
  OpBuilder b;
};

/// Each rank has a part of the family along dimension `along`.
LogicalResult Sharing::divideWeights(Operation *user, int64_t along) {
  const nn::WeightRef ref = cast<nn::WeightUser>(user).getWeightRefs().front();
  auto family = ref.family ? symbols.lookup<nn::WeightsOp>(ref.family.getValue()) : nn::WeightsOp();
  if (!family)
    return user->emitError() << "shard-vocabulary: its weights are no family, of which ranks could have parts; name "
                                "one";
  const int64_t size = family.getTensorType().getShape()[along];
  if (size % members != 0 || family.getParts())
    return user->emitError() << "shard-vocabulary: @" << family.getSymName() << " has " << size << " in dimension "
                             << along << (family.getParts() ? " and has parts already" : "") << ", and " << members
                             << " ranks are to have a part of it; plan vocab=1";
  family.setParts(members);
  family.setAlong(along);
  return success();
}

RankedTensorType Sharing::rowsOf(nn::RowKind kind, int64_t ofSite, int64_t max, int64_t width, Type element) {
  return RankedTensorType::get({ShapedType::kDynamic, width}, element,
                               nn::RowsAttr::get(b.getContext(), kind, /*per_token=*/0, ofSite, max));
}

Shared Sharing::share(Location loc, Value rows) {
  Type counts = dist::CountsType::get(b.getContext(), members);
  const RankedTensorType type = typeOf(rows);
  const int64_t width = type.getShape().back(), quota = nn::boundRows(nn::rowsOf(type), limits), own = site++;
  auto plan = dist::SharePlanOp::create(b, loc, counts, counts, rows);
  auto dispatch = dist::AllToAllOp::create(
      b, loc, rowsOf(nn::RowKind::Message, own, members * quota, width, type.getElementType()), counts, rows,
      plan.getSent(), Value(), dist::AxisAttr::get(b.getContext(), dist::Axis::Stage), b.getI64IntegerAttr(own),
      b.getI64IntegerAttr(quota), DenseI64ArrayAttr());
  Value all =
      dist::CloseGapsOp::create(b, loc, rowsOf(nn::RowKind::Recv, own, members * quota, width, type.getElementType()),
                                dispatch.getResult(), dispatch.getCame());
  return {plan, dispatch, all};
}

/// What all have made of the rows of `shared`, beside each other.
Value Sharing::returned(Location loc, Shared shared, Value part, RankedTensorType type) {
  const int64_t own = site++, rows = nn::boundRows(nn::rowsOf(shared.plan.getInput().getType()), limits);
  Value back =
      dist::ShareReturnOp::create(b, loc, shared.plan.getSent().getType(), shared.rows, shared.dispatch.getCame());
  Value parts = dist::AllToAllOp::create(b, loc,
                                         rowsOf(nn::RowKind::Subtree, own, members * rows,
                                                typeOf(part).getShape().back(), typeOf(part).getElementType()),
                                         Type(), part, back, shared.plan.getReturned(),
                                         dist::AxisAttr::get(b.getContext(), dist::Axis::Stage),
                                         b.getI64IntegerAttr(own), IntegerAttr(), DenseI64ArrayAttr())
                    .getResult();
  return dist::JoinColumnsOp::create(b, loc, type, parts, shared.plan.getReturned());
}

LogicalResult Sharing::divide(nn::EmbedOp op) {
  if (failed(divideWeights(op, 1)))
    return failure();
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  const RankedTensorType type = op.getType();
  Value ids = nn::TokenIdsOp::create(
      b, loc, RankedTensorType::get({ShapedType::kDynamic, 1}, b.getI32Type(), type.getEncoding()), op.getBatch());
  Shared shared = share(loc, ids);
  const nn::RowsAttr all = nn::rowsOf(shared.rows.getType());
  Value part = nn::LookupOp::create(
      b, loc,
      rowsOf(nn::RowKind::Recv, all.getSite(), all.getMax(), type.getShape().back() / members, type.getElementType()),
      shared.rows, op.getWeightAttr(), op.getWeightOperand());
  op.replaceAllUsesWith(returned(loc, shared, part, type));
  op.erase();
  return success();
}

LogicalResult Sharing::divide(nn::LinearOp op) {
  if (op.getBias() || op.getType().getRank() != 2)
    return op.emitError() << "shard-vocabulary: logits have a bias or several dimensions, and ranks have a part of "
                             "them; plan vocab=1";
  if (failed(divideWeights(op, 0)))
    return failure();
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  const RankedTensorType type = op.getType();
  Shared shared = share(loc, op.getInput());
  const nn::RowsAttr all = nn::rowsOf(shared.rows.getType());
  auto part = cast<nn::LinearOp>(b.clone(*op));
  part.getInputMutable().assign(shared.rows);
  part.getResult().setType(
      rowsOf(nn::RowKind::Recv, all.getSite(), all.getMax(), type.getShape().back() / members, type.getElementType()));
  op.replaceAllUsesWith(returned(loc, shared, part, type));
  op.erase();
  return success();
}

/// Makes logits: of output rows.
bool isHead(nn::LinearOp op) { return nn::rowsOf(op.getType()).getKind() == nn::RowKind::Output; }

struct ShardVocabulary : impl::ShardVocabularyBase<ShardVocabulary> {
  using ShardVocabularyBase::ShardVocabularyBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectForm(module, getArgument(), Form::Distributed, Form::Distributed)))
      return signalPassFailure();
    const int64_t members = stageRanksOf(module).ofVocabulary;
    SmallVector<nn::EmbedOp> embeds;
    SmallVector<nn::LinearOp> heads;
    module.walk([&](nn::EmbedOp op) { embeds.push_back(op); });
    module.walk([&](nn::LinearOp op) {
      if (isHead(op))
        heads.push_back(op);
    });
    if (members == 1 || (embeds.empty() && heads.empty()))
      return markAllAnalysesPreserved();
    if (!nn::limitsOf(module)) {
      module.emitError() << "shard-vocabulary: the module has no nn.limits, and ranks have room for the rows of a step "
                            "of each; give it some";
      return signalPassFailure();
    }
    Sharing sharing(module, members);
    for (nn::EmbedOp op : embeds)
      if (failed(sharing.divide(op)))
        return signalPassFailure();
    for (nn::LinearOp op : heads)
      if (failed(sharing.divide(op)))
        return signalPassFailure();
    remark(module.getLoc(), "shard-vocabulary", "parts",
           "embedding and head in parts on " + std::to_string(members) + " ranks", {{"ranks", members}});
  }
};

} // namespace
} // namespace k2c
