//===- ExchangeWorld.h - A layer's experts on several ranks, in one process -----------------------------===//
//
// Runs the kernels of an exchange for each rank in turn and moves messages between them as the runtime does: what a
// member may send has a place of its own. Each expert's output is a known row of (rank, token, choice), so that sums
// are those of the exchange alone.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_KERNELS_EXCHANGEWORLD_H
#define K2C_UNIT_KERNELS_EXCHANGEWORLD_H

#include "TestStep.h"
#include "k2rt/placement.h"
#include <algorithm>
#include <numeric>

namespace k2c::test {

/// Runs a kernel, its scalar reading or its code.
using RunKernel = std::function<void(const KernelDesc &, const k2rt_ir_step &, const std::vector<void *> &)>;

struct ExchangeShape {
  int64_t experts = 12, topK = 3, ranks = 2, slots = 6, width = 20;
  std::vector<int64_t> tokens = {5, 3}; ///< of each rank
  bool isShuffled = false;              ///< experts lie anywhere, else in order
  DType type = DType::F32;
  int64_t nodes = 1;      ///< of several, rows cross to nodes first
  bool hasCopies = false; ///< spare slots have experts, too, in order or any
};

class ExchangeWorld {
public:
  explicit ExchangeWorld(const ExchangeShape &shape);

  /// The sums of all tokens of a rank, by the exchange.
  std::vector<Array> exchange(const RunKernel &run);
  /// The same on one rank: UnpermuteDesc.
  std::vector<Array> unpermute(const RunKernel &run);
  /// Rows that went from one rank to another, and rows that came back from there; of these, to another node.
  int64_t travelled = 0, returned = 0, crossed = 0, crossedBack = 0;

private:
  enum Holder { OfRank, OfNode, OfWorld };
  struct Hop {
    Holder within, to;
    int64_t members, held; ///< of the group; slots of a member
  };
  /// Rows that a rank has, by slots of a holder; `came` if they arrived.
  struct Load {
    k2rt_ir_step step = {};
    Array x;
    std::vector<int32_t> slots;
    std::vector<float> weights;
    std::vector<int64_t> came = {};
    Load(int64_t rows, Array x) : x(std::move(x)) { step.token_rows = rows; }
  };
  struct Plan {
    std::vector<int32_t> routes;
    std::vector<int64_t> sent, returned;
    std::vector<char> messages;
  };
  struct Sums {
    std::vector<int64_t> back;
    Array rows;
  };
  struct Tokens {
    std::vector<int32_t> chosen;
    std::vector<float> weights;
    Array x, contributions; ///< [tokens][width], [tokens * topK][width]
  };

  Rows rows(RowSpace space = RowSpace::Token) const { return {space, s.width, s.width, s.type}; }
  int64_t rowBytes() const { return s.width * byteWidth(s.type); }
  int64_t messageBytes() const { return k2rt_message_bytes(rowBytes(), s.topK); }
  int64_t perNode() const { return s.ranks / s.nodes; }
  /// Rank `member` of the group of `rank`, and the place of `rank` in it.
  int64_t peer(const Hop &hop, int64_t rank, int64_t member) const {
    return hop.to == OfNode        ? member * perNode() + rank % perNode()
           : hop.within == OfWorld ? member
                                   : rank / perNode() * perNode() + member;
  }
  int64_t self(const Hop &hop, int64_t rank) const {
    return hop.to == OfNode ? rank / perNode() : hop.within == OfWorld ? rank : rank % perNode();
  }
  int32_t *held(Holder holder, int64_t rank) {
    const int64_t first = holder == OfWorld ? 0 : holder == OfNode ? rank / perNode() * perNode() : rank;
    return tables[rank].data() + first * s.slots;
  }
  int32_t *subtrees(Holder holder) {
    const int64_t slots = s.ranks * s.slots;
    return tables[0].data() + (holder == OfNode ? k2rt_placement_node_subtree(s.experts, slots)
                                                : k2rt_placement_rank_subtree(s.experts, slots));
  }
  void count(const Hop &hop, int64_t from, int64_t to, int64_t number, int64_t &all, int64_t &between) {
    all += hop.to == OfRank && from != to ? number : 0;
    between += from / perNode() != to / perNode() ? number : 0;
  }

  void place(Random &random);
  Load locate(int64_t rank, const RunKernel &run);
  std::vector<Plan> send(const Hop &hop, std::vector<Load> &loads, const RunKernel &run);
  std::vector<Load> receive(const Hop &hop, std::vector<Load> &loads, std::vector<Plan> &plans, const RunKernel &run);
  std::vector<int32_t> planReturn(const Hop &hop, int64_t rank, Load &load, Sums &sums, const RunKernel &run);
  Array runExperts(int64_t rank, Load &load, std::vector<int32_t> &permutation, const RunKernel &run);
  Sums compute(const Hop &hop, int64_t rank, Load &load, const RunKernel &run);
  Sums merge(const Hop &hop, int64_t rank, Load &load, Plan &plan, Array &back, const RunKernel &run);
  std::vector<Array> bring(const Hop &hop, std::vector<Plan> &plans, std::vector<Sums> &sums);

  ExchangeShape s;
  int64_t leaves;
  std::vector<std::vector<int32_t>> tables; ///< of each rank
  std::vector<Tokens> all;
};

inline ExchangeWorld::ExchangeWorld(const ExchangeShape &shape) : s(shape), leaves(combineLeaves(shape.experts)) {
  Random random(11);
  place(random);
  for (int64_t rank = 0; rank < s.ranks; ++rank) {
    const int64_t tokens = s.tokens[rank];
    Array x(s.type, tokens * s.width);
    for (int64_t t = 0; t < tokens; ++t) { // says whose row it is
      x.set(t * s.width, float(rank));
      x.set(t * s.width + 1, float(t));
    }
    all.push_back(
        {{}, random.vector(tokens * s.topK), std::move(x), Array(s.type, random.vector(tokens * s.topK * s.width))});
    for (int64_t t = 0; t < tokens; ++t) {
      std::vector<int32_t> experts(s.experts);
      std::iota(experts.begin(), experts.end(), 0);
      for (int64_t k = 0; k < s.topK; ++k) {
        std::swap(experts[k], experts[k + random.below(s.experts - k)]);
        all.back().chosen.push_back(t % 5 == 4 || random.below(7) == 6 ? -1 : experts[k]);
      }
    }
  }
}

/// Experts in their slots, copies of some in those left over, and what follows from that for each rank.
inline void ExchangeWorld::place(Random &random) {
  const int64_t slots = s.ranks * s.slots;
  std::vector<int32_t> places(slots), expertOf(slots, -1), list(k2rt_places_entries(s.experts, slots));
  std::iota(places.begin(), places.end(), 0);
  for (size_t i = 0; s.isShuffled && i < places.size(); ++i)
    std::swap(places[i], places[i + random.below(int64_t(places.size() - i))]);
  for (int64_t i = 0; i < (s.hasCopies ? slots : s.experts); ++i) {
    const auto expert = int32_t(i < s.experts || !s.isShuffled ? i % s.experts : random.below(s.experts));
    const auto own = expertOf.begin() + places[i] / s.slots * s.slots;
    if (std::find(own, own + s.slots, expert) == own + s.slots) // not twice on a rank
      expertOf[places[i]] = expert;
  }
  for (int64_t rank = 0; rank < s.ranks; ++rank) {
    tables.emplace_back(k2rt_placement_entries(s.experts, slots), -9);
    std::copy(expertOf.begin(), expertOf.end(), tables.back().begin());
    k2rt_placement_fill(tables.back().data(), list.data(), s.experts, slots, s.ranks, s.nodes, rank);
  }
}

inline ExchangeWorld::Load ExchangeWorld::locate(int64_t rank, const RunKernel &run) {
  const Tokens &tokens = all[rank];
  Load load(int64_t(tokens.chosen.size()) / s.topK, tokens.x);
  load.slots.assign(tokens.chosen.size(), -9);
  load.weights = tokens.weights;
  std::vector<int32_t> chosen = tokens.chosen;
  const int64_t slots = s.ranks * s.slots;
  run({"locate", LocateDesc{s.experts, s.topK, slots, slots / s.nodes}}, load.step,
      {chosen.data(), tables[rank].data() + k2rt_placement_places(s.experts, slots), load.slots.data()});
  return load;
}

inline std::vector<ExchangeWorld::Plan> ExchangeWorld::send(const Hop &hop, std::vector<Load> &loads,
                                                            const RunKernel &run) {
  std::vector<Plan> plans;
  for (int64_t rank = 0; rank < s.ranks; ++rank) {
    Load &load = loads[rank];
    const int64_t rows = load.step.token_rows;
    Plan plan{std::vector<int32_t>(rows * 3 * s.topK, -9), std::vector<int64_t>(2 * hop.members, -9),
              std::vector<int64_t>(2 * hop.members, -9), std::vector<char>(rows * hop.members * messageBytes(), 0x55)};
    run({"route_plan", RoutePlanDesc{s.experts, s.topK, hop.members, hop.held}}, load.step,
        {load.slots.data(), held(hop.within, rank), subtrees(hop.to), plan.routes.data(), plan.sent.data(),
         plan.returned.data()});
    run({"pack", PackDesc{this->rows(), s.topK}}, load.step,
        {load.x.data(), load.weights.data(), plan.routes.data(), plan.messages.data()});
    plans.push_back(std::move(plan));
  }
  return plans;
}

/// What comes has a place of its own for each member.
inline std::vector<ExchangeWorld::Load> ExchangeWorld::receive(const Hop &hop, std::vector<Load> &loads,
                                                               std::vector<Plan> &plans, const RunKernel &run) {
  int64_t quota = 0;
  for (const Load &load : loads)
    quota = std::max(quota, load.step.token_rows);
  std::vector<Load> arrived;
  for (int64_t rank = 0; rank < s.ranks; ++rank) {
    std::vector<int64_t> came(2 * hop.members);
    std::vector<char> in(hop.members * quota * messageBytes(), 0x55);
    for (int64_t member = 0; member < hop.members; ++member) {
      const int64_t from = peer(hop, rank, member), at = self(hop, rank);
      came[member] = plans[from].sent[at];
      came[hop.members + member] = member * quota;
      std::copy_n(plans[from].messages.begin() + plans[from].sent[hop.members + at] * messageBytes(),
                  came[member] * messageBytes(), in.begin() + member * quota * messageBytes());
      count(hop, from, rank, came[member], travelled, crossed);
    }
    const int64_t rows = std::accumulate(came.begin(), came.begin() + hop.members, int64_t(0));
    Load load(rows, Array(s.type, rows * s.width));
    load.slots.assign(rows * s.topK, -9);
    load.weights.assign(rows * s.topK, 0);
    load.came = came;
    run({"unpack", UnpackDesc{this->rows(), s.topK, hop.members}}, load.step,
        {in.data(), came.data(), load.x.data(), load.slots.data(), load.weights.data()});
    arrived.push_back(std::move(load));
  }
  return arrived;
}

/// Counts what goes back; where the sums of each row begin.
inline std::vector<int32_t> ExchangeWorld::planReturn(const Hop &hop, int64_t rank, Load &load, Sums &sums,
                                                      const RunKernel &run) {
  std::vector<int32_t> places(load.step.token_rows * 2, -9);
  sums.back.assign(2 * hop.members, -9);
  run({"return_plan", ReturnPlanDesc{s.experts, s.topK, hop.members, hop.held}}, load.step,
      {load.slots.data(), load.came.data(), held(hop.to, rank), subtrees(hop.to), places.data(), sums.back.data()});
  return places;
}

/// What the experts of a rank make of the rows that came: what their tokens know.
inline Array ExchangeWorld::runExperts(int64_t rank, Load &load, std::vector<int32_t> &permutation,
                                       const RunKernel &run) {
  const int64_t routes = load.step.token_rows * s.topK;
  permutation.assign(s.slots + 1 + 2 * routes, -9);
  run({"permutation", PermutationDesc{s.slots, s.topK}}, load.step, {load.slots.data(), permutation.data()});
  Array out(s.type, routes * s.width);
  for (int64_t route = 0; route < routes; ++route) {
    if (load.slots[route] < 0)
      continue;
    Tokens &owner = all[int64_t(load.x[route / s.topK * s.width])];
    const int64_t own = int64_t(load.x[route / s.topK * s.width + 1]) * s.topK + route % s.topK;
    EXPECT_EQ(held(OfRank, rank)[load.slots[route]], owner.chosen[own]);
    EXPECT_EQ(load.weights[route], owner.weights[own]);
    const int64_t slot = permutation[s.slots + 1 + routes + route];
    std::memcpy(out.at(slot * s.width), owner.contributions.at(own * s.width), rowBytes());
  }
  return out;
}

inline ExchangeWorld::Sums ExchangeWorld::compute(const Hop &hop, int64_t rank, Load &load, const RunKernel &run) {
  std::vector<int32_t> permutation;
  Array out = runExperts(rank, load, permutation, run);
  Sums sums{{}, Array(s.type, load.step.token_rows * s.topK * s.width)};
  std::vector<int32_t> places = planReturn(hop, rank, load, sums, run);
  run({"reduce_subtrees", ReduceSubtreesDesc{rows(RowSpace::Slot), rows(), s.experts, s.topK, s.slots, leaves}},
      load.step,
      {out.data(), permutation.data(), load.slots.data(), places.data(), held(OfRank, rank), subtrees(OfRank),
       sums.rows.data()});
  return sums;
}

inline ExchangeWorld::Sums ExchangeWorld::merge(const Hop &hop, int64_t rank, Load &load, Plan &plan, Array &back,
                                                const RunKernel &run) {
  Sums sums{{}, Array(s.type, load.step.token_rows * s.topK * s.width)};
  std::vector<int32_t> places = planReturn(hop, rank, load, sums, run);
  run({"merge_subtrees", MergeSubtreesDesc{rows(), rows(), s.experts, s.topK, hop.held, leaves}}, load.step,
      {back.data(), plan.routes.data(), load.slots.data(), places.data(), held(OfNode, rank), subtrees(OfNode),
       sums.rows.data()});
  return sums;
}

/// The sums that come back to each rank, where its plan expects them.
inline std::vector<Array> ExchangeWorld::bring(const Hop &hop, std::vector<Plan> &plans, std::vector<Sums> &sums) {
  std::vector<Array> back;
  for (int64_t rank = 0; rank < s.ranks; ++rank) {
    Plan &plan = plans[rank];
    Array in(s.type, int64_t(plan.routes.size()) / 3 * s.width);
    for (int64_t member = 0; member < hop.members; ++member) {
      const int64_t from = peer(hop, rank, member), at = self(hop, rank);
      EXPECT_EQ(plan.returned[member], sums[from].back[at]) << "both sides count sums alike";
      std::memcpy(in.at(plan.returned[hop.members + member] * s.width),
                  sums[from].rows.at(sums[from].back[hop.members + at] * s.width), plan.returned[member] * rowBytes());
      count(hop, from, rank, plan.returned[member], returned, crossedBack);
    }
    back.push_back(std::move(in));
  }
  return back;
}

inline std::vector<Array> ExchangeWorld::exchange(const RunKernel &run) {
  const bool isTwoHop = s.nodes > 1;
  const Hop rail{OfWorld, OfNode, s.nodes, perNode() * s.slots}, node{OfNode, OfRank, perNode(), s.slots};
  const Hop first = isTwoHop ? rail : Hop{OfWorld, OfRank, s.ranks, s.slots}, last = isTwoHop ? node : first;
  std::vector<Load> own;
  for (int64_t rank = 0; rank < s.ranks; ++rank)
    own.push_back(locate(rank, run));
  std::vector<Plan> plans = send(first, own, run), onward;
  std::vector<Load> arrived = receive(first, own, plans, run), through;
  if (isTwoHop) {
    onward = send(node, arrived, run);
    through = std::move(arrived);
    arrived = receive(node, through, onward, run);
  }
  std::vector<Sums> sums;
  for (int64_t rank = 0; rank < s.ranks; ++rank)
    sums.push_back(compute(last, rank, arrived[rank], run));
  if (isTwoHop) {
    std::vector<Array> back = bring(node, onward, sums);
    sums.clear();
    for (int64_t rank = 0; rank < s.ranks; ++rank)
      sums.push_back(merge(rail, rank, through[rank], onward[rank], back[rank], run));
  }
  std::vector<Array> back = bring(first, plans, sums), result;
  for (int64_t rank = 0; rank < s.ranks; ++rank) {
    result.emplace_back(s.type, int64_t(all[rank].chosen.size()) / s.topK * s.width);
    run({"combine", CombineDesc{rows(), rows(), s.experts, s.topK, leaves}}, own[rank].step,
        {back[rank].data(), plans[rank].routes.data(), all[rank].chosen.data(), result.back().data()});
  }
  return result;
}

inline std::vector<Array> ExchangeWorld::unpermute(const RunKernel &run) {
  std::vector<Array> sums;
  for (Tokens &rank : all) {
    const int64_t routes = int64_t(rank.chosen.size()), tokens = routes / s.topK;
    k2rt_ir_step step = {};
    step.token_rows = tokens;
    std::vector<int32_t> permutation(s.experts + 1 + 2 * routes);
    run({"permutation", PermutationDesc{s.experts, s.topK}}, step, {rank.chosen.data(), permutation.data()});
    Array slots(s.type, routes * s.width), y(s.type, tokens * s.width);
    for (int64_t route = 0; route < routes; ++route)
      if (const int32_t slot = permutation[s.experts + 1 + routes + route]; slot >= 0)
        std::memcpy(slots.at(slot * s.width), rank.contributions.at(route * s.width), s.width * byteWidth(s.type));
    run({"unpermute", UnpermuteDesc{rows(RowSpace::Slot), rows(), s.experts, s.topK, leaves}}, step,
        {slots.data(), permutation.data(), rank.chosen.data(), y.data()});
    sums.push_back(std::move(y));
  }
  return sums;
}

/// Numbers of experts that ranks divide and do not, fewer experts than ranks, ranks without tokens, whole and divided
/// leaves; in one hop and in two; experts that are on several ranks.
inline std::vector<ExchangeShape> exchangeShapes() {
  std::vector<ExchangeShape> shapes = {{12, 3, 2, 6, 20, {5, 3}},
                                       {12, 4, 3, 4, 7, {6, 0, 9}},
                                       {11, 3, 4, 3, 20, {1, 2, 3, 4}},
                                       {384, 8, 8, 48, 5, {9, 0, 0, 4, 1, 1, 2, 3}},
                                       {3, 2, 5, 1, 16, {2, 2, 0, 0, 7}},
                                       {16, 2, 1, 16, 9, {8}},
                                       {14, 5, 3, 5, 33, {10, 11, 12}},
                                       {160, 6, 6, 27, 8, {3, 3, 3, 3, 3, 3}},
                                       {32, 8, 8, 4, 6, {9, 0, 0, 4, 1, 1, 2, 3}, false, DType::F32, 4},
                                       {12, 4, 6, 2, 7, {5, 0, 9, 1, 1, 4}, false, DType::F32, 3},
                                       {11, 6, 4, 3, 20, {7, 2, 3, 4}, false, DType::F32, 2},
                                       {24, 7, 6, 4, 8, {3, 3, 0, 3, 3, 3}, false, DType::F32, 2},
                                       {16, 5, 4, 8, 8, {6, 3, 9, 5}, false, DType::F32, 1, true},
                                       {12, 5, 6, 5, 8, {6, 3, 9, 5, 0, 4}, false, DType::F32, 3, true},
                                       {32, 8, 8, 7, 6, {9, 3, 0, 4, 1, 1, 2, 3}, false, DType::F32, 4, true},
                                       {3, 2, 6, 2, 16, {2, 2, 0, 6, 7, 1}, false, DType::F32, 3, true}};
  for (size_t i = 0, count = shapes.size(); i < count; ++i) {
    shapes.push_back(shapes[i]);
    shapes.back().isShuffled = true;
    shapes.back().type = i % 2 ? DType::BF16 : DType::F32;
  }
  return shapes;
}

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_EXCHANGEWORLD_H
