//===- PoolSearch.cpp - The best pairs of two pools ---------------------------===//
//
// A pool's speed does not depend on the other pool (ServePool.h), so that each is looked at once and pairs are joined
// by closed forms: with r and q replicas, a pair serves
//
//   min(r busy / prompt seconds, q / token seconds, what the link carries)   requests/s
//
// A pool that another of as many devices equals or beats in all that a pair can ask of it is left out. Of the first
// pool every number of replicas is tried; of the second one, what is left of the cluster, what keeps the first busy,
// and one.
//
//===----------------------------------------------------------------------===//

#include "Ranking.h"
#include "ServingModel.h"
#include "Space.h"
#include "k2c/Support/Largest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

using namespace k2c;
using namespace k2c::planner;

namespace {

/// Decoding with some sequences on each rank of one replica.
struct Decoding {
  double seconds = INFINITY; ///< of a replica's time for the tokens of a request
  double perToken = INFINITY;
};

/// What pairs are kept by; less is better.
using Rank = std::array<double, 3>;

/// One replica, and what a pair can ask of it: less is better in each number.
struct Candidate {
  std::unique_ptr<ServePool> pool;
  std::vector<double> costs;
  int64_t sequences = 1;                  ///< decoding: most that fit and meet the target
  std::map<int64_t, Decoding> known = {}; ///< by replicas, where these matter
  int64_t devices() const { return pool->layout.devices(); }
};

class PoolSearch {
public:
  explicit PoolSearch(const RequestModel &context) : context(context), serve(context.request.workload.serve) {
    for (const ParallelLayout &layout : replicaSpace(context.request))
      if (checkLayout(context.request, layout) && layout.devices() < context.request.topology.ranks()) {
        addPrefill(layout);
        addDecode(layout);
      }
    keepBest(prefills);
    keepBest(decodes);
  }
  std::vector<ParallelLayout> best(size_t most, int64_t &compared);

private:
  void addPrefill(const ParallelLayout &layout);
  void addDecode(const ParallelLayout &layout);
  static void keepBest(std::vector<Candidate> &candidates);
  const Decoding &decodingOf(Candidate &decode, int64_t replicas) const;
  int64_t sequencesOf(const Candidate &decode, int64_t replicas) const;
  void pair(const Candidate &prefill, Candidate &decode);
  void score(const Candidate &prefill, Candidate &decode, int64_t r, int64_t q, const Handover &handover, double busy);
  const std::pair<Handover, Handover> &handoversTo(const Candidate &prefill, const ParallelLayout &decode);
  double busyShare(const Candidate &prefill, const Handover &slow) const;
  void keep(const Rank &rank, const Candidate &prefill, const Candidate &decode, int64_t r, int64_t q);

  const RequestModel &context;
  const ServeWorkload &serve;
  std::vector<Candidate> prefills, decodes;
  /// Of the pool of prompts at hand, by what it asks of the other: tensor-parallel ranks, devices of a sequence.
  std::map<std::pair<int64_t, int64_t>, std::pair<Handover, Handover>> handovers;
  struct Pair {
    Rank rank;
    const Candidate *prefill, *decode;
    int64_t r, q;
  };
  std::vector<Pair> kept; ///< best first
  size_t most = 1;
};

void PoolSearch::addPrefill(const ParallelLayout &layout) {
  auto pool = std::make_unique<ServePool>(context, layout, PoolRole::Prefill);
  if (!pool->checkMemory())
    return;
  const ParallelLayout &l = pool->layout;
  std::vector<double> costs = {pool->promptSeconds(),       pool->ownSlow,
                               pool->serviceSeconds(),      -double(pool->ranks()),
                               -double(l.tp * l.cp * l.pp), double(l.ep)};
  prefills.push_back({std::move(pool), std::move(costs)});
}

void PoolSearch::addDecode(const ParallelLayout &layout) {
  auto pool = std::make_unique<ServePool>(context, layout, PoolRole::Decode);
  auto perToken = [&](int64_t n) { return pool->decodeSeconds(n) / pool->drafts; };
  int64_t good = pool->memory.maxFittingSequences();
  const double target = serve.timePerToken ? serve.timePerToken->value : INFINITY;
  if (good > 0 && perToken(good) > target)
    good = smallest(good + 1, [&](int64_t n) { return perToken(n) > target; }) - 1;
  if (good == 0)
    return;
  const ParallelLayout &l = pool->layout;
  const double decode = pool->decodeSeconds(good);
  std::vector<double> costs = {pool->tokenSeconds(good, decode), perToken(1), -double(pool->ranks()),
                               -double(l.tp * l.cp * l.pp), double(l.ep)};
  if (serve.batch || serve.arrivalRate) // decoded with fewer sequences, too
    for (int64_t n : {good / 2, good / 8, good / 32})
      costs.push_back(pool->tokenSeconds(std::max<int64_t>(n, 1), pool->decodeSeconds(std::max<int64_t>(n, 1))));
  decodes.push_back({std::move(pool), std::move(costs), good});
}

/// Leaves out what another of as many devices equals or beats.
void PoolSearch::keepBest(std::vector<Candidate> &candidates) {
  std::map<int64_t, std::vector<Candidate>> bySize;
  for (Candidate &candidate : candidates) {
    std::vector<Candidate> &same = bySize[candidate.devices()];
    auto covers = [](const Candidate &a, const Candidate &b) {
      return std::equal(a.costs.begin(), a.costs.end(), b.costs.begin(), std::less_equal<double>());
    };
    if (std::any_of(same.begin(), same.end(), [&](const Candidate &other) { return covers(other, candidate); }))
      continue;
    same.erase(
        std::remove_if(same.begin(), same.end(), [&](const Candidate &other) { return covers(candidate, other); }),
        same.end());
    same.push_back(std::move(candidate));
  }
  candidates.clear();
  for (auto &[size, same] : bySize)
    std::move(same.begin(), same.end(), std::back_inserter(candidates));
}

/// As ServingModel::choose does it; 0: they do not fit, or do not keep up.
int64_t PoolSearch::sequencesOf(const Candidate &decode, int64_t replicas) const {
  if (serve.batch) {
    const int64_t ranks = decode.pool->ranks() * replicas, wanted = (*serve.batch + ranks - 1) / ranks;
    return wanted <= decode.sequences ? wanted : 0;
  }
  if (context.request.objective != Objective::Latency)
    return decode.sequences;
  if (!serve.arrivalRate)
    return 1;
  auto keepsUp = [&](int64_t n) {
    const double seconds = decode.pool->tokenSeconds(n, decode.pool->decodeSeconds(n)) / double(replicas);
    return *serve.arrivalRate * seconds <= maxBusy;
  };
  return keepsUp(decode.sequences) ? smallest(decode.sequences, keepsUp) : 0;
}

const Decoding &PoolSearch::decodingOf(Candidate &decode, int64_t replicas) const {
  const bool depends = serve.batch || (serve.arrivalRate && context.request.objective == Objective::Latency);
  if (!depends && !decode.known.empty())
    return decode.known.begin()->second;
  const auto [entry, isNew] = decode.known.try_emplace(depends ? replicas : 0);
  if (!isNew)
    return entry->second;
  const int64_t n = sequencesOf(decode, replicas);
  if (n > 0) {
    const double seconds = decode.pool->decodeSeconds(n);
    entry->second = {decode.pool->tokenSeconds(n, seconds), seconds / decode.pool->drafts};
  }
  return entry->second;
}

/// As ServingModel::maxRequests; 0: the target of the first token is missed however few requests come.
double PoolSearch::busyShare(const Candidate &prefill, const Handover &slow) const {
  if (!serve.timeToFirstToken)
    return maxBusy;
  const double wait = serve.timeToFirstToken->value - prefill.pool->ownSlow - slow.exposed();
  return wait <= 0 ? 0 : std::min(maxBusy, busyAtWait(wait, prefill.pool->serviceSeconds()));
}

/// Of the mean input, and of 95 %. The tier between the pools is that of the whole cluster here; a plan looks at the
/// pools' own.
const std::pair<Handover, Handover> &PoolSearch::handoversTo(const Candidate &prefill, const ParallelLayout &decode) {
  const auto [entry, isNew] = handovers.try_emplace({decode.tp, decode.tp * decode.cp * decode.pp});
  if (isNew)
    entry->second = {handoverOf(context, *prefill.pool, decode, /*slow=*/false, /*far=*/true),
                     handoverOf(context, *prefill.pool, decode, /*slow=*/true, /*far=*/true)};
  return entry->second;
}

void PoolSearch::pair(const Candidate &prefill, Candidate &decode) {
  const int64_t all = context.request.topology.ranks(), p = prefill.devices(), d = decode.devices();
  const auto &[handover, slow] = handoversTo(prefill, decode.pool->layout);
  const double busy = busyShare(prefill, slow);
  // More replicas have fewer sequences each: what as many as fit cannot decode, fewer cannot.
  if (busy <= 0 || p + d > all || decodingOf(decode, (all - p) / d).seconds == INFINITY)
    return;
  for (int64_t r = 1; r * p + d <= all; ++r) {
    const int64_t room = (all - r * p) / d;
    const double rate = double(r) * busy / prefill.pool->promptSeconds();
    const double wanted = (serve.arrivalRate ? *serve.arrivalRate / maxBusy : rate) * decodingOf(decode, room).seconds;
    // Ascending, each once.
    std::array<int64_t, 4> counts = {1, 1, 1, room};
    if (wanted < double(room))
      counts[1] = std::max<int64_t>(1, int64_t(wanted)), counts[2] = std::max<int64_t>(1, int64_t(std::ceil(wanted)));
    for (size_t i = 0; i < counts.size(); ++i)
      if (i == 0 || counts[i] != counts[i - 1])
        score(prefill, decode, r, counts[i], handover, busy);
  }
}

void PoolSearch::score(const Candidate &prefill, Candidate &decode, int64_t r, int64_t q, const Handover &handover,
                       double busy) {
  const Decoding &decoding = decodingOf(decode, q);
  const double ranks = double(std::min(r * prefill.pool->ranks(), q * decode.pool->ranks()));
  const double moved = handover.seconds > 0 ? ranks / handover.seconds : INFINITY;
  double requests = std::min({double(r) * busy / prefill.pool->promptSeconds(),
                              double(q) * (serve.arrivalRate ? maxBusy : 1) / decoding.seconds, moved});
  if (requests <= 0 || (serve.arrivalRate && requests < *serve.arrivalRate))
    return;
  requests = std::min(requests, serve.arrivalRate.value_or(INFINITY));
  const double devices = double(r * prefill.devices() + q * decode.devices()), tokens = requests * context.mix.output;
  const double ep = double(std::max(prefill.pool->layout.ep, decode.pool->layout.ep));
  const Merits merits{tokens, decoding.perToken, devices, ep, devices / tokens};
  keep({objectiveOf(merits, context.request.objective), -tokens, devices}, prefill, decode, r, q);
}

void PoolSearch::keep(const Rank &rank, const Candidate &prefill, const Candidate &decode, int64_t r, int64_t q) {
  if (kept.size() == most && !(rank < kept.back().rank))
    return;
  const Pair pair{rank, &prefill, &decode, r, q};
  auto at =
      std::upper_bound(kept.begin(), kept.end(), pair, [](const Pair &a, const Pair &b) { return a.rank < b.rank; });
  kept.insert(at, pair);
  if (kept.size() > most)
    kept.pop_back();
}

std::vector<ParallelLayout> PoolSearch::best(size_t count, int64_t &compared) {
  most = count;
  for (const Candidate &prefill : prefills) {
    handovers.clear();
    for (Candidate &decode : decodes)
      pair(prefill, decode);
  }
  compared = int64_t(prefills.size()) * int64_t(decodes.size());
  std::vector<ParallelLayout> layouts;
  for (const Pair &pair : kept) {
    ParallelLayout layout = pair.decode->pool->layout, prefill = pair.prefill->pool->layout;
    layout.replicas = pair.q;
    prefill.replicas = pair.r;
    layout.prefill = std::make_shared<const ParallelLayout>(prefill);
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

} // namespace

std::vector<ParallelLayout> planner::bestPools(const RequestModel &context, size_t most, int64_t &compared) {
  compared = 0;
  if (context.request.spec.encoderLayers > 0)
    return {};
  return PoolSearch(context).best(most, compared);
}
