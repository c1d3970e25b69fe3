//===- ExpertQueries.cpp - Queries about experts and nodes reached --------===//

#include "../Parts.h"
#include "../Read.h"
#include "k2c/Formulas/ExpertHits.h"
#include "k2c/Formulas/RoutingTrials.h"
#include <algorithm>

using namespace k2c;

namespace {

using formulas::checkDivides;

constexpr int64_t maxExperts = 1 << 16;
constexpr int64_t maxGpus = 1 << 20;
/// Draws of a simulation, so that a query answers in tens of milliseconds.
constexpr int64_t maxDraws = 20'000'000;

ExpertChoice choice(QueryInputs &in) {
  ExpertChoice c;
  c.experts = in.whole("experts", 1, maxExperts);
  c.topK = in.whole("topk", 1, c.experts);
  return c;
}

ExpertChoice choiceOfBatch(QueryInputs &in) {
  ExpertChoice c = choice(in);
  c.tokens = in.number("tokens", 0, 1e12);
  return c;
}

QueryAnswer pmf(QueryInputs &in) {
  ExpertChoice c = choice(in);
  int64_t distinct = in.whole("distinct", 0, c.experts);
  c.tokens = double(in.whole("tokens", 0, 1 << 20));
  if (in.ok() && std::max(c.tokens, 1.0) * double(c.experts) * double(c.topK) > 1e8)
    in.fail("tokens", "gives more than 1e8 steps of the distribution", "ask the mean and the variance instead");
  return in.ok() ? QueryAnswer(expertHitProbability(c, distinct)) : QueryAnswer();
}

QueryAnswer nonuniform(QueryInputs &in) {
  std::vector<double> inclusion = in.numbers("inclusion", 0, 1, maxExperts);
  return QueryAnswer(expertHitMeanNonuniform(inclusion, in.number("tokens", 0, 1e12)));
}

QueryAnswer binomialMax(QueryInputs &in) {
  int64_t experts = in.whole("experts_per_gpu", 0, maxExperts);
  double p = in.number("p", 0, 1);
  return QueryAnswer(binomialMaxMean(experts, p, in.whole("gpus", 1, maxGpus)));
}

QueryAnswer ballsInBins(QueryInputs &in) {
  double active = in.number("active", 0, 1e12);
  return QueryAnswer(ballsInBinsMax(active, in.whole("gpus", 1, maxGpus)));
}

QueryAnswer distinctNodes(QueryInputs &in) {
  ExpertChoice c = choice(in);
  const int64_t nodes = in.whole("nodes", 1, c.experts);
  checkDivides(in, "nodes", nodes, "the experts", c.experts);
  return QueryAnswer(distinctNodesMean(c.experts, c.topK, nodes));
}

RoutingTrials trials(QueryInputs &in, double drawsOfOne) {
  RoutingTrials result;
  result.trials = in.whole("trials", 1000, 1, 1 << 24);
  double draws = double(result.trials) * drawsOfOne;
  if (in.ok() && draws > double(maxDraws))
    in.fail("trials", "gives " + std::to_string(int64_t(draws)) + " draws, at most " + std::to_string(maxDraws),
            "ask for fewer trials or tokens");
  return result;
}

template <double (*simulate)(const ExpertChoice &, int64_t, const RoutingTrials &)>
QueryAnswer simulated(QueryInputs &in) {
  ExpertChoice c = choice(in);
  c.tokens = double(in.whole("tokens", 1, 1 << 24));
  int64_t gpus = in.whole("gpus", 1, c.experts);
  checkDivides(in, "gpus", gpus, "the experts", c.experts);
  in.word("layout", {"contiguous"}, 0);
  RoutingTrials t = trials(in, c.tokens * double(c.topK) + double(c.experts));
  return in.ok() ? QueryAnswer(simulate(c, gpus, t)) : QueryAnswer();
}

QueryAnswer groupLimited(QueryInputs &in) {
  ExpertChoice c = choice(in);
  int64_t groups = in.whole("groups", 1, c.experts), top = in.whole("topk_group", 1, groups);
  checkDivides(in, "groups", groups, "the experts", c.experts);
  in.word("group_score", {"sum of the two best"}, 0);
  in.word("scores", {"iid uniform"}, 0);
  if (in.ok() && top * (c.experts / groups) < c.topK)
    in.fail("topk", std::to_string(c.topK) + " exceeds the " + std::to_string(top * (c.experts / groups)) +
                        " experts of topk_group groups");
  RoutingTrials t = trials(in, double(c.experts));
  return in.ok() ? QueryAnswer(simulatedGroupLimitedNodes(c.experts, c.topK, groups, top, t)) : QueryAnswer();
}

} // namespace

std::vector<QueryFunction> formulas::expertQueries() {
  const char *hits = "004, section 3.1.2";
  return {
      {"expert_hit_mean", "experts", hits, "experts topk tokens",
       [](QueryInputs &in) { return QueryAnswer(expertHitMean(choiceOfBatch(in))); }},
      {"expert_hit_var", "experts^2", hits, "experts topk tokens",
       [](QueryInputs &in) { return QueryAnswer(expertHitVariance(choiceOfBatch(in))); }},
      {"expert_hit_pmf", "probability", hits, "experts topk tokens distinct", pmf},
      {"expert_hit_mean_nonuniform", "experts", hits, "inclusion tokens", nonuniform},
      {"binomial_max_mean", "experts", "exact form of 004, section 3.1.2", "experts_per_gpu p gpus", binomialMax},
      {"s004_max_experts", "experts", hits, "active gpus", ballsInBins},
      {"mc_max_experts", "experts", hits, "experts topk tokens gpus trials layout", simulated<simulatedMaxExperts>},
      {"mc_balancedness", "ratio", "004, section 3.4", "experts topk tokens gpus trials layout",
       simulated<simulatedBalancedness>},
      {"distinct_nodes_mean", "nodes", "node-deduplicated dispatch", "experts topk nodes", distinctNodes},
      {"mc_group_limited_nodes", "nodes", "group-limited choice of DeepSeek V2 and V3",
       "experts topk groups topk_group trials group_score scores", groupLimited},
  };
}
