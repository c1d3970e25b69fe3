//===- FewestDevices.cpp - How many devices would do --------------------------===//
//
// The fewest devices on which what was asked is accepted, with the search space's ways of dividing the model: first of
// the topology itself, then of a larger one of its devices. Of serving, replicas are added where one is not enough;
// their number is bisected, since more of them serve more, and a layout that would need more devices than the best so
// far is passed over after one plan. Of as many devices, the most tokens/s. Training uses all devices that it counts.
//
//===----------------------------------------------------------------------===//

#include "Ranking.h"
#include "Space.h"
#include "Variant.h"
#include "k2c/Support/Largest.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

namespace {

/// Nodes up to which a larger topology is looked at.
constexpr int64_t maxNodes = 512;

/// As many devices like those of `topology`; none: neither a name nor a count of nodes says so.
std::optional<Topology> withDevices(const Topology &topology, int64_t devices) {
  if (std::optional<Topology> named = resizedTopology(topology, devices))
    return named;
  if (topology.tiers.empty() || topology.tiers.back().name == "node")
    return std::nullopt;
  Topology larger = topology;
  Tier &outer = larger.tiers.back();
  const int64_t inner = topology.ranks() / outer.count;
  outer.count = std::max<int64_t>(1, (devices + inner - 1) / inner);
  return larger;
}

std::optional<ParallelLayout> fewestServing(const RequestModel &context, const ParallelLayout &asked) {
  const PlanRequest &request = context.request;
  const double capacity = double(request.topology.device.memory.value.value);
  std::vector<ParallelLayout> space = replicaSpace(request);
  std::stable_sort(space.begin(), space.end(),
                   [](const ParallelLayout &a, const ParallelLayout &b) { return a.devices() < b.devices(); });
  std::optional<ClusterPlan> best;
  std::optional<ParallelLayout> fewest;
  int64_t most = request.topology.ranks();
  for (ParallelLayout layout : space) {
    if (layout.devices() > most)
      break;
    layout.role = asked.role;
    layout.stepTokens = asked.prefill ? 0 : asked.stepTokens;
    if (layout.overlap || minServingBytes(context, layout).value_or(capacity + 1) > capacity)
      continue;
    auto planOf = [&](int64_t replicas) {
      layout.replicas = replicas;
      return evaluateServe(context, layout);
    };
    const int64_t copies = most / layout.devices();
    if (!planOf(copies))
      continue;
    const Expected<ClusterPlan> plan = planOf(smallest(copies, [&](int64_t n) { return bool(planOf(n)); }));
    if (best && plan->devices == best->devices && tokensPerSecond(*plan) <= tokensPerSecond(*best))
      continue;
    best = *plan;
    fewest = layout;
    most = plan->devices;
  }
  return fewest;
}

/// Bytes of all states without copies, shared out evenly, bound the devices from below.
int64_t minTrainingDevices(const PlanRequest &request, const ParallelLayout &asked) {
  const StateBytes &bytes = request.workload.train.bytes;
  const double each =
      bytes.weight + bytes.gradient + (offloads(asked.offload, Offload::Optimizer) ? 0 : bytes.optimizer);
  return int64_t(totalParameters(request.spec).real() * each / double(request.topology.device.memory.value.value));
}

std::optional<ParallelLayout> fewestTraining(const RequestModel &context, ParallelLayout asked) {
  const PlanRequest &request = context.request;
  PipelineCache cache;
  asked.schedule = PipelineKind::OneFOneB;
  asked.chunks = 1;
  asked.overlap = false;
  asked.layers.clear();
  asked.microbatches = 0;
  asked.microbatchSize = 1;
  for (int64_t devices : alignedDevices(request.topology)) {
    if (devices < minTrainingDevices(request, asked))
      continue;
    std::optional<TrainScore> best;
    for (const ParallelLayout &ways : trainingWays(request, devices)) {
      ParallelLayout layout = asked;
      layout.tp = ways.tp, layout.ep = ways.ep, layout.etp = ways.etp, layout.pp = ways.pp;
      layout.dp = ways.dp, layout.cp = ways.cp, layout.sp = ways.sp;
      const Expected<TrainScore> score = scoreTrain(context, layout, cache, /*simulates=*/false);
      if (score && (!best || score->tokensPerSecond > best->tokensPerSecond)) {
        best = *score;
        best->layout.microbatches = 0;
      }
    }
    if (best && evaluateTrain(context, best->layout)) // a pipeline of too many passes has a score and no plan
      return best->layout;
  }
  return std::nullopt;
}

/// On the variant's topology.
bool takeFewest(const PlanRequest &asked, Variant &variant) {
  const PlanRequest request = variant.of(asked);
  const RequestModel context(request);
  const std::optional<ParallelLayout> fewest = asked.phase == PlanPhase::Serve
                                                   ? fewestServing(context, variant.layout)
                                                   : fewestTraining(context, variant.layout);
  if (fewest)
    variant.layout = *fewest;
  return fewest.has_value();
}

} // namespace

std::optional<Variant> planner::fewestDevices(const PlanRequest &asked, const ParallelLayout &layout) {
  Variant variant(asked, layout);
  if (takeFewest(asked, variant))
    return variant;
  const int64_t node = std::max<int64_t>(8, asked.topology.devicesPerNode());
  std::optional<Topology> larger = withDevices(asked.topology, maxNodes * node);
  if (!larger) { // a device that is in no larger topology: one that is; of a user's own GPUs nothing is known
    if (asked.topology.device.kind != DeviceKind::Cpu && !isBuiltIn(asked.topology))
      return std::nullopt;
    Expected<Topology> other = loadTopology("4x8-h200");
    if (!other)
      return std::nullopt;
    larger = withDevices(*other, maxNodes * node);
    variant.compute = variant.cache = DType::BF16;
  }
  if (!larger || larger->ranks() <= asked.topology.ranks())
    return std::nullopt;
  variant.topology = *larger;
  if (!takeFewest(asked, variant))
    return std::nullopt;
  variant.topology = *withDevices(*larger, variant.layout.devices());
  return accepted(asked, variant) ? std::optional(variant) : std::nullopt;
}
