//===- Affinity.cpp - Greedy growth and swaps ---------------------------------===//
//
// Nodes are sets of slots. Free slots count as experts that nobody chooses, so that a move is a swap with one of them.
// A swap is better when it lowers the load above the limit, or keeps that and improves the objective: the pairs inside
// nodes (a table of every expert's pairs with every node makes a swap O(1) to judge), and where the choices are known
// the nodes that they visit. It starts in order, in order with swaps, and greedily; the best wins.
//
//===----------------------------------------------------------------------===//

#include "k2c/Planner/Affinity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace k2c;

namespace {

constexpr int maxSweeps = 64;
constexpr int64_t maxSteps = 40'000'000;

/// Nodes of all experts and free slots, with what swaps change.
class NodeSearch {
public:
  NodeSearch(const CoActivation &co, const AffinityCapacity &capacity)
      : co(co), capacity(capacity), slots(capacity.nodes * capacity.slotsPerNode()), node(slots, -1),
        nodeLoad(capacity.nodes, 0.0) {
    for (int64_t expert = 0; expert < co.experts; ++expert)
      total += co.load(expert);
    epsilon = 1e-9 * std::max(total, 1e-300);
    limit = capacity.imbalance * total / double(capacity.nodes) + epsilon;
  }

  void startInOrder();
  void startGreedy();
  void improvePairs();
  void improveChoices();

  /// Load above the limit, then the objective to be lowered; compared in this order.
  std::pair<double, double> cost() const { return {overload(), objective()}; }
  /// Of experts; free slots left out.
  std::vector<int32_t> nodes() const { return {node.begin(), node.begin() + co.experts}; }

private:
  double together(int64_t a, int64_t b) const {
    return a < co.experts && b < co.experts ? co.together[a * co.experts + b] : 0;
  }
  double load(int64_t slot) const { return slot < co.experts ? co.load(slot) : 0; }
  double over(double load) const { return std::max(0.0, load - limit); }
  double overload() const;
  double objective() const;
  double overloadChange(int64_t a, int64_t b) const;
  double pairGain(int64_t a, int64_t b) const;
  double choiceGain(int64_t a, int64_t b);
  bool isBetter(double overloadChange, double gain) const {
    return overloadChange < -epsilon || (overloadChange <= epsilon && gain > epsilon);
  }
  void fillFreeSlots();
  void tabulate();
  void swap(int64_t a, int64_t b);
  void countVisits();
  template <class Gain> void sweep(Gain gain);

  const CoActivation &co;
  const AffinityCapacity &capacity;
  int64_t slots;
  std::vector<int32_t> node;    ///< of each expert, then of each free slot
  std::vector<double> nodeLoad; ///< [nodes]
  double total = 0, limit = 0, epsilon = 0;
  std::vector<double> pairs;                  ///< [experts][nodes] pairs of an expert with the others of a node
  std::vector<std::vector<int32_t>> choiceOf; ///< [experts] choices that name it, ascending
  std::vector<uint16_t> visits;               ///< [choices][nodes] experts of a choice on a node
  int64_t steps = 0;
};

double NodeSearch::overload() const {
  double sum = 0;
  for (double load : nodeLoad)
    sum += over(load);
  return sum;
}

double NodeSearch::objective() const {
  if (!co.choices.empty()) {
    double sum = 0;
    std::vector<int32_t> seen;
    for (size_t c = 0; c < co.choices.size(); ++c) {
      seen.clear();
      for (int32_t expert : co.choices[c])
        seen.push_back(node[expert]);
      std::sort(seen.begin(), seen.end());
      sum += co.counts[c] * double(std::unique(seen.begin(), seen.end()) - seen.begin());
    }
    return sum;
  }
  double inside = 0;
  for (int64_t expert = 0; expert < co.experts; ++expert)
    inside += pairs[expert * capacity.nodes + node[expert]];
  return -inside;
}

void NodeSearch::fillFreeSlots() {
  std::vector<int64_t> used(capacity.nodes, 0);
  for (int64_t expert = 0; expert < co.experts; ++expert)
    ++used[node[expert]];
  int64_t slot = co.experts;
  for (int64_t n = 0; n < capacity.nodes; ++n)
    for (; used[n] < capacity.slotsPerNode(); ++used[n])
      node[slot++] = int32_t(n);
}

/// Loads and pairs from scratch; rounding of many swaps does not add up.
void NodeSearch::tabulate() {
  nodeLoad.assign(capacity.nodes, 0.0);
  pairs.assign(co.experts * capacity.nodes, 0.0);
  for (int64_t a = 0; a < co.experts; ++a) {
    nodeLoad[node[a]] += load(a);
    for (int64_t b = 0; b < co.experts; ++b)
      if (a != b)
        pairs[a * capacity.nodes + node[b]] += together(a, b);
  }
}

void NodeSearch::startInOrder() {
  std::vector<int32_t> gpus = placeInOrder(co.experts, capacity);
  for (int64_t expert = 0; expert < co.experts; ++expert)
    node[expert] = int32_t(capacity.nodeOf(gpus[expert]));
  fillFreeSlots();
  tabulate();
}

/// Node after node: the heaviest expert left, then again and again the one with most pairs in the node that keeps its
/// load within the limit; the lightest when none does.
void NodeSearch::startGreedy() {
  std::vector<bool> placed(co.experts, false);
  int64_t left = co.experts;
  for (int64_t n = 0; n < capacity.nodes; ++n) {
    int64_t share = (left + capacity.nodes - n - 1) / (capacity.nodes - n);
    std::vector<double> affinity(co.experts, 0.0);
    double filled = 0;
    for (int64_t count = 0; count < share; ++count, --left) {
      int64_t best = -1, lightest = -1;
      for (int64_t e = 0; e < co.experts; ++e) {
        if (placed[e])
          continue;
        if (lightest < 0 || load(e) < load(lightest))
          lightest = e;
        double value = count ? affinity[e] : load(e), bestValue = best < 0 ? -1 : count ? affinity[best] : load(best);
        if ((!count || filled + load(e) <= limit) && value > bestValue)
          best = e;
      }
      int64_t chosen = best < 0 ? lightest : best;
      placed[chosen] = true;
      node[chosen] = int32_t(n);
      filled += load(chosen);
      for (int64_t e = 0; e < co.experts; ++e)
        affinity[e] += together(chosen, e);
    }
  }
  fillFreeSlots();
  tabulate();
}

double NodeSearch::overloadChange(int64_t a, int64_t b) const {
  double more = load(b) - load(a), ofA = nodeLoad[node[a]], ofB = nodeLoad[node[b]];
  return over(ofA + more) - over(ofA) + over(ofB - more) - over(ofB);
}

double NodeSearch::pairGain(int64_t a, int64_t b) const {
  auto pairsOf = [&](int64_t slot, int64_t n) { return slot < co.experts ? pairs[slot * capacity.nodes + n] : 0.0; };
  return pairsOf(a, node[b]) - pairsOf(a, node[a]) + pairsOf(b, node[a]) - pairsOf(b, node[b]) - 2 * together(a, b);
}

/// Visits saved when `a` and `b` change places; choices of both visit the same nodes as before.
double NodeSearch::choiceGain(int64_t a, int64_t b) {
  static const std::vector<int32_t> none;
  const std::vector<int32_t> &ofA = a < co.experts ? choiceOf[a] : none, &ofB = b < co.experts ? choiceOf[b] : none;
  auto saved = [&](int32_t choice, int32_t from, int32_t to) {
    const uint16_t *on = visits.data() + int64_t(choice) * capacity.nodes;
    return co.counts[choice] * double(int(on[from] == 1) - int(on[to] == 0));
  };
  double gain = 0;
  steps += int64_t(ofA.size() + ofB.size()) + 1;
  for (size_t i = 0, j = 0; i < ofA.size() || j < ofB.size();) {
    if (j == ofB.size() || (i < ofA.size() && ofA[i] < ofB[j])) {
      gain += saved(ofA[i++], node[a], node[b]);
    } else if (i == ofA.size() || ofB[j] < ofA[i]) {
      gain += saved(ofB[j++], node[b], node[a]);
    } else {
      ++i;
      ++j;
    }
  }
  return gain;
}

void NodeSearch::swap(int64_t a, int64_t b) {
  steps += co.experts;
  int32_t from = node[a], to = node[b];
  for (int64_t e = 0; e < co.experts; ++e) {
    double moved = (e == a ? 0 : together(e, a)) - (e == b ? 0 : together(e, b));
    pairs[e * capacity.nodes + from] -= moved;
    pairs[e * capacity.nodes + to] += moved;
  }
  nodeLoad[from] += load(b) - load(a);
  nodeLoad[to] += load(a) - load(b);
  std::swap(node[a], node[b]);
  auto move = [&](int64_t slot, int32_t out, int32_t in) {
    if (visits.empty() || slot >= co.experts)
      return;
    for (int32_t choice : choiceOf[slot]) {
      --visits[int64_t(choice) * capacity.nodes + out];
      ++visits[int64_t(choice) * capacity.nodes + in];
    }
  };
  move(a, from, to);
  move(b, to, from);
}

template <class Gain> void NodeSearch::sweep(Gain gain) {
  steps = 0;
  for (int round = 0; round < maxSweeps; ++round) {
    bool changed = false;
    steps += co.experts * slots;
    for (int64_t a = 0; a < co.experts; ++a)
      for (int64_t b = a + 1; b < slots && steps < maxSteps; ++b)
        if (node[a] != node[b])
          if (double change = overloadChange(a, b); change <= epsilon && isBetter(change, gain(a, b))) {
            swap(a, b);
            changed = true;
          }
    tabulate();
    if (!changed)
      return;
  }
}

void NodeSearch::improvePairs() {
  sweep([this](int64_t a, int64_t b) { return pairGain(a, b); });
}

void NodeSearch::countVisits() {
  choiceOf.assign(co.experts, {});
  visits.assign(co.choices.size() * capacity.nodes, 0);
  for (size_t c = 0; c < co.choices.size(); ++c)
    for (int32_t expert : co.choices[c]) {
      choiceOf[expert].push_back(int32_t(c));
      ++visits[c * capacity.nodes + node[expert]];
    }
}

void NodeSearch::improveChoices() {
  if (co.choices.empty())
    return;
  countVisits();
  sweep([this](int64_t a, int64_t b) { return choiceGain(a, b); });
}

} // namespace

/// GPUs of experts whose nodes are known: by falling load, each to the emptiest GPU of its node that has room.
static std::vector<int32_t> fillGpus(const CoActivation &co, const AffinityCapacity &capacity,
                                     const std::vector<int32_t> &nodes) {
  std::vector<int64_t> order(co.experts);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return co.load(a) > co.load(b); });
  std::vector<double> gpuLoad(capacity.gpus, 0.0);
  std::vector<int64_t> used(capacity.gpus, 0);
  std::vector<int32_t> gpuOfExpert(co.experts, 0);
  int64_t perNode = capacity.gpus / capacity.nodes;
  for (int64_t expert : order) {
    int64_t emptiest = -1;
    for (int64_t gpu = nodes[expert] * perNode; gpu < (nodes[expert] + 1) * perNode; ++gpu)
      if (used[gpu] < capacity.expertsPerGpu && (emptiest < 0 || gpuLoad[gpu] < gpuLoad[emptiest]))
        emptiest = gpu;
    ++used[emptiest];
    gpuLoad[emptiest] += co.load(expert);
    gpuOfExpert[expert] = int32_t(emptiest);
  }
  return gpuOfExpert;
}

std::vector<int32_t> k2c::placeByAffinity(const CoActivation &co, const AffinityCapacity &capacity) {
  // The plain order is a start of its own: more pairs inside nodes may still mean more visits.
  std::vector<NodeSearch> starts(3, NodeSearch(co, capacity));
  starts[0].startInOrder();
  starts[1].startInOrder();
  starts[1].improvePairs();
  starts[2].startGreedy();
  starts[2].improvePairs();
  auto best = std::min_element(starts.begin(), starts.end(),
                               [](const NodeSearch &a, const NodeSearch &b) { return a.cost() < b.cost(); });
  best->improveChoices();
  return fillGpus(co, capacity, best->nodes());
}
