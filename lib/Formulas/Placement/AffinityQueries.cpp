//===- AffinityQueries.cpp - Queries about experts chosen together --------===//
//
// Node-deduplicated dispatch sends a token once to each node that has one of its experts: experts that are often
// chosen together should share a node. The query places the experts of one layer that way and reports loads, nodes
// visited and bytes between nodes, before (experts in order) and after.
//
// What is known of the routing comes in one of two forms. `choices` are lists of experts with counts, from which the
// nodes of a token follow exactly. `coactivation` is the symmetric table of pairs with the loads on its diagonal;
// pairs bound the nodes from below and above only, and bytes use the upper bound. A row's pairs must sum to its load
// times topk - 1 within 1 %: this finds a table whose diagonal is empty or holds something else. Experts, slots and
// choices times nodes are bounded here, as the placement takes time and memory by them and the numbers are the user's.
//
//===----------------------------------------------------------------------===//

#include "../Parts.h"
#include "base/JsonText.h"
#include "k2c/Planner/Affinity.h"
#include "k2c/Planner/Placement.h"
#include <algorithm>
#include <cmath>

using namespace k2c;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr int64_t maxExperts = 1024;
constexpr int64_t maxSlots = 4096;
constexpr int64_t maxTopK = 64;
constexpr int64_t maxVisits = int64_t(1) << 24; ///< choices * nodes, the table of the search

std::string at(const std::string &what, size_t index) { return what + " " + std::to_string(index); }

/// Pairs as a symmetric table with loads on its diagonal; the pairs of an expert are its load times topk - 1.
CoActivation readPairs(QueryInputs &in) {
  CoActivation co;
  const json &table = *in.raw("coactivation");
  co.topK = double(in.whole("topk", 1, maxTopK));
  if (!table.is_array() || table.empty() || int64_t(table.size()) > maxExperts) {
    in.fail("coactivation", "must be a square table of 1 to " + std::to_string(maxExperts) + " experts");
    return co;
  }
  co.experts = int64_t(table.size());
  for (size_t i = 0; i < table.size() && in.ok(); ++i) {
    if (!table[i].is_array() || table[i].size() != table.size())
      in.fail("coactivation", at("row", i) + " must have " + std::to_string(table.size()) + " numbers");
    for (size_t j = 0; in.ok() && j < table.size(); ++j) {
      double value = table[i][j].is_number() ? table[i][j].get<double>() : -1;
      if (!(value >= 0 && value <= 1e15))
        in.fail("coactivation", at("row", i) + at(", column", j) + " must be a number from 0 to 1e15");
      co.together.push_back(value);
    }
  }
  for (int64_t i = 0; i < co.experts && in.ok(); ++i) {
    double pairs = -co.load(i);
    for (int64_t j = 0; j < co.experts; ++j) {
      pairs += co.together[i * co.experts + j];
      if (in.ok() && co.together[i * co.experts + j] != co.together[j * co.experts + i])
        in.fail("coactivation", at("row", i) + at(", column", j) + " differs from its mirror image",
                "give the tokens that chose both experts");
    }
    double expected = co.load(i) * (co.topK - 1);
    if (in.ok() && std::abs(pairs - expected) > 0.01 * std::max(expected, co.load(i)))
      in.fail("coactivation",
              at("row", i) + " has pairs of " + json(pairs).dump() + " in all, its load " + json(co.load(i)).dump() +
                  " times topk - 1 is " + json(expected).dump(),
              "put the load of an expert on the diagonal");
    co.tokens += co.load(i) / co.topK;
  }
  return co;
}

/// Choices of distinct experts, with how many tokens made each (one, where no counts are given).
CoActivation readChoices(QueryInputs &in) {
  int64_t experts = in.whole("experts", 1, maxExperts);
  const json &list = *in.raw("choices");
  std::vector<std::vector<int32_t>> choices;
  if (!list.is_array() || list.empty())
    in.fail("choices", "must be a list of lists of experts");
  for (size_t c = 0; in.ok() && c < list.size(); ++c) {
    if (!list[c].is_array() || list[c].empty() || int64_t(list[c].size()) > std::min(experts, maxTopK)) {
      in.fail("choices",
              at("choice", c) + " must be a list of 1 to " + std::to_string(std::min(experts, maxTopK)) + " experts");
      break;
    }
    std::vector<int32_t> choice;
    for (const json &item : list[c]) {
      double value = item.is_number() ? item.get<double>() : -1;
      if (!(value >= 0 && value < double(experts) && value == std::floor(value)))
        in.fail("choices", at("choice", c) + " must name experts 0 to " + std::to_string(experts - 1) + ", got " +
                               shortenedJson(item));
      choice.push_back(in.ok() ? int32_t(value) : 0);
    }
    std::sort(choice.begin(), choice.end());
    if (std::adjacent_find(choice.begin(), choice.end()) != choice.end())
      in.fail("choices", at("choice", c) + " names an expert twice");
    choices.push_back(std::move(choice));
  }
  std::vector<double> counts(choices.size(), 1.0);
  if (in.ok() && in.has("counts")) {
    counts = in.numbers("counts", 0, 1e15, choices.size());
    if (in.ok() && counts.size() != choices.size())
      in.fail("counts",
              "has " + std::to_string(counts.size()) + " numbers for " + std::to_string(choices.size()) + " choices");
  }
  return in.ok() ? coActivationOf(experts, std::move(choices), std::move(counts)) : CoActivation();
}

AffinityCapacity readCapacity(QueryInputs &in, const CoActivation &co) {
  AffinityCapacity capacity;
  capacity.gpus = in.whole("num_gpus", 1, maxSlots);
  capacity.nodes = in.whole("num_nodes", 1, capacity.gpus);
  capacity.imbalance = in.number("imbalance", 1.1, 1, 1e6);
  int64_t needed = (co.experts + capacity.gpus - 1) / capacity.gpus;
  capacity.expertsPerGpu = in.whole("experts_per_gpu", needed, 1, maxExperts);
  if (in.ok() && capacity.gpus % capacity.nodes)
    in.fail("num_gpus",
            std::to_string(capacity.gpus) + " cannot be divided by the nodes " + std::to_string(capacity.nodes),
            "give each node equally many GPUs");
  if (in.ok() && capacity.expertsPerGpu < needed)
    in.fail("experts_per_gpu",
            std::to_string(capacity.expertsPerGpu) + " on each of " + std::to_string(capacity.gpus) +
                " GPUs cannot hold " + std::to_string(co.experts) + " experts",
            "give at least " + std::to_string(needed));
  int64_t slots = capacity.gpus * capacity.expertsPerGpu;
  if (in.ok() && slots > maxSlots)
    in.fail("num_gpus", "gives " + std::to_string(slots) + " slots in all, at most " + std::to_string(maxSlots));
  int64_t visits = int64_t(co.choices.size()) * capacity.nodes;
  if (in.ok() && visits > maxVisits)
    in.fail("choices", "times nodes are " + std::to_string(visits) + ", at most " + std::to_string(maxVisits),
            "give each distinct choice once, with counts");
  return capacity;
}

/// Loads, nodes visited and bytes between nodes. A token starts on any node alike, so (nodes - 1) / nodes of the nodes
/// it visits are remote; pairs alone bound the nodes and give the bytes at most.
ordered_json report(const CoActivation &co, const AffinityCapacity &capacity, const std::vector<int32_t> &gpuOfExpert,
                    double bytesOfVisit) {
  NodesVisited visited = nodesVisited(co, capacity, gpuOfExpert);
  std::vector<double> gpus = affinityLoads(co, capacity, gpuOfExpert), nodes(capacity.nodes, 0.0);
  for (int64_t gpu = 0; gpu < capacity.gpus; ++gpu)
    nodes[capacity.nodeOf(gpu)] += gpus[gpu];
  double remote = double(capacity.nodes - 1) / double(capacity.nodes);
  ordered_json result;
  if (co.choices.empty())
    result = {{"nodes_per_token_at_least", visited.min}, {"nodes_per_token_at_most", visited.max}};
  else
    result = {{"nodes_per_token", visited.max}};
  result["inter_node_bytes"] = co.tokens * visited.max * remote * bytesOfVisit;
  result["gpu_load"] = gpus;
  result["node_load"] = nodes;
  result["gpu_balancedness"] = balancedness(gpus);
  result["node_balancedness"] = balancedness(nodes);
  return result;
}

QueryAnswer affinity(QueryInputs &in) {
  if (in.has("coactivation") == in.has("choices"))
    in.fail(in.has("choices") ? "choices" : "coactivation",
            in.has("choices") ? "is given beside 'coactivation'" : "is missing",
            "give a table of pairs as 'coactivation' with 'topk', or 'choices' with 'experts'");
  if (!in.ok())
    return QueryAnswer();
  CoActivation co = in.has("choices") ? readChoices(in) : readPairs(in);
  double bytes = double(in.whole("hidden", 1, 1, 1 << 20)) *
                 (in.number("disp_bytes", 1, 0, 16) + in.number("comb_bytes", 2, 0, 16));
  AffinityCapacity capacity = readCapacity(in, co);
  if (!in.ok())
    return QueryAnswer();
  std::vector<int32_t> placed = placeByAffinity(co, capacity);
  QueryAnswer answer;
  answer.fields = {{"gpu_of_expert", placed},
                   {"before", report(co, capacity, placeInOrder(co.experts, capacity), bytes)},
                   {"after", report(co, capacity, placed, bytes)}};
  return answer;
}

} // namespace

std::vector<QueryFunction> formulas::affinityQueries() {
  return {
      {"affinity_placement", "GPU of each expert", "node-deduplicated dispatch; one layer",
       "coactivation topk experts choices counts num_nodes num_gpus experts_per_gpu imbalance hidden disp_bytes "
       "comb_bytes",
       affinity},
  };
}
