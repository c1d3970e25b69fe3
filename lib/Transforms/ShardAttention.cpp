//===- ShardAttention.cpp - Heads and MLPs over tensor-parallel ranks -----===//
//
// Ranks of a tensor-parallel group have the same step. Each carries a slice of its rows (`token`) from layer to layer,
// and computes of attention its heads, of a dense MLP its columns, for the rows of all (`gathered`). A linear behind
// them contracts over heads or columns, so that each rank has the sum of some of its leaves (N1): the sums go where the
// row is carried, and are added as the tree that one rank would have used.
//
//   %h = nn.rms_norm %x, @ln[%l]                    rows of a slice
//   %q = nn.linear %h, @q[%l] ..                    ->  %g = dist.gather_slices %h
//   %o = nn.attention %q, ..                            %q = nn.linear %g, @q[%l] ..           a part of the heads
//   %y = nn.linear %o, @o[%l] order tree<8>             %o = nn.attention %q, ..
//                                                       %p = nn.linear %o, @o[%l] order tree<4>   f32, its leaves
//                                                       %0, %1 = dist.scatter_slices %p
//                                                       %y = nn.add_partials %0, %1
//
// What is between is found from the last linear backwards: which dimension of a value is divided follows from who reads
// it. Latents are not: all ranks cache all of them, and they are gathered behind the linear that makes them. Norms,
// routers and experts work on slices as they are; so do MLPs whose leaves do not come out even.
//
// Rejected: an all-reduce behind attention and MLP, after which all ranks have all rows: it moves as much, each rank
// then normalises, routes and dispatches rows that others have, too, and one of them has to be picked for the experts.
//
//===----------------------------------------------------------------------===//
#include "dialects/Dist/Dist.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Kernels/KernelDesc.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace k2c {
#define GEN_PASS_DEF_SHARDATTENTION
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// No dimension: a value is whole on each rank.
constexpr int64_t whole = 0;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The linear from which `value` is a view, or what else makes it.
Operation *makerOf(Value value) {
  Operation *maker = value.getDefiningOp();
  while (maker && nn::isView(maker))
    maker = maker->getOperand(0).getDefiningOp();
  return maker;
}

bool isAttention(Operation *op) {
  return isa_and_nonnull<nn::AttentionOp, mla::AttentionExpandedOp, mla::ExpandOutputOp, mla::MergeFormsOp>(op);
}

/// `op` is the second linear of a gated MLP.
bool endsMlp(nn::LinearOp op) {
  auto act = dyn_cast_or_null<nn::GatedActOp>(makerOf(op.getInput()));
  return act && isa_and_nonnull<nn::LinearOp>(act.getInput().getDefiningOp());
}

/// Divides what a layer computes between its norms.
class Sharding {
public:
  Sharding(ModuleOp module, SymbolTable &symbols, int64_t ranks, int64_t &site)
      : symbols(symbols), ranks(ranks), site(site), b(module.getContext()) {}

  LogicalResult run(nn::LayerOp layer);

private:
  LogicalResult divide(nn::LinearOp last);
  FailureOr<Value> gathered(Value value, int64_t dimension);
  FailureOr<Value> madeAnew(Operation *op, OpResult result, int64_t dimension);
  FailureOr<Operation *> cloned(Operation *op, int64_t dimension, ArrayRef<int64_t> ofOperands);
  FailureOr<Operation *> linear(nn::LinearOp op, int64_t dimension);
  FailureOr<Operation *> appended(nn::AppendOp op);
  LogicalResult divideWeights(Operation *user, unsigned reference, int64_t along);
  Value gather(Value value);
  bool comesOutEven(nn::LinearOp last) const;
  bool dividesMlp(nn::LinearOp last) const;
  Type ofAll(Type type, int64_t dimension) const;
  void eraseReplaced();

  SymbolTable &symbols;
  const int64_t ranks;
  int64_t &site;
  OpBuilder b;
  llvm::DenseMap<Value, Value> gathers;                  ///< of slices
  llvm::DenseMap<Value, std::pair<Value, int64_t>> anew; ///< of a value, and what of it is divided
  llvm::SetVector<Operation *> replaced;                 ///< by ops on gathered rows
};

/// Rows of all slices, `dimension` divided.
Type Sharding::ofAll(Type type, int64_t dimension) const {
  if (auto view = dyn_cast<nn::KvViewType>(type))
    return nn::KvViewType::get(view.getContext(), view.getHeads() / (dimension == whole ? 1 : ranks), view.getKeyDims(),
                               view.getValueDims(), view.getElement(), view.getGroup());
  auto rows = dyn_cast<RankedTensorType>(type);
  if (!rows)
    return type; // a view of latents
  SmallVector<int64_t> shape(rows.getShape());
  if (dimension != whole)
    shape[dimension] /= ranks;
  return RankedTensorType::get(shape, rows.getElementType(),
                               nn::RowsAttr::get(type.getContext(), nn::RowKind::Gathered));
}

/// The rows of all slices; a view is one of what is gathered.
Value Sharding::gather(Value value) {
  if (Operation *view = value.getDefiningOp(); view && nn::isView(view)) {
    IRMapping mapping;
    mapping.map(view->getOperand(0), gather(view->getOperand(0)));
    b.setInsertionPoint(view);
    Operation *clone = b.clone(*view, mapping);
    for (OpResult result : clone->getResults())
      result.setType(ofAll(result.getType(), whole));
    return clone->getResult(cast<OpResult>(value).getResultNumber());
  }
  Value &known = gathers[value];
  if (!known) {
    b.setInsertionPointAfterValue(value);
    known = dist::GatherSlicesOp::create(b, value.getLoc(), ofAll(value.getType(), whole), value, site++,
                                         DenseI64ArrayAttr());
  }
  return known;
}

LogicalResult Sharding::divideWeights(Operation *user, unsigned reference, int64_t along) {
  const nn::WeightRef ref = cast<nn::WeightUser>(user).getWeightRefs()[reference];
  auto family = ref.family ? symbols.lookup<nn::WeightsOp>(ref.family.getValue()) : nn::WeightsOp();
  if (!family)
    return user->emitError() << "shard-attention: its weights are no family, of which ranks could have parts; name one";
  const int64_t size = family.getTensorType().getShape()[along];
  if (size % ranks != 0 || (family.getParts() && int64_t(*family.getAlong()) != along))
    return user->emitError() << "shard-attention: @" << family.getSymName() << " has " << size << " in dimension "
                             << along << ", which " << ranks << " ranks do not divide alike; plan another tp";
  family.setParts(ranks);
  family.setAlong(along);
  return success();
}

/// `op` on gathered rows, `dimension` of its results divided, and of each operand of rows the one that `ofOperands`
/// says.
FailureOr<Operation *> Sharding::cloned(Operation *op, int64_t dimension, ArrayRef<int64_t> ofOperands) {
  IRMapping mapping;
  size_t number = 0;
  for (Value operand : op->getOperands()) {
    if (!nn::rowsOf(operand.getType()) && !isa<nn::KvViewType, mla::ViewType>(operand.getType()))
      continue;
    FailureOr<Value> own = gathered(operand, ofOperands[std::min(number++, ofOperands.size() - 1)]);
    if (failed(own))
      return failure();
    mapping.map(operand, *own);
  }
  b.setInsertionPoint(op);
  Operation *clone = b.clone(*op, mapping);
  for (OpResult result : clone->getResults())
    result.setType(ofAll(result.getType(), dimension));
  return clone;
}

/// Columns of a result are rows of the weight.
FailureOr<Operation *> Sharding::linear(nn::LinearOp op, int64_t dimension) {
  for (unsigned reference = 0; reference < op.getWeightRefs().size(); ++reference)
    if (failed(divideWeights(op, reference, dimension - 1)))
      return failure();
  IRMapping mapping;
  mapping.map(op.getInput(), gather(op.getInput()));
  b.setInsertionPoint(op);
  Operation *clone = b.clone(*op.getOperation(), mapping);
  clone->getResult(0).setType(ofAll(op.getType(), dimension));
  return clone;
}

/// Each rank caches its own heads.
FailureOr<Operation *> Sharding::appended(nn::AppendOp op) {
  auto pool = symbols.lookup<nn::PoolOp>(op.getPool());
  const int64_t heads = op.getView().getType().getHeads();
  if (heads % ranks != 0)
    return op.emitError() << "shard-attention: " << heads << " key-value heads are cached, which " << ranks
                          << " ranks do not divide; plan a tp that divides them",
           failure();
  SmallVector<Attribute> planes;
  for (auto plane : pool.getPlanes().getAsRange<nn::PlaneAttr>()) {
    SmallVector<int64_t> dims(plane.getDims());
    dims.front() = heads / ranks;
    planes.push_back(nn::PlaneAttr::get(pool.getContext(), plane.getName(), dims, plane.getElement()));
  }
  pool.setPlanesAttr(b.getArrayAttr(planes));
  return cloned(op, 1, {1});
}

/// What makes `result`, of which `dimension` is divided, from what has to be divided for that.
FailureOr<Value> Sharding::madeAnew(Operation *op, OpResult result, int64_t dimension) {
  using Made = FailureOr<Operation *>;
  const int64_t last = typeOf(result).getRank() - 1;
  auto refuse = [&]() -> Made {
    return op->emitError() << "shard-attention: '" << op->getName() << "' takes the heads or columns of all " << ranks
                           << " ranks together; plan tp=1",
           failure();
  };
  auto heads = [&](ArrayRef<unsigned> references) -> LogicalResult {
    for (unsigned reference : references)
      if (failed(divideWeights(op, reference, 0)))
        return failure();
    return success();
  };
  Made made = TypeSwitch<Operation *, Made>(op)
                  .Case([&](nn::LinearOp o) { return linear(o, dimension); })
                  .Case<nn::RmsNormOp, nn::RotaryOp, nn::SplitOp>([&](Operation *o) -> Made {
                    return dimension != whole && dimension == last ? refuse() : cloned(o, dimension, {dimension});
                  })
                  .Case([&](nn::GatedActOp o) { return cloned(o, dimension, {dimension + 1}); })
                  .Case<nn::AddOp, nn::ClipOp, nn::ReshapeOp, mla::MergeFormsOp>(
                      [&](Operation *o) { return cloned(o, dimension, {dimension}); })
                  .Case([&](nn::AttentionOp o) { return cloned(o, 1, {1, 1}); })
                  .Case<mla::AbsorbQueryOp, mla::ExpandOutputOp>(
                      [&](Operation *o) -> Made { return failed(heads({0})) ? Made(failure()) : cloned(o, 1, {1}); })
                  .Case([&](mla::AttentionAbsorbedOp o) { return cloned(o, 1, {1, 1, whole}); })
                  .Case([&](mla::AttentionExpandedOp o) -> Made {
                    return failed(heads({0, 1})) ? Made(failure()) : cloned(o, 1, {1, whole});
                  })
                  .Default([&](Operation *) { return refuse(); });
  if (failed(made))
    return failure();
  for (auto [old, own] : llvm::zip_equal(op->getResults(), (*made)->getResults()))
    anew[old] = {own, dimension};
  replaced.insert(op);
  return anew[result].first;
}

/// `value` of the rows of all slices, with `dimension` divided among ranks.
FailureOr<Value> Sharding::gathered(Value value, int64_t dimension) {
  if (auto known = anew.find(value); known != anew.end() && known->second.second == dimension)
    return known->second.first;
  Operation *op = value.getDefiningOp();
  if (auto append = dyn_cast_or_null<nn::AppendOp>(op)) {
    FailureOr<Operation *> made = appended(append);
    if (failed(made))
      return failure();
    anew[value] = {(*made)->getResult(0), dimension};
    replaced.insert(op);
    return (*made)->getResult(0);
  }
  if (auto append = dyn_cast_or_null<mla::AppendOp>(op)) {
    FailureOr<Operation *> made = cloned(append, whole, {whole});
    if (failed(made))
      return failure();
    anew[value] = {(*made)->getResult(0), dimension};
    replaced.insert(op);
    return (*made)->getResult(0);
  }
  const bool isComputed = op && (nn::isView(op) || isa<nn::RmsNormOp, nn::RotaryOp, nn::ClipOp>(op));
  if (dimension == whole && !isComputed)
    return gather(value);
  if (!op)
    return emitError(value.getLoc()) << "shard-attention: heads or columns come into the layer divided by nobody",
           failure();
  return madeAnew(op, cast<OpResult>(value), dimension);
}

/// Leaves end where parts do.
bool Sharding::comesOutEven(nn::LinearOp last) const {
  const int64_t width = typeOf(last.getInput()).getShape().back();
  const int64_t leaves = last.getOrder() ? last.getOrder()->getLeaves() : 1;
  return leavesComeOutEven(width, leaves, ranks);
}

bool Sharding::dividesMlp(nn::LinearOp last) const { return endsMlp(last) && !last.getBias() && comesOutEven(last); }

/// `last` contracts over what is divided.
LogicalResult Sharding::divide(nn::LinearOp last) {
  FailureOr<Value> input = gathered(last.getInput(), 1);
  if (failed(input) || failed(divideWeights(last, 0, typeOf(last.getResult()).getRank() - 1)))
    return failure();
  b.setInsertionPoint(last);
  Location loc = last.getLoc();
  const RankedTensorType type = typeOf(last.getResult());
  const auto sums = RankedTensorType::get(type.getShape(), b.getF32Type(), type.getEncoding());
  auto own = nn::TreeAttr::get(b.getContext(), last.getOrder()->getLeaves() / ranks);
  Value partial = nn::LinearOp::create(b, loc, ofAll(sums, whole), *input, last.getWeightAttr(),
                                       last.getWeightOperand(), FlatSymbolRefAttr(), Value(), own);
  auto scattered =
      dist::ScatterSlicesOp::create(b, loc, SmallVector<Type>(ranks, sums), partial, site++, DenseI64ArrayAttr());
  Value sum = nn::AddPartialsOp::create(b, loc, type, scattered.getParts());
  last.replaceAllUsesWith(sum);
  last.erase();
  return success();
}

/// What nobody reads any more; makers come before readers.
void Sharding::eraseReplaced() {
  for (Operation *op : llvm::to_vector(llvm::reverse(replaced)))
    if (op->use_empty()) {
      replaced.remove(op);
      op->erase();
    }
}

LogicalResult Sharding::run(nn::LayerOp layer) {
  SmallVector<nn::LinearOp> linears(layer.getFunctionBody().front().getOps<nn::LinearOp>());
  int64_t divided = 0, kept = 0;
  for (nn::LinearOp op : linears) {
    const bool isOfHeads = isAttention(makerOf(op.getInput()));
    if (isOfHeads && (op.getBias() || !comesOutEven(op)))
      return op.emitError() << "shard-attention: tp is " << ranks << ", and what is behind attention has "
                            << (op.getOrder() ? op.getOrder()->getLeaves() : 1) << " leaves of "
                            << typeOf(op.getInput()).getShape().back() << " columns"
                            << (op.getBias() ? " and a bias" : "") << "; plan a tp that divides these evenly";
    if (!isOfHeads && !dividesMlp(op)) {
      kept += endsMlp(op);
      continue;
    }
    if (failed(divide(op)))
      return failure();
    ++divided;
  }
  eraseReplaced();
  for (Operation *op : replaced)
    if (!nn::isView(op) &&
        !isa<nn::RmsNormOp, nn::RotaryOp, nn::ClipOp>(op)) // these are of all weights and of no cache
      return op->emitError() << "shard-attention: what it makes is read by more than attention and MLPs, and each rank "
                                "has a part of it; read it before it is divided";
  remark(layer.getLoc(), "shard-attention", "parts",
         std::to_string(divided) + " of attention and MLPs in parts on " + std::to_string(ranks) + " ranks" +
             (kept > 0 ? ", " + std::to_string(kept) + " whole on each, as leaves do not come out even, or have a bias"
                       : ""),
         {{"ranks", ranks}, {"divided", divided}, {"whole", kept}});
  return success();
}

struct ShardAttention : impl::ShardAttentionBase<ShardAttention> {
  using ShardAttentionBase::ShardAttentionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectForm(module, getArgument(), Form::Planned, Form::Distributed)))
      return signalPassFailure();
    const int64_t ranks = stageRanksOf(module).ofGroup;
    nn::LimitsAttr limits = nn::limitsOf(module);
    if (ranks == 1 || (limits && limits.getGathered()))
      return markAllAnalysesPreserved();
    if (!limits) {
      module.emitError() << "shard-attention: the module has no nn.limits, and slices are of a step; give it some";
      return signalPassFailure();
    }
    SymbolTable symbols(module);
    int64_t site = dist::countSites(module);
    for (auto layer : llvm::to_vector(module.getOps<nn::LayerOp>()))
      if (failed(Sharding(module, symbols, ranks, site).run(layer)))
        return signalPassFailure();
    const int64_t slice = (limits.getToken() + ranks - 1) / ranks;
    module->setAttr(nn::NnDialect::limitsAttrName,
                    nn::LimitsAttr::get(&getContext(), slice, limits.getSeq(), limits.getPositions(),
                                        limits.getOutput(), limits.getToken()));
  }
};

} // namespace
} // namespace k2c
