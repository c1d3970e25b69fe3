//===- EvaluateRouting.cpp - Choosing experts ---------------------------------===//
//
// RoutingDesc: scores, choice within groups and nodes with a bias that chooses only, weights from the unbiased scores.
// Forced routes replace the choice and go through the same arithmetic, so forcing what the router chose changes no bit.
//
//===----------------------------------------------------------------------===//
#include "Evaluation.h"
#include "k2rt/polynomials.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace k2c::evaluation {

namespace {

constexpr int32_t noExpert = -1;

/// True when value `a` of index i comes before value `b` of index j: larger first, NaN last, then the lower index.
bool precedes(float a, int64_t i, float b, int64_t j) {
  bool aNan = std::isnan(a), bNan = std::isnan(b);
  if (aNan != bNan)
    return bNan;
  if (!aNan && a != b)
    return a > b;
  return i < j;
}

/// Indices of `values`, first `count`, in the order of precedes().
std::vector<int64_t> best(const std::vector<float> &values, std::vector<int64_t> indices, int64_t count) {
  std::sort(indices.begin(), indices.end(), [&](int64_t i, int64_t j) { return precedes(values[i], i, values[j], j); });
  indices.resize(std::min<int64_t>(count, indices.size()));
  return indices;
}

std::vector<int64_t> range(int64_t first, int64_t count) {
  std::vector<int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

/// One expert of a row's result.
struct Route {
  int64_t expert;
  float weight;
};

struct Router {
  const RoutingDesc &desc;
  const int32_t *held; ///< the expert of each slot; null where nothing is bound
  std::vector<float> scores, choices;

  Router(const RoutingDesc &d, std::vector<float> logits, const float *bias, const int32_t *held)
      : desc(d), held(held), scores(std::move(logits)) {
    if (d.scoring == Scoring::Sigmoid)
      for (float &s : scores)
        s = k2rt_sigmoidf(s);
    else
      softmax();
    choices = scores;
    for (int64_t e = 0; bias && e < d.experts; ++e)
      choices[e] = scores[e] + bias[e];
  }

  void softmax() {
    float max = scores[0], sum = 0;
    for (float s : scores)
      max = larger(max, s);
    for (float &s : scores) {
      s = k2rt_expf(s - max);
      sum = sum + s;
    }
    for (float &s : scores)
      s = s / sum;
  }

  /// Experts of the groups that stay, ascending.
  std::vector<int64_t> allowed() const {
    int64_t size = desc.experts / desc.groups;
    if (desc.groups == 1 || desc.topkGroups >= desc.groups)
      return range(0, desc.experts);
    std::vector<float> counts(desc.groups);
    for (int64_t g = 0; g < desc.groups; ++g) {
      std::vector<int64_t> top = best(choices, range(g * size, size), 2);
      counts[g] = choices[top[0]];
      if (desc.groupBest == 2 && top.size() == 2)
        counts[g] = counts[g] + choices[top[1]];
    }
    std::vector<int64_t> experts;
    for (int64_t g : best(counts, range(0, desc.groups), desc.topkGroups))
      for (int64_t e : range(g * size, size))
        experts.push_back(e);
    return experts;
  }

  /// For each node that has some of `experts`, these; none for the others.
  std::vector<std::vector<int64_t>> byNode(const std::vector<int64_t> &experts) const {
    std::vector<std::vector<int64_t>> lists(desc.bound.nodes);
    for (int64_t node = 0; node < desc.bound.nodes; ++node) {
      const int32_t *slots = held + node * desc.bound.slots;
      for (int64_t e : experts)
        if (std::find(slots, slots + desc.bound.slots, e) != slots + desc.bound.slots)
          lists[node].push_back(e);
    }
    return lists;
  }

  /// Those of `experts` that one of the best `count` nodes has, by their ceil(topK / among) best values.
  std::vector<int64_t> onBestNodes(const std::vector<float> &values, const std::vector<int64_t> &experts, int64_t count,
                                   int64_t among) const {
    const std::vector<std::vector<int64_t>> lists = byNode(experts);
    std::vector<float> counts(desc.bound.nodes);
    std::vector<int64_t> nodes, kept;
    for (int64_t node = 0; node < desc.bound.nodes; ++node) {
      for (int64_t e : best(values, lists[node], (desc.topK + among - 1) / among))
        counts[node] += values[e];
      if (!lists[node].empty())
        nodes.push_back(node);
    }
    for (int64_t node : best(counts, nodes, count))
      kept.insert(kept.end(), lists[node].begin(), lists[node].end());
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    return kept;
  }

  /// The chosen experts in falling choice.
  std::vector<int64_t> choose() const {
    std::vector<int64_t> experts = allowed();
    std::vector<float> values = choices;
    if (desc.bound.isBound() && desc.bound.penalty > 0) {
      const std::vector<int64_t> home = onBestNodes(values, experts, 1, desc.bound.nodes);
      for (int64_t e = 0; e < desc.experts; ++e)
        if (!std::binary_search(home.begin(), home.end(), e))
          values[e] = values[e] - float(desc.bound.penalty);
    }
    if (desc.bound.isBound() && desc.bound.most > 0)
      experts = onBestNodes(values, experts, desc.bound.most, desc.bound.most);
    return best(choices, best(values, experts, desc.topK), desc.topK);
  }

  /// Weights of `experts`, which are in falling choice.
  std::vector<Route> weigh(const std::vector<int64_t> &experts) const {
    float sum = 0;
    for (int64_t e : experts)
      sum = sum + scores[e];
    float divisor = sum + RoutingDesc::normalizerEps;
    std::vector<Route> routes;
    for (int64_t e : experts)
      routes.push_back({e, (desc.normalize ? scores[e] / divisor : scores[e]) * float(desc.scale)});
    return routes;
  }

  std::vector<Route> chosen() const { return weigh(choose()); }

  /// Routes of forced experts; weights[k] replaces the router's when it is not NaN. `weights` may be null.
  std::vector<Route> forced(const int32_t *experts, const float *weights) const {
    std::vector<int64_t> present;
    for (int64_t k = 0; k < desc.topK; ++k)
      if (experts[k] >= 0)
        present.push_back(experts[k]);
    std::vector<Route> routes = weigh(best(choices, present, desc.topK));
    for (int64_t k = 0; weights && k < desc.topK; ++k)
      for (Route &route : routes)
        if (route.expert == experts[k] && !std::isnan(weights[k]))
          route.weight = weights[k];
    return routes;
  }
};

/// Where one row's routes go.
void write(const RoutingDesc &d, std::vector<Route> routes, int32_t *experts, float *weights) {
  std::sort(routes.begin(), routes.end(),
            [](const Route &a, const Route &b) { return precedes(a.weight, a.expert, b.weight, b.expert); });
  for (int64_t k = 0; k < d.topK; ++k) {
    bool present = k < int64_t(routes.size());
    if (experts)
      experts[k] = present ? int32_t(routes[k].expert) : noExpert;
    if (weights)
      weights[k] = present ? routes[k].weight : 0.0f;
  }
}

template <class T> T *shifted(void *base, int64_t elements) {
  return base ? static_cast<T *>(base) + elements : nullptr;
}

} // namespace

Status run(const RoutingDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *logits = args.pointer();
  const float *bias = d.bias ? args.array<float>() : nullptr;
  args.pointer();
  int64_t layer = args.ordinal();
  const int32_t *held = d.bound.isBound() ? args.array<int32_t>() : nullptr;
  int32_t *experts = args.array<int32_t>();
  float *weights = args.array<float>();
  for (int64_t row = 0; row < step.token_rows; ++row) {
    Router router(d, loadRow(logits, d.logits, row), bias, held);
    int64_t at = (layer * step.layer_rows + row) * d.topK;
    const int32_t *forced = shifted<int32_t>(step.forced_experts, at);
    bool isForced = forced && forced[0] != K2RT_ROUTE_FREE;
    for (int64_t k = 0; isForced && k < d.topK; ++k)
      if (forced[k] >= d.experts)
        return invalid("forced expert " + std::to_string(forced[k]) + " of " + std::to_string(d.experts));
    std::vector<Route> routes =
        isForced ? router.forced(forced, shifted<float>(step.forced_weights, at)) : router.chosen();
    write(d, routes, experts + row * d.topK, weights + row * d.topK);
    write(d, routes, shifted<int32_t>(step.capture_experts, at), shifted<float>(step.capture_weights, at));
  }
  return Status::success();
}

} // namespace k2c::evaluation
