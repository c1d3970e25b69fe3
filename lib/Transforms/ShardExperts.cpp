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
// On several ranks the experts are divided, and the same ops work on rows that arrived. A row goes once to each rank
// that has some of its experts, and comes back as one sum for each subtree of N5's tree that such a rank has whole:
//
//       %routes, %sent, %returned = moe.route_plan %e
//       %m = moe.pack %x, %w, %routes
//       %in, %came = dist.all_to_all %m to %sent
//       %y, %c, %v = moe.unpack %in, %came                rows, choices among the rank's experts, router weights
//       ..                                                permutation .. grouped_linear, as above, on %y
//       %sums, %back = moe.return_plan %c, %came
//       %u = moe.reduce_subtrees %d, %p, %c, %sums
//       %b = dist.all_to_all %u to %back from %returned
//       %r = moe.combine %b, %routes, %e                  what is left of the tree
//
//===----------------------------------------------------------------------===//
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Planner/Evaluate.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"
#include "k2rt/placement.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

namespace k2c {
#define GEN_PASS_DEF_SHARDEXPERTS
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// How the plan divides the experts of a layer.
struct Division {
  int64_t ranks = 1;
  int64_t redundant = 0; ///< slots beyond the experts
  nn::LimitsAttr limits;

  /// Of `experts` experts, on a rank.
  int64_t slots(int64_t experts) const { return (experts + redundant + ranks - 1) / ranks; }
};

/// Rows and the routing of each: those of the step, or those that arrived.
struct RoutedRows {
  Value rows, experts, weights;
};

/// Expands one op.
class Expansion {
public:
  Expansion(moe::ExpertsOp op, const Division &division)
      : op(op), division(division), b(op), loc(op.getLoc()), element(typeOf(op.getInput()).getElementType()),
        top(typeOf(op.getExperts()).getShape().back()), hidden(typeOf(op.getInput()).getShape().back()) {}

  void onOneRank();
  /// `site`: of the first of two exchanges. Fails where nobody says which layers have experts.
  LogicalResult onRanks(SymbolTable &symbols, int64_t site);

private:
  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
  Type rowsOf(nn::RowsAttr space, ArrayRef<int64_t> columns, Type type);
  nn::RowsAttr space(nn::RowKind kind, int64_t site, int64_t max) {
    return nn::RowsAttr::get(b.getContext(), kind, /*per_token=*/0, site, max);
  }
  std::pair<Value, Value> runExperts(const RoutedRows &in, moe::PermutationType type);
  void replaceBy(Value result, StringRef place, const std::string &text);

  moe::ExpertsOp op;
  const Division division;
  OpBuilder b;
  Location loc;
  Type element;
  int64_t top, hidden;
};

/// [rows of `space`][columns...].
Type Expansion::rowsOf(nn::RowsAttr space, ArrayRef<int64_t> columns, Type type) {
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  shape.append(columns.begin(), columns.end());
  return RankedTensorType::get(shape, type, space);
}

/// The permutation and the outputs of the experts, by slot.
std::pair<Value, Value> Expansion::runExperts(const RoutedRows &in, moe::PermutationType type) {
  auto slots = [&](ArrayRef<int64_t> columns) { return rowsOf(type.getSlots(), columns, element); };
  const int64_t inner = op.getInner();
  Value plan = moe::PermutationOp::create(b, loc, type, in.experts);
  Value rows = moe::PermuteOp::create(b, loc, slots({hidden}), in.rows, plan);
  Value gateUp = moe::GroupedLinearOp::create(b, loc, slots({2, inner}), rows, plan, op.getUpAttr(), op.getUpOperand(),
                                              Value(), op.getUpOrderAttr());
  Value act = nn::GatedActOp::create(b, loc, slots({inner}), gateUp, op.getActAttr());
  Value down = moe::GroupedLinearOp::create(b, loc, slots({hidden}), act, plan, op.getDownAttr(), op.getDownOperand(),
                                            in.weights, op.getDownOrderAttr());
  return {plan, down};
}

void Expansion::replaceBy(Value result, StringRef place, const std::string &text) {
  remark(loc, "shard-experts", place, text,
         {{"experts", int64_t(op.getCount())}, {"top_k", top}, {"ranks", division.ranks}});
  op.replaceAllUsesWith(result);
  op.erase();
}

void Expansion::onOneRank() {
  auto type = moe::PermutationType::get(b.getContext(), op.getCount(), top);
  auto [plan, down] = runExperts({op.getInput(), op.getExperts(), op.getWeights()}, type);
  Value sum = moe::UnpermuteOp::create(b, loc, op.getType(), down, plan, op.getExperts(), op.getCombineAttr());
  replaceBy(sum, "one-rank", "all " + std::to_string(op.getCount()) + " experts on one rank: no exchange");
}

/// References to `family` are to the experts of a rank.
void divide(SymbolTable &symbols, FlatSymbolRefAttr family, int64_t slots) {
  symbols.lookup<nn::WeightsOp>(family.getValue()).setHeld(slots);
}

LogicalResult Expansion::onRanks(SymbolTable &symbols, int64_t site) {
  auto routing = op.getExperts().getDefiningOp<moe::RoutingOp>();
  if (!routing || !op.getUpAttr() || !op.getDownAttr())
    return op.emitOpError("is divided by layers with experts, which the moe.routing of its experts names, and by "
                          "families of weights; let its experts come from a router");
  const int64_t experts = op.getCount(), slots = division.slots(experts), ranks = division.ranks;
  const int64_t arrivals = ranks * division.limits.getToken(); // a token crosses to a rank once
  const int64_t rowBytes = hidden * element.getIntOrFloatBitWidth() / 8;
  Type i32 = b.getI32Type(), f32 = b.getF32Type(), counts = dist::CountsType::get(b.getContext(), ranks);
  auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  auto token = nn::RowsAttr::get(b.getContext(), nn::RowKind::Token);
  nn::RowsAttr arrived = space(nn::RowKind::Recv, site, arrivals);
  auto messages = [&](int64_t max) {
    return rowsOf(space(nn::RowKind::Message, site, max), {k2rt_message_bytes(rowBytes, top)}, b.getI8Type());
  };
  auto sums = [&](int64_t max) { return rowsOf(space(nn::RowKind::Subtree, site + 1, max), {hidden}, element); };
  auto axis = dist::AxisAttr::get(b.getContext(), dist::Axis::Ep);
  Value layer = routing.getLayer();
  nn::IndicesAttr among = routing.getAmongAttr();

  auto plan = moe::RoutePlanOp::create(b, loc, rowsOf(token, {3, top}, i32), counts, counts, op.getExperts(), layer,
                                       among, number(experts), number(slots));
  const dist::CountBounds sent = plan.getCountBounds(plan.getSent(), division.limits);
  Value packed = moe::PackOp::create(b, loc, messages(sent.all), op.getInput(), op.getWeights(), plan.getRoutes());
  auto dispatch = dist::AllToAllOp::create(b, loc, messages(arrivals), counts, packed, plan.getSent(), Value(), axis,
                                           number(site), number(sent.one), DenseI64ArrayAttr());
  auto in = moe::UnpackOp::create(b, loc, rowsOf(arrived, {hidden}, element), rowsOf(arrived, {top}, i32),
                                  rowsOf(arrived, {top}, f32), dispatch.getResult(), dispatch.getCame());
  divide(symbols, op.getUpAttr(), slots);
  divide(symbols, op.getDownAttr(), slots);
  auto type = moe::PermutationType::get(b.getContext(), slots, top, site, arrivals);
  auto [permutation, down] = runExperts({in.getRows(), in.getSlots(), in.getWeights()}, type);
  auto back = moe::ReturnPlanOp::create(b, loc, rowsOf(arrived, {2}, i32), counts, in.getSlots(), dispatch.getCame(),
                                        layer, among, number(experts), number(slots));
  Value partial = moe::ReduceSubtreesOp::create(b, loc, sums(back.getCountBounds(back.getBack(), division.limits).all),
                                                down, permutation, in.getSlots(), back.getSums(), layer, among,
                                                number(experts), number(ranks), op.getCombineAttr());
  auto returned = dist::AllToAllOp::create(b, loc, sums(plan.getCountBounds(plan.getReturned(), division.limits).all),
                                           Type(), partial, back.getBack(), plan.getReturned(), axis, number(site + 1),
                                           IntegerAttr(), DenseI64ArrayAttr());
  Value sum = moe::CombineOp::create(b, loc, op.getType(), returned.getResult(), plan.getRoutes(), op.getExperts(),
                                     number(experts), op.getCombineAttr());
  replaceBy(sum, "divided",
            std::to_string(experts) + " experts on " + std::to_string(ranks) + " ranks, " + std::to_string(slots) +
                " on each: a message has " + std::to_string(k2rt_message_bytes(rowBytes, top)) + " bytes");
  return success();
}

/// The layout that this build compiles: one rank, or as many expert ranks as data-parallel ranks.
FailureOr<Division> divisionOf(ModuleOp module) {
  Division division;
  dist::PlanAttr plan = planOf(module);
  if (!plan || plan.getLayout() == oneRankLayout)
    return division;
  Expected<ParallelLayout> layout = parseLayout(plan.getLayout().str(), PlanPhase::Serve);
  if (!layout)
    return module.emitError() << "shard-experts: " << layout.error().text();
  nn::LimitsAttr limits = nn::limitsOf(module);
  if (layout->ep < 2 || layout->ep != layout->devices() || layout->dp != layout->ep || !limits)
    return module.emitError() << "shard-experts: the plan's layout is '" << plan.getLayout() << "' of "
                              << layout->devices() << " ranks; this build compiles for one, '" << oneRankLayout
                              << "', or for as many expert as data-parallel ranks, 'ep=2,dp=2', under nn.limits";
  division = {layout->ep, layout->redundantExperts, limits};
  return division;
}

struct ShardExperts : impl::ShardExpertsBase<ShardExperts> {
  using ShardExpertsBase::ShardExpertsBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Planned, Form::Distributed)))
      return signalPassFailure();
    FailureOr<Division> division = divisionOf(getOperation());
    if (failed(division))
      return signalPassFailure();
    SmallVector<moe::ExpertsOp> work;
    getOperation().walk([&](moe::ExpertsOp op) { work.push_back(op); });
    SymbolTable symbols(getOperation());
    int64_t site = 0;
    for (moe::ExpertsOp op : work) {
      Expansion expansion(op, *division);
      if (division->ranks == 1)
        expansion.onOneRank();
      else if (failed(expansion.onRanks(symbols, site)))
        return signalPassFailure();
      site += 2;
    }
  }
};

} // namespace
} // namespace k2c
