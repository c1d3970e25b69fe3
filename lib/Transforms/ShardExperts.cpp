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
//       %s = moe.locate %e                                slots of the world
//       %routes, %sent, %returned = moe.route_plan %s within world to rank
//       %m = moe.pack %x, %w, %routes
//       %in, %came = dist.all_to_all %m to %sent over ep
//       %y, %c, %v = moe.unpack %in, %came                rows, slots of the rank, router weights
//       ..                                                permutation .. grouped_linear, as above, on %y
//       %sums, %back = moe.return_plan %c, %came by rank
//       %u = moe.reduce_subtrees %d, %p, %c, %sums
//       %b = dist.all_to_all %u to %back from %returned over ep
//       %r = moe.combine %b, %routes, %e                  what is left of the tree
//
// Where nodes have several ranks, it goes in two hops: once to each node that has some, along the rail, which joins the
// ranks of one place on all nodes; there it fans out. What comes back is added up on the way:
//
//       %y, %c, %v = ..                                   as above, within world to node, over rail
//       %routes1, .. = moe.route_plan %c within node to rank
//       ..                                                as above, over node
//       %b1 = dist.all_to_all ..                          sums of the ranks
//       %sums, %back = moe.return_plan %c, %came by node
//       %u = moe.merge_subtrees %b1, %routes1, %c, %sums
//       %b = dist.all_to_all %u to %back from %returned over rail
//       %r = moe.combine %b, %routes, %e
//
// Where ranks next to each other have parts of the same experts (etp), each has the columns of some leaves of what the
// down projection contracts over (N1). That is one hop more behind those above, within a rank, to its parts:
//
//       %routes1, .. = moe.route_plan %c within rank to part
//       ..                                                as above, over etp; each row goes to all
//       %d = moe.grouped_linear ..                        f32, the sum of its leaves, without router weights
//       %sums, %back = moe.return_plan %c1, %came by part
//       %u = moe.reduce_subtrees .. by part               a row a choice
//       %b1 = dist.all_to_all ..
//       %d1 = moe.add_parts %b1, .. weighted %v           the output of each choice
//       %sums, %back = moe.return_plan %c, %came by rank
//       %u = moe.merge_subtrees %d1, %routes1, %c, %sums by rank
//
//===----------------------------------------------------------------------===//
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Kernels/KernelDesc.h"
#include "k2c/Planner/CompileLayout.h"
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
  int64_t ranks = 1, nodes = 1; ///< of the ranks that have parts of the same experts one
  int64_t parts = 1;            ///< of an expert
  bool isTwoHop = false;        ///< rows cross to nodes
  int64_t redundant = 0;        ///< slots beyond the experts
  nn::LimitsAttr limits;

  /// Of `experts` experts, on a rank.
  int64_t slots(int64_t experts) const { return (experts + redundant + ranks - 1) / ranks; }
};

/// The two ends of one hop, and the group that it crosses.
struct Hop {
  dist::Holder within, to;
  dist::Axis axis;
  int64_t members, held; ///< of the group; slots of a member

  bool isToParts() const { return to == dist::Holder::Part; }
};

/// Rows and the routing of each: those of the step, by expert or slot, or those that arrived, by slot.
struct RoutedRows {
  Value rows, experts, weights;
};

/// A hop's rows on their way there.
struct Sent {
  moe::RoutePlanOp plan;
  dist::AllToAllOp dispatch;
  RoutedRows arrived;
};

/// Expands one op.
class Expansion {
public:
  Expansion(moe::ExpertsOp op, const Division &division)
      : op(op), division(division), b(op), loc(op.getLoc()), element(typeOf(op.getInput()).getElementType()),
        top(typeOf(op.getExperts()).getShape().back()), hidden(typeOf(op.getInput()).getShape().back()) {}

  void onOneRank();
  /// `site`: of the first of its exchanges, and behind the last of them after it. Fails where nobody says which layers
  /// have experts, and where experts have no such parts.
  LogicalResult onRanks(SymbolTable &symbols, int64_t &site);

private:
  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
  Type rowsOf(nn::RowsAttr space, ArrayRef<int64_t> columns, Type type);
  nn::RowsAttr space(nn::RowKind kind, int64_t site, int64_t max) {
    return nn::RowsAttr::get(b.getContext(), kind, /*per_token=*/0, site, max);
  }
  IntegerAttr number(int64_t value) { return b.getI64IntegerAttr(value); }
  dist::HolderAttr of(dist::Holder holder) { return dist::HolderAttr::get(b.getContext(), holder); }
  int64_t rowBytes() const { return hidden * element.getIntOrFloatBitWidth() / 8; }
  /// Of `parts` parts one.
  std::pair<Value, Value> runExperts(const RoutedRows &in, moe::PermutationType type, int64_t parts);
  SmallVector<Hop> hops() const;
  LogicalResult divideWeights(SymbolTable &symbols);
  Sent send(const Hop &hop, const RoutedRows &in, int64_t site);
  moe::ReturnPlanOp planReturn(const Hop &hop, Sent sent);
  Value returnTo(const Hop &hop, Sent sent, Value sums, moe::ReturnPlanOp back, int64_t site);
  Value sumsOfRank(const Hop &hop, Sent sent, int64_t site);
  Value added(Sent sent, Value weights, Value parts);
  Value merged(const Hop &hop, Sent sent, Sent onward, Value sums, int64_t site);
  Type sumsAt(int64_t site, int64_t max, Type type) {
    return rowsOf(space(nn::RowKind::Subtree, site, max), {hidden}, type);
  }
  void replaceBy(Value result, StringRef place, const std::string &text);

  moe::ExpertsOp op;
  const Division division;
  OpBuilder b;
  Location loc;
  Type element;
  int64_t top, hidden;
  Value layer; ///< on several ranks, as what follows
  nn::IndicesAttr among;
  int64_t slots = 0; ///< of all ranks
};

/// [rows of `space`][columns...].
Type Expansion::rowsOf(nn::RowsAttr space, ArrayRef<int64_t> columns, Type type) {
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  shape.append(columns.begin(), columns.end());
  return RankedTensorType::get(shape, type, space);
}

/// The permutation and the outputs of the experts, by slot.
std::pair<Value, Value> Expansion::runExperts(const RoutedRows &in, moe::PermutationType type, int64_t parts) {
  auto slots = [&](ArrayRef<int64_t> columns) { return rowsOf(type.getSlots(), columns, element); };
  const int64_t inner = op.getInner() / parts;
  Value plan = moe::PermutationOp::create(b, loc, type, in.experts);
  Value rows = moe::PermuteOp::create(b, loc, slots({hidden}), in.rows, plan);
  Value gateUp = moe::GroupedLinearOp::create(b, loc, slots({2, inner}), rows, plan, op.getUpAttr(), op.getUpOperand(),
                                              Value(), op.getUpOrderAttr());
  Value act = nn::GatedActOp::create(b, loc, slots({inner}), gateUp, op.getActAttr());
  if (parts == 1)
    return {plan, moe::GroupedLinearOp::create(b, loc, slots({hidden}), act, plan, op.getDownAttr(),
                                               op.getDownOperand(), in.weights, op.getDownOrderAttr())};
  auto order = nn::TreeAttr::get(b.getContext(), op.getDownOrder()->getLeaves() / parts);
  return {plan, moe::GroupedLinearOp::create(b, loc, rowsOf(type.getSlots(), {hidden}, b.getF32Type()), act, plan,
                                             op.getDownAttr(), op.getDownOperand(), Value(), order)};
}

void Expansion::replaceBy(Value result, StringRef place, const std::string &text) {
  remark(loc, "shard-experts", place, text,
         {{"experts", int64_t(op.getCount())}, {"top_k", top}, {"ranks", division.ranks}});
  op.replaceAllUsesWith(result);
  op.erase();
}

void Expansion::onOneRank() {
  auto type = moe::PermutationType::get(b.getContext(), op.getCount(), top);
  auto [plan, down] = runExperts({op.getInput(), op.getExperts(), op.getWeights()}, type, 1);
  Value sum = moe::UnpermuteOp::create(b, loc, op.getType(), down, plan, op.getExperts(), op.getCombineAttr());
  replaceBy(sum, "one-rank", "all " + std::to_string(op.getCount()) + " experts on one rank: no exchange");
}

/// References are to the experts of a rank, and of each to a part: rows of gate and up, columns of down.
LogicalResult Expansion::divideWeights(SymbolTable &symbols) {
  // Of [experts][gate, up][inner][hidden] and [experts][hidden][inner].
  constexpr int64_t experts = 0, inner = 2;
  const int64_t leaves = op.getDownOrder() ? op.getDownOrder()->getLeaves() : 1;
  const bool comesOutEven = leavesComeOutEven(op.getInner(), leaves, division.parts);
  for (FlatSymbolRefAttr name : {op.getUpAttr(), op.getDownAttr()}) {
    auto family = symbols.lookup<nn::WeightsOp>(name.getValue());
    family.setHeld(division.slots(op.getCount()));
    if (division.parts == 1)
      continue;
    ArrayRef<int64_t> shape = family.getTensorType().getShape();
    if (!comesOutEven || shape.size() <= inner || shape[experts] != int64_t(op.getCount()) ||
        shape[inner] != int64_t(op.getInner()))
      return op.emitError() << "shard-experts: etp is " << division.parts << ", and @" << family.getSymName() << " of "
                            << family.getTensorType() << " is of experts whose down projection has " << leaves
                            << (leaves == 1 ? " leaf of " : " leaves of ") << op.getInner()
                            << " columns; plan an etp that divides these evenly, and gate and up apart";
    family.setParts(division.parts);
    family.setAlong(inner);
  }
  return success();
}

/// Rows of `in` to the members that have some of their slots, by quota.
Sent Expansion::send(const Hop &hop, const RoutedRows &in, int64_t site) {
  Type i32 = b.getI32Type(), f32 = b.getF32Type(), counts = dist::CountsType::get(b.getContext(), hop.members);
  const nn::RowsAttr planned = nn::rowsOf(in.rows.getType());
  auto messages = [&](int64_t max) {
    return rowsOf(space(nn::RowKind::Message, site, max), {k2rt_message_bytes(rowBytes(), top)}, b.getI8Type());
  };
  auto plan =
      moe::RoutePlanOp::create(b, loc, rowsOf(planned, {3, top}, i32), counts, counts, in.experts, layer, among,
                               number(op.getCount()), number(slots), of(hop.within), of(hop.to), number(hop.held));
  const dist::CountBounds sent = plan.getCountBounds(plan.getSent(), division.limits);
  const int64_t arrivals = hop.members * sent.one; // a row crosses to a member once
  Value packed = moe::PackOp::create(b, loc, messages(sent.all), in.rows, in.weights, plan.getRoutes());
  auto dispatch = dist::AllToAllOp::create(b, loc, messages(arrivals), counts, packed, plan.getSent(), Value(),
                                           dist::AxisAttr::get(b.getContext(), hop.axis), number(site),
                                           number(sent.one), DenseI64ArrayAttr());
  const nn::RowsAttr arrived = space(nn::RowKind::Recv, site, arrivals);
  auto rows = moe::UnpackOp::create(b, loc, rowsOf(arrived, {hidden}, element), rowsOf(arrived, {top}, i32),
                                    rowsOf(arrived, {top}, f32), dispatch.getResult(), dispatch.getCame());
  return {plan, dispatch, RoutedRows{rows.getRows(), rows.getSlots(), rows.getWeights()}};
}

moe::ReturnPlanOp Expansion::planReturn(const Hop &hop, Sent sent) {
  Type counts = dist::CountsType::get(b.getContext(), hop.members);
  const nn::RowsAttr arrived = nn::rowsOf(sent.arrived.rows.getType());
  return moe::ReturnPlanOp::create(b, loc, rowsOf(arrived, {2}, b.getI32Type()), counts, sent.arrived.experts,
                                   sent.dispatch.getCame(), layer, among, number(op.getCount()), number(slots),
                                   of(hop.to), number(hop.held));
}

/// `sums` to the members that the rows of `sent` came from.
Value Expansion::returnTo(const Hop &hop, Sent sent, Value sums, moe::ReturnPlanOp back, int64_t site) {
  Type arrived = sumsAt(site, sent.plan.getCountBounds(sent.plan.getReturned(), division.limits).all,
                        typeOf(sums).getElementType());
  return dist::AllToAllOp::create(b, loc, arrived, Type(), sums, back.getBack(), sent.plan.getReturned(),
                                  dist::AxisAttr::get(b.getContext(), hop.axis), number(site), IntegerAttr(),
                                  DenseI64ArrayAttr())
      .getResult();
}

/// Runs the experts of this rank on what was sent to it; their sums, back where it came from.
Value Expansion::sumsOfRank(const Hop &hop, Sent sent, int64_t site) {
  const nn::RowsAttr arrived = nn::rowsOf(sent.arrived.rows.getType());
  auto type = moe::PermutationType::get(b.getContext(), hop.held, top, arrived.getSite(), arrived.getMax());
  auto [permutation, down] = runExperts(sent.arrived, type, hop.isToParts() ? hop.members : 1);
  moe::ReturnPlanOp back = planReturn(hop, sent);
  Type sums = sumsAt(site, back.getCountBounds(back.getBack(), division.limits).all, typeOf(down).getElementType());
  Value reduced =
      moe::ReduceSubtreesOp::create(b, loc, sums, down, permutation, sent.arrived.experts, back.getSums(), layer, among,
                                    number(op.getCount()), number(slots), of(hop.to), op.getCombineAttr());
  return returnTo(hop, sent, reduced, back, site);
}

/// The outputs that `parts` of the rows of `sent` make together.
Value Expansion::added(Sent sent, Value weights, Value parts) {
  const int64_t site = nn::rowsOf(parts.getType()).getSite();
  Type outputs = sumsAt(site, sent.plan.getCountBounds(sent.plan.getReturned(), division.limits).one, element);
  return moe::AddPartsOp::create(b, loc, outputs, parts, sent.plan.getReturned(), sent.plan.getRoutes(), weights,
                                 op.getDownOrderAttr());
}

/// `sums`, which came back for rows of `sent` that had gone `onward`, added up for where they came from, and sent
/// there.
Value Expansion::merged(const Hop &hop, Sent sent, Sent onward, Value sums, int64_t site) {
  moe::ReturnPlanOp back = planReturn(hop, sent);
  Type type = sumsAt(site, back.getCountBounds(back.getBack(), division.limits).all, element);
  Value all = moe::MergeSubtreesOp::create(b, loc, type, sums, onward.plan.getRoutes(), sent.arrived.experts,
                                           back.getSums(), layer, among, number(op.getCount()), number(slots),
                                           of(hop.to), number(hop.held), op.getCombineAttr());
  return returnTo(hop, sent, all, back, site);
}

/// The way of a row to experts.
SmallVector<Hop> Expansion::hops() const {
  using dist::Holder, dist::Axis;
  const int64_t ranks = division.ranks, nodes = division.nodes, held = slots / ranks;
  SmallVector<Hop> way;
  if (division.isTwoHop) {
    way.push_back({Holder::World, Holder::Node, Axis::Rail, nodes, ranks / nodes * held});
    way.push_back({Holder::Node, Holder::Rank, Axis::Node, ranks / nodes, held});
  } else {
    way.push_back({Holder::World, Holder::Rank, Axis::Ep, ranks, held});
  }
  if (division.parts > 1)
    way.push_back({Holder::Rank, Holder::Part, Axis::Etp, division.parts, held});
  return way;
}

LogicalResult Expansion::onRanks(SymbolTable &symbols, int64_t &site) {
  auto routing = op.getExperts().getDefiningOp<moe::RoutingOp>();
  if (!routing || !op.getUpAttr() || !op.getDownAttr())
    return op.emitOpError("is divided by layers with experts, which the moe.routing of its experts names, and by "
                          "families of weights; let its experts come from a router");
  const int64_t ranks = division.ranks, nodes = division.nodes, held = division.slots(op.getCount());
  layer = routing.getLayer();
  among = routing.getAmongAttr();
  slots = ranks * held;
  if (failed(divideWeights(symbols)))
    return failure();
  Value places = moe::LocateOp::create(b, loc, op.getExperts().getType(), op.getExperts(), layer, among,
                                       number(op.getCount()), number(slots), number(slots / nodes));
  const SmallVector<Hop> way = hops();
  SmallVector<Sent> sent;
  for (const Hop &hop : way)
    sent.push_back(
        send(hop, sent.empty() ? RoutedRows{op.getInput(), places, op.getWeights()} : sent.back().arrived, site++));
  Value returned = sumsOfRank(way.back(), sent.back(), site++);
  for (size_t next = way.size() - 1; next > 0; --next) {
    const Sent &own = sent[next - 1];
    if (way[next].isToParts())
      returned = added(sent[next], own.arrived.weights, returned);
    returned = merged(way[next - 1], own, sent[next], returned, site++);
  }
  Value sum = moe::CombineOp::create(b, loc, op.getType(), returned, sent[0].plan.getRoutes(), op.getExperts(),
                                     number(op.getCount()), op.getCombineAttr());
  replaceBy(sum, division.isTwoHop ? "two-hop" : "divided",
            std::to_string(op.getCount()) + " experts on " + std::to_string(ranks) + " ranks, " + std::to_string(held) +
                " on each" + (division.parts > 1 ? " in " + std::to_string(division.parts) + " parts" : std::string()) +
                (division.isTwoHop ? ", by way of " + std::to_string(nodes) + " nodes" : std::string()) +
                ": a message has " + std::to_string(k2rt_message_bytes(rowBytes(), top)) + " bytes");
  return success();
}

/// The layout that this build compiles: of a stage, one rank, or as many ranks that have experts, or parts of them, as
/// have sequences, or parts of these.
FailureOr<Division> divisionOf(ModuleOp module) {
  Division division;
  dist::PlanAttr plan = planOf(module);
  if (!plan || plan.getLayout() == oneRankLayout)
    return division;
  Expected<ParallelLayout> layout = parseLayout(plan.getLayout().str(), PlanPhase::Serve);
  if (!layout)
    return module.emitError() << "shard-experts: " << layout.error().text();
  nn::LimitsAttr limits = nn::limitsOf(module);
  const int64_t stageRanks = layout->devices() / (layout->pp * layout->replicas);
  const bool isGroup = !layout->dividesExperts() && layout->tp == stageRanks; // each rank has all experts
  if (layout->devices() < 2 || (layout->ep * layout->etp != stageRanks && !isGroup) ||
      layout->tp * layout->dp != stageRanks || !limits)
    return module.emitError() << "shard-experts: the plan's layout is '" << plan.getLayout() << "' of "
                              << layout->devices() << " ranks; this build compiles for one, '" << oneRankLayout
                              << "', or for as many expert ranks as a stage has, 'ep=2,dp=2', under nn.limits";
  auto topology = module->getAttrOfType<dist::TopologyAttr>(dist::DistDialect::topologyAttrName);
  const int64_t nodes =
      topology && topology.getRanks() == layout->devices() ? nodesOfStage(*layout, topology.getNodes()) : 1;
  const bool isTwoHop = nodes > 1 && nodes < layout->ep && !isLeftOut(module, OptionalPass::TwoHop);
  division = {layout->ep, nodes, layout->etp, isTwoHop, layout->redundantExperts, limits};
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
    int64_t site = dist::countSites(getOperation());
    for (moe::ExpertsOp op : work) {
      Expansion expansion(op, *division);
      if (division->ranks * division->parts == 1)
        expansion.onOneRank();
      else if (failed(expansion.onRanks(symbols, site)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace k2c
