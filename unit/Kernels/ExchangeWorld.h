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
};

class ExchangeWorld {
public:
  explicit ExchangeWorld(const ExchangeShape &shape);

  /// The sums of all tokens of a rank, by the exchange.
  std::vector<Array> exchange(const RunKernel &run);
  /// The same on one rank: UnpermuteDesc.
  std::vector<Array> unpermute(const RunKernel &run);
  /// Rows that went from one rank to another, and rows that came back from there.
  int64_t travelled = 0, returned = 0;

private:
  struct Rank {
    k2rt_ir_step step = {};
    std::vector<int32_t> chosen, routes;
    std::vector<int64_t> sent, back;
    Array x, contributions; ///< [tokens][width], [tokens * topK][width]
    std::vector<float> weights;
    std::vector<char> messages;

    Rank(int64_t tokens, Array x, Array contributions) : x(std::move(x)), contributions(std::move(contributions)) {
      step.token_rows = tokens;
    }
  };
  /// What a rank does with what came to it.
  struct Guest {
    std::vector<int64_t> came, back;
    Array sums;
  };

  Rows rows(RowSpace space = RowSpace::Token) const { return {space, s.width, s.width, s.type}; }
  int32_t *held(int64_t rank) { return table.data() + s.experts + rank * s.slots; }
  void plan(Rank &rank, const RunKernel &run);
  Guest compute(int64_t at, const RunKernel &run);
  Array combine(int64_t at, const std::vector<Guest> &guests, const RunKernel &run);

  ExchangeShape s;
  int64_t leaves;
  std::vector<int32_t> table;
  std::vector<Rank> all;
};

inline ExchangeWorld::ExchangeWorld(const ExchangeShape &shape)
    : s(shape), leaves(combineLeaves(shape.experts)),
      table(k2rt_placement_entries(shape.experts, shape.ranks * shape.slots)) {
  Random random(11);
  std::vector<int32_t> places(s.ranks * s.slots);
  std::iota(places.begin(), places.end(), 0);
  for (size_t i = 0; s.isShuffled && i < places.size(); ++i)
    std::swap(places[i], places[i + random.below(int64_t(places.size() - i))]);
  std::fill_n(table.begin() + s.experts, places.size(), -1);
  for (int64_t expert = 0; expert < s.experts; ++expert)
    table[s.experts + places[expert]] = int32_t(expert);
  k2rt_placement_fill(table.data(), s.experts, s.ranks * s.slots, s.ranks);
  for (int64_t rank = 0; rank < s.ranks; ++rank) {
    const int64_t tokens = s.tokens[rank];
    Array x(s.type, tokens * s.width);
    for (int64_t t = 0; t < tokens; ++t) { // says whose row it is
      x.set(t * s.width, float(rank));
      x.set(t * s.width + 1, float(t));
    }
    all.emplace_back(tokens, std::move(x), Array(s.type, random.vector(tokens * s.topK * s.width)));
    all.back().weights = random.vector(tokens * s.topK);
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

inline void ExchangeWorld::plan(Rank &rank, const RunKernel &run) {
  const int64_t tokens = rank.step.token_rows, bytes = k2rt_message_bytes(s.width * byteWidth(s.type), s.topK);
  rank.routes.assign(tokens * 3 * s.topK, -9);
  rank.sent.assign(2 * s.ranks, -9);
  rank.back.assign(2 * s.ranks, -9);
  run({"route_plan", RoutePlanDesc{s.experts, s.topK, s.ranks, s.slots}}, rank.step,
      {rank.chosen.data(), table.data(), rank.routes.data(), rank.sent.data(), rank.back.data()});
  rank.messages.assign(tokens * s.ranks * bytes, 0x55);
  run({"pack", PackDesc{rows(), s.topK}}, rank.step,
      {rank.x.data(), rank.weights.data(), rank.routes.data(), rank.messages.data()});
}

inline ExchangeWorld::Guest ExchangeWorld::compute(int64_t at, const RunKernel &run) {
  const int64_t bytes = k2rt_message_bytes(s.width * byteWidth(s.type), s.topK);
  const int64_t quota = *std::max_element(s.tokens.begin(), s.tokens.end());
  Guest guest{std::vector<int64_t>(2 * s.ranks), std::vector<int64_t>(2 * s.ranks, -9), Array(s.type, 0)};
  std::vector<char> in(s.ranks * quota * bytes, 0x55);
  for (int64_t from = 0; from < s.ranks; ++from) {
    guest.came[from] = all[from].sent[at];
    guest.came[s.ranks + from] = from * quota;
    std::copy_n(all[from].messages.begin() + all[from].sent[s.ranks + at] * bytes, guest.came[from] * bytes,
                in.begin() + from * quota * bytes);
    travelled += from != at ? guest.came[from] : 0;
  }
  const int64_t arrived = std::accumulate(guest.came.begin(), guest.came.begin() + s.ranks, int64_t(0));
  k2rt_ir_step step = {};
  step.token_rows = arrived;
  Array y(s.type, arrived * s.width), out(s.type, arrived * s.topK * s.width);
  std::vector<int32_t> slots(arrived * s.topK, -9), sums(arrived * 2, -9);
  std::vector<int32_t> permutation(s.slots + 1 + 2 * arrived * s.topK, -9);
  std::vector<float> weights(arrived * s.topK);
  run({"unpack", UnpackDesc{rows(), s.topK, s.ranks}}, step,
      {in.data(), guest.came.data(), y.data(), slots.data(), weights.data()});
  run({"permutation", PermutationDesc{s.slots, s.topK}}, step, {slots.data(), permutation.data()});
  run({"return_plan", ReturnPlanDesc{s.experts, s.topK, s.ranks, s.slots}}, step,
      {slots.data(), guest.came.data(), table.data(), held(at), sums.data(), guest.back.data()});
  for (int64_t route = 0; route < arrived * s.topK; ++route) {
    if (slots[route] < 0)
      continue;
    Rank &owner = all[int64_t(y[route / s.topK * s.width])];
    const int64_t own = int64_t(y[route / s.topK * s.width + 1]) * s.topK + route % s.topK;
    EXPECT_EQ(held(at)[slots[route]], owner.chosen[own]);
    EXPECT_EQ(weights[route], owner.weights[own]);
    const int64_t slot = permutation[s.slots + 1 + arrived * s.topK + route];
    std::memcpy(out.at(slot * s.width), owner.contributions.at(own * s.width), s.width * byteWidth(s.type));
  }
  guest.sums = Array(s.type, arrived * s.topK * s.width);
  const ReduceSubtreesDesc reduce{rows(RowSpace::Slot), rows(), s.experts, s.topK, s.ranks, s.slots, leaves};
  run({"reduce_subtrees", reduce}, step,
      {out.data(), permutation.data(), slots.data(), sums.data(), table.data(), held(at), guest.sums.data()});
  return guest;
}

inline Array ExchangeWorld::combine(int64_t at, const std::vector<Guest> &guests, const RunKernel &run) {
  Rank &rank = all[at];
  const int64_t tokens = rank.step.token_rows, rowBytes = s.width * byteWidth(s.type);
  Array in(s.type, tokens * s.topK * s.width), y(s.type, tokens * s.width);
  for (int64_t from = 0; from < s.ranks; ++from) {
    EXPECT_EQ(rank.back[from], guests[from].back[at]) << "both sides count sums alike";
    Array sums = guests[from].sums;
    std::memcpy(in.at(rank.back[s.ranks + from] * s.width), sums.at(guests[from].back[s.ranks + at] * s.width),
                rank.back[from] * rowBytes);
    returned += from != at ? rank.back[from] : 0;
  }
  run({"combine", CombineDesc{rows(), rows(), s.experts, s.topK, leaves}}, rank.step,
      {in.data(), rank.routes.data(), rank.chosen.data(), y.data()});
  return y;
}

inline std::vector<Array> ExchangeWorld::exchange(const RunKernel &run) {
  std::vector<Guest> guests;
  std::vector<Array> sums;
  for (Rank &rank : all)
    plan(rank, run);
  for (int64_t rank = 0; rank < s.ranks; ++rank)
    guests.push_back(compute(rank, run));
  for (int64_t rank = 0; rank < s.ranks; ++rank)
    sums.push_back(combine(rank, guests, run));
  return sums;
}

inline std::vector<Array> ExchangeWorld::unpermute(const RunKernel &run) {
  std::vector<Array> sums;
  for (Rank &rank : all) {
    const int64_t tokens = rank.step.token_rows, routes = tokens * s.topK;
    std::vector<int32_t> permutation(s.experts + 1 + 2 * routes);
    run({"permutation", PermutationDesc{s.experts, s.topK}}, rank.step, {rank.chosen.data(), permutation.data()});
    Array slots(s.type, routes * s.width), y(s.type, tokens * s.width);
    for (int64_t route = 0; route < routes; ++route)
      if (const int32_t slot = permutation[s.experts + 1 + routes + route]; slot >= 0)
        std::memcpy(slots.at(slot * s.width), rank.contributions.at(route * s.width), s.width * byteWidth(s.type));
    run({"unpermute", UnpermuteDesc{rows(RowSpace::Slot), rows(), s.experts, s.topK, leaves}}, rank.step,
        {slots.data(), permutation.data(), rank.chosen.data(), y.data()});
    sums.push_back(std::move(y));
  }
  return sums;
}

/// Numbers of experts that ranks divide and do not, fewer experts than ranks, ranks without tokens, whole and divided
/// leaves.
inline std::vector<ExchangeShape> exchangeShapes() {
  std::vector<ExchangeShape> shapes = {{12, 3, 2, 6, 20, {5, 3}},         {12, 4, 3, 4, 7, {6, 0, 9}},
                                       {11, 3, 4, 3, 20, {1, 2, 3, 4}},   {384, 8, 8, 48, 5, {9, 0, 0, 4, 1, 1, 2, 3}},
                                       {3, 2, 5, 1, 16, {2, 2, 0, 0, 7}}, {16, 2, 1, 16, 9, {8}},
                                       {14, 5, 3, 5, 33, {10, 11, 12}},   {160, 6, 6, 27, 8, {3, 3, 3, 3, 3, 3}}};
  for (size_t i = 0, count = shapes.size(); i < count; ++i) {
    shapes.push_back(shapes[i]);
    shapes.back().isShuffled = true;
    shapes.back().type = i % 2 ? DType::BF16 : DType::F32;
  }
  return shapes;
}

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_EXCHANGEWORLD_H
