//===- Space.cpp - The layouts that a search looks at -------------------------===//
//
// The search space is a product of ways to divide a model, cut down before anything is timed by three rules: what
// divides nothing is not built, what another layout does at least as well with less is not built, and sizes of
// clusters of thousands of nodes are sampled in steps of 1/256.
//
//   serving    tp, cp, pp, ranks of a stage, etp, redundant experts, overlap; as many replicas as fit, or one
//   training   devices, tp, cp, pp, (ep, etp), schedule with chunks and overlap, recomputation, ZeRO, micro-batch
//
// tp stays within a node and at 16; a sequence is divided only where 8192 tokens or more are left to each rank; dense
// models have no data-parallel ranks when serving, since these are replicas. One replica is looked at as well where
// the objective is devices or expert parallelism. Whether a layout is right is CheckLayout's to say; none here is
// promised to be.
//
// Where k2c compile has model and devices, a plan is of a program: serving layouts are those that it accepts, with as
// many replicas as fit, and those whose only fault is cp. Pools of prompts, which it refuses, have the parts that an
// accepted layout may have. Of GPUs, and of families for planning only, all are planned.
//
//===----------------------------------------------------------------------===//

#include "Space.h"

#include "RequestModel.h"
#include "k2c/Planner/CompileLayout.h"
#include "k2c/Planner/TensorParts.h"
#include <algorithm>
#include <set>

using namespace k2c;
using namespace k2c::planner;

/// Devices joined by the fast links: a node, or what the innermost tier joins.
static int64_t nearDevices(const Topology &topology) {
  if (topology.devicesPerNode() > 1)
    return topology.devicesPerNode();
  return topology.tiers.empty() ? 1 : topology.tiers.front().count;
}

static std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> result;
  for (int64_t i = 1; i <= number; ++i)
    if (number % i == 0)
      result.push_back(i);
  return result;
}

std::vector<int64_t> planner::alignedDevices(const Topology &topology) {
  const int64_t node = nearDevices(topology), all = topology.ranks();
  std::vector<int64_t> sizes = divisors(node);
  // Thousands of nodes: steps of 1/256 of the whole keep the space small.
  const int64_t step = std::max<int64_t>(1, all / node / 256);
  for (int64_t nodes = 2; nodes * node <= all; nodes += nodes < 64 ? 1 : step)
    sizes.push_back(nodes * node);
  if (sizes.back() != all)
    sizes.push_back(all);
  return sizes;
}

/// Whether k2c compile has programs of the model for the devices.
static bool isOfPrograms(const PlanRequest &request) {
  return request.phase == PlanPhase::Serve && canCompile(request.spec) && checkCompiles(request.topology);
}

static std::vector<int64_t> tensorWays(const PlanRequest &request) {
  const int64_t heads = commonHeads(request.spec);
  std::vector<int64_t> ways;
  for (int64_t tp : divisors(nearDevices(request.topology)))
    if (heads % tp == 0 && tp <= 16 && (!isOfPrograms(request) || checkTensorParts(request.spec, tp)))
      ways.push_back(tp);
  return ways;
}

static std::vector<int64_t> redundantWays(const PlanRequest &request, int64_t ep) {
  if (!request.spec.moe)
    return {0};
  const int64_t experts = request.spec.moe->experts, fill = (experts + ep - 1) / ep * ep - experts;
  std::vector<int64_t> ways = {fill};
  if (!request.workload.expertLoad.empty() && ep > 1)
    for (int64_t more = 1; more <= 2; ++more)
      ways.push_back(fill + more * ep);
  return ways;
}

/// Neighbours that may share an expert.
static std::vector<int64_t> expertTensorWays(const PlanRequest &request, int64_t ranks) {
  std::vector<int64_t> ways = {1};
  if (request.spec.moe)
    for (int64_t etp : {2, 4, 8})
      if (etp <= nearDevices(request.topology) && ranks % etp == 0 && request.spec.moe->inter % etp == 0 &&
          (!isOfPrograms(request) || checkExpertParts(request.spec, etp)))
        ways.push_back(etp);
  return ways;
}

/// Ranks that may share a sequence.
static std::vector<int64_t> contextWays(const PlanRequest &request) {
  constexpr int64_t minTokens = 8192;
  const int64_t longest =
      request.phase == PlanPhase::Train ? request.workload.train.sequence : RequestMix(request.workload.serve).longest;
  std::vector<int64_t> ways = {1};
  for (int64_t cp = 2; cp <= 64 && longest / cp >= minTokens && request.spec.encoderLayers == 0; cp *= 2)
    ways.push_back(cp);
  return ways;
}

/// One replica with `ranks` in a stage, in every form.
static void addForms(const PlanRequest &request, ParallelLayout layout, int64_t ranks,
                     std::vector<ParallelLayout> &space) {
  layout.dp = ranks / (layout.tp * layout.cp);
  for (int64_t etp : expertTensorWays(request, ranks)) {
    layout.etp = etp;
    layout.ep = request.spec.moe ? ranks / etp : 1;
    for (int64_t redundant : redundantWays(request, layout.ep))
      for (bool overlap : {false, true}) {
        if (overlap && (ranks == 1 || !request.spec.moe))
          continue;
        layout.redundantExperts = redundant;
        layout.overlap = overlap;
        space.push_back(layout);
      }
  }
}

std::vector<ParallelLayout> planner::replicaSpace(const PlanRequest &request) {
  const int64_t all = request.topology.ranks();
  std::vector<ParallelLayout> space;
  for (int64_t tp : tensorWays(request))
    for (int64_t cp : contextWays(request))
      for (int64_t pp : {1, 2, 4, 8})
        for (int64_t ranks : alignedDevices(request.topology)) {
          if (ranks % (tp * cp) || ranks * pp > all || pp > request.spec.layerCount())
            continue;
          if (!request.spec.moe && ranks != tp * cp) // dense models: data-parallel ranks are replicas
            continue;
          ParallelLayout layout;
          layout.tp = tp;
          layout.cp = cp;
          layout.pp = pp;
          addForms(request, layout, ranks, space);
        }
  return space;
}

std::vector<ParallelLayout> planner::servingSpace(const PlanRequest &request) {
  const bool few = request.objective == Objective::Devices || request.objective == Objective::ExpertParallel;
  std::vector<ParallelLayout> space;
  for (ParallelLayout layout : replicaSpace(request)) {
    const int64_t most = request.topology.ranks() / layout.devices();
    layout.replicas = most;
    if (isOfPrograms(request) && layout.cp == 1 && !checkCompiles(request.spec, request.topology, layout))
      continue;
    std::set<int64_t> copies = {most};
    if (few)
      copies.insert(1);
    for (int64_t replicas : copies) {
      layout.replicas = replicas;
      space.push_back(layout);
    }
  }
  return space;
}

/// What a schedule can be on `pp` ranks.
static std::vector<ParallelLayout> schedules(int64_t pp) {
  ParallelLayout plain;
  plain.pp = pp;
  std::vector<ParallelLayout> ways = {plain};
  if (pp == 1)
    return ways;
  plain.schedule = PipelineKind::ZeroBubbleH1;
  ways.push_back(plain);
  for (PipelineKind kind : {PipelineKind::Interleaved, PipelineKind::DualPipe, PipelineKind::DualPipeV})
    for (int64_t chunks : {1, 2, 4})
      for (bool overlap : {false, true}) {
        if ((kind == PipelineKind::Interleaved) == (chunks == 1))
          continue;
        ParallelLayout way = plain;
        way.schedule = kind;
        way.chunks = chunks;
        way.overlap = overlap;
        ways.push_back(way);
      }
  return ways;
}

/// Ranks that share the experts of a layer, and an expert, of `ranks`. Whole experts on as many ranks hold as much and
/// send less, so an expert is divided only where experts cannot be spread further, or are to be spread less.
static std::vector<std::pair<int64_t, int64_t>> expertWays(const PlanRequest &request, int64_t ranks) {
  std::vector<std::pair<int64_t, int64_t>> ways;
  if (!request.spec.moe)
    return {{1, 1}};
  const int64_t experts = request.spec.moe->experts;
  for (int64_t ep : divisors(ranks))
    if (ep <= experts && experts % ep == 0)
      for (int64_t etp : expertTensorWays(request, ranks / ep))
        if (etp == 1 || experts % (2 * ep) || request.objective == Objective::ExpertParallel)
          ways.push_back({ep, etp});
  return ways;
}

std::vector<RecomputeSet> planner::recomputeSets(const ModelSpec &spec) {
  if (spec.moe && spec.latentAttention())
    return {RecomputeSet::None, RecomputeSet::DeepSeekV3, RecomputeSet::KimiK2, RecomputeSet::Layer};
  return {RecomputeSet::None, recomputedOf(spec, RecomputeSet::KimiK2), RecomputeSet::Layer};
}

RecomputeSet planner::recomputedOf(const ModelSpec &spec, RecomputeSet set) {
  if (set == RecomputeSet::Layer || (spec.moe && spec.latentAttention()))
    return set;
  uint8_t modules = 0;
  for (RecomputeSet each : {RecomputeSet::Norms, RecomputeSet::UpProjections, RecomputeSet::Activations})
    if (recomputes(set, each) && (each != RecomputeSet::UpProjections || spec.latentAttention()))
      modules |= uint8_t(each);
  return RecomputeSet(modules);
}

static void addTrainingForms(const PlanRequest &request, ParallelLayout layout, std::vector<ParallelLayout> &space) {
  for (RecomputeSet set : recomputeSets(request.spec))
    for (Zero zero : {Zero::Os, Zero::OsGParams})
      for (int64_t size : {1, 2, 4}) {
        if (size > 1 && layout.cp > 1) // half the cp and half the sequences have as many tokens on a rank and send less
          continue;
        layout.recompute = set;
        layout.zero = zero;
        layout.microbatchSize = size;
        space.push_back(layout);
      }
}

std::vector<ParallelLayout> planner::trainingWays(const PlanRequest &request, int64_t devices) {
  std::vector<ParallelLayout> space;
  for (int64_t tp : tensorWays(request))
    for (int64_t cp : contextWays(request))
      for (int64_t pp = 1; pp <= std::min<int64_t>(64, request.spec.layerCount()); pp *= 2) {
        if (devices % (tp * cp * pp))
          continue;
        for (auto [ep, etp] : expertWays(request, devices / pp)) {
          ParallelLayout layout;
          layout.tp = tp;
          layout.cp = cp;
          layout.pp = pp;
          layout.dp = devices / (tp * cp * pp);
          layout.ep = ep;
          layout.etp = etp;
          layout.sp = tp > 1;
          space.push_back(layout);
        }
      }
  return space;
}

std::vector<ParallelLayout> planner::trainingSpace(const PlanRequest &request) {
  const bool few = request.objective == Objective::Devices || request.objective == Objective::ExpertParallel;
  std::vector<int64_t> sizes = {request.topology.ranks()};
  if (few)
    sizes = alignedDevices(request.topology);
  std::vector<ParallelLayout> space;
  for (int64_t devices : sizes)
    for (ParallelLayout layout : trainingWays(request, devices))
      for (const ParallelLayout &schedule : schedules(layout.pp)) {
        layout.schedule = schedule.schedule;
        layout.chunks = schedule.chunks;
        layout.overlap = schedule.overlap;
        addTrainingForms(request, layout, space);
      }
  return space;
}
