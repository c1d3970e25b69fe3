//===- ClusterPlan.h - A model on a cluster under a load: memory, time, cost -===//
//
// evaluate() predicts ONE layout: what each rank holds, how long each part of a step takes and what bounds it, what
// crosses each tier of links, and the figures that people compare (tokens/s, time to first token, cost). search()
// evaluates every layout of a cluster and says why the others lose. Pure: no weights, no files, no clock; renderers
// (tables, JSON, HTML, traces) read these structs and compute nothing.
//
// Plan.h is what a compile decided for the one rank it compiles today; a ClusterPlan of that layout takes its memory
// from there. Papers 000, 002 and 004; docs/Planner.md names the convention of each term.
//
// Units: bytes, FLOP, seconds, tokens, dollars; never scaled. Sizes of memory are whole bytes, traffic and work are
// real numbers, since routing is a mean.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_CLUSTERPLAN_H
#define K2C_PLANNER_CLUSTERPLAN_H

#include "k2c/Planner/Bubble.h"
#include "k2c/Planner/Schedule.h"
#include "k2c/Planner/TrainingMemory.h"
#include "k2c/Support/DType.h"
#include "k2c/Support/Units.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace k2c {

/// What the cluster does. Serving computes prompts and generates tokens; training takes steps of the optimizer.
enum class PlanPhase : uint8_t { Serve, Train };

/// What a pool of devices does: compute prompts and generate tokens, or one of them.
enum class PoolRole : uint8_t { Both, Prefill, Decode };

/// What the backward of a layer computes again: nothing; any of norms, up projections of latent attention and
/// activations (of Megatron-LM's --recompute-modules layernorm, mla_up_proj and moe_act), as bits; all three, with
/// narrow storage of what experts read (DeepSeek V3) or without (Kimi K2, and its FP8 storage); all of the layer.
enum class RecomputeSet : uint8_t {
  None,
  Norms = 1,
  UpProjections = 2,
  Activations = 4,
  DeepSeekV3 = 8,
  KimiK2,
  KimiK2Fp8,
  Layer
};
inline constexpr size_t recomputeSetCount = size_t(RecomputeSet::Layer) + 1;
/// Whether `set` has `part` (Norms, UpProjections or Activations) in it.
inline bool recomputes(RecomputeSet set, RecomputeSet part) {
  return set >= RecomputeSet::DeepSeekV3 || (uint8_t(set) & uint8_t(part)) != 0;
}

/// What training keeps in the memory of the host.
enum class Offload : uint8_t { None, Activations, Optimizer, Both };
/// Whether `set` has `part` (Activations or Optimizer) in it.
inline bool offloads(Offload set, Offload part) { return (uint8_t(set) & uint8_t(part)) != 0; }

/// How many ways each kind of work is split. One replica of the model takes tp * cp * dp * pp devices, and its experts
/// are spread over ep * etp of the tp * cp * dp devices of a stage. A data-parallel rank is tp * cp devices of a stage.
struct ParallelLayout {
  int64_t tp = 1;  ///< tensor parallelism of attention and dense MLPs
  int64_t ep = 1;  ///< expert parallelism: ranks that share a layer's experts
  int64_t etp = 1; ///< tensor parallelism inside an expert
  int64_t pp = 1;  ///< pipeline stages
  int64_t dp = 1;  ///< data-parallel ranks of one replica
  int64_t cp = 1;  ///< context parallelism: ranks that share the tokens of a sequence, its cache and a prompt's work
  bool sp = false; ///< sequence parallelism over the tp ranks
  /// Independent copies of the whole model; serving only (training's copies are dp).
  int64_t replicas = 1;
  /// Serving: most new tokens of a data-parallel rank in a step (compile's --step-tokens). 0 in a question: as many as
  /// fit.
  int64_t stepTokens = 0;
  int64_t vocab = 1;            ///< serving: ranks of a stage that have parts of embedding and head; all, or 1
  int64_t redundantExperts = 0; ///< serving: physical expert slots of a layer beyond its experts
  /// Serving: a pool of devices of its own that computes prompts, while those above generate tokens (paper 004, section
  /// 2.6). Null: the same devices do both, or what `role` says. Has no such pool itself; never changed once it is
  /// shared.
  std::shared_ptr<const ParallelLayout> prefill;
  /// Serving: of a pool that is planned without the other one, what it does. Both where `prefill` is that other one.
  PoolRole role = PoolRole::Both;
  /// Serving: two-batch overlap. Training: a forward beside a backward where the schedule pairs them.
  bool overlap = false;
  // Training only.
  PipelineKind schedule = PipelineKind::OneFOneB;
  int64_t chunks = 1; ///< model chunks of a rank (interleaved)
  /// Layers of each stage of the model, interleaved pp x chunks of them, DualPipeV 2 pp. Empty: as even as they can be,
  /// the first ones larger.
  std::vector<int64_t> layers;
  /// Of one step, for each data-parallel rank; 0 in a question: as the workload's batch gives.
  int64_t microbatches = 0;
  int64_t microbatchSize = 1;                  ///< sequences
  RecomputeSet recompute = RecomputeSet::None; ///< activations that the backward computes again
  Zero zero = Zero::None;                      ///< states that data-parallel ranks share out
  Offload offload = Offload::None;             ///< what lies in the host's memory

  /// Whether ranks have some of the experts, or parts of them.
  bool dividesExperts() const { return ep > 1 || etp > 1; }
  /// Of one stage of a copy.
  int64_t devicesOfStage() const { return tp * cp * dp; }
  /// Of one copy of the model, without the pool that computes prompts.
  int64_t devicesOfReplica() const { return devicesOfStage() * pp; }
  /// Of all replicas and of both pools.
  int64_t devices() const { return devicesOfReplica() * replicas + (prefill ? prefill->devices() : 0); }
};

/// Names as --layout takes them: "decode", "zb-h1", "k2_fp8", "os+g".
const char *nameOf(PoolRole role);
const char *nameOf(PipelineKind kind);
const char *nameOf(RecomputeSet set); ///< "norms+mla_up_proj", "v3", "full"
const char *nameOf(Zero zero);
const char *nameOf(Offload offload);

/// As --compute and --cache take it: "fp8".
std::string wordOf(DType type);

/// The layout of a program of one rank, as --layout takes it and #dist.plan holds it.
inline constexpr const char *oneRankLayout = "dp=1";

/// "ep=32,dp=32", as --layout takes it; what is 1, none or off is left out. Keys of the pool that computes prompts
/// begin with "prefill.".
std::string format(const ParallelLayout &layout, PlanPhase phase);

/// A component of memory.
struct MemoryPart {
  std::string name; ///< "experts", "cache", "activations", "receive buffers", ...
  Bytes bytes;
};

/// Ranks that hold the same.
struct RankMemory {
  std::string ranks;      ///< "0-31", or "0-7 (prefill)" where pools differ; of one replica
  int64_t count = 1;      ///< ranks in this class, of one replica
  int64_t stage = 0;      ///< pipeline stage
  std::string pool;       ///< "prefill" or "decode" where the devices do only that, else empty
  int64_t parameters = 0; ///< that one rank holds
  std::vector<MemoryPart> parts;
  Bytes capacity; ///< of the device
  Bytes host{};   ///< of one rank, in its node's memory

  /// Of the parts, on the device.
  Bytes total() const;
  /// Whether the device holds them; what lies on the host is HostMemory's.
  bool fits() const { return total() <= capacity; }
};

/// What a part of a step waits for. Latency: messages too small to fill the link.
enum class Bound : uint8_t { Compute, Memory, Link, Latency };
/// "compute", "memory", "link", "latency".
const char *nameOf(Bound bound);

/// A part of a step on one device; all layers together.
struct StepPart {
  std::string phase;           ///< "prefill", "transfer", "decode"; "forward", "backward", "optimizer"
  std::string name;            ///< "attention", "experts", "dispatch and combine", ...
  Seconds seconds;             ///< alone, without overlap
  Flops flops;                 ///< of the device
  double memoryBytes = 0;      ///< of the device's memory, read and written
  double linkBytes = 0;        ///< received from other devices
  std::string tier;            ///< the slowest tier used; empty without links
  Bound bound = Bound::Memory; ///< which of its resources `seconds` is the time of
  Seconds hidden{};            ///< of these seconds, those beside other parts, so that the step is not longer for them

  /// What the step is longer for.
  Seconds exposed() const { return seconds - hidden; }
};

/// What one device receives over one tier in a step.
struct TierTraffic {
  std::string phase;   ///< as StepPart::phase; "step" in training
  std::string tier;    ///< name of the topology's tier
  std::string link;    ///< "nvlink4"; may be empty
  double bytes = 0;    ///< received, for each device and step
  Bandwidth available; ///< of one device, one way, efficiency included
  Seconds seconds;     ///< bytes / available
};

/// A task of the simulated pipeline.
struct PipelineSpan {
  int32_t rank = 0; ///< pipeline rank
  PipelineTask task;
  std::optional<PipelineTask> partner; ///< the backward beside it, when paired
  Seconds begin, end;                  ///< from the start of the step
};

/// A number that plans are compared by.
struct Figure {
  std::string key;   ///< "decode_tokens_per_s_per_device"
  std::string label; ///< "decode tokens/s per GPU"
  double value = 0;  ///< in `unit`, never scaled
  std::string unit;  ///< "tokens/s", "s", "$", "sequences", "" for a share
};

/// What the fullest node's host holds for its devices.
struct HostMemory {
  Bytes bytes, capacity; ///< of a node
  bool fits() const { return bytes <= capacity; }
};

/// One layout, predicted. Owned values: it outlives the request it was made for.
struct ClusterPlan {
  std::string model, topology, workload; ///< names
  PlanPhase phase = PlanPhase::Serve;
  ParallelLayout layout;
  int64_t devices = 1;         ///< used
  int64_t available = 1;       ///< of the topology
  DType compute = DType::BF16; ///< arithmetic; FP8 weights compute in FP8 where the device can
  std::string weightFormat;    ///< "as published", "bf16", "f32"
  DType cache = DType::BF16;   ///< element type of the cache; serving

  int64_t layers = 0;                ///< of the model
  std::vector<int64_t> expertLayers; ///< of these, those with routed experts

  std::vector<RankMemory> memory; ///< classes of equal ranks, by stage
  std::optional<HostMemory> host; ///< where the layout offloads
  std::vector<StepPart> steps;    ///< of all phases, in the order in which they run
  /// Phases whose transfers run beside their work: what the layout allows, where that is faster.
  std::vector<std::string> overlapped;
  std::vector<TierTraffic> traffic; ///< of every phase and tier that something crosses
  std::vector<Figure> figures;      ///< in the order in which people read them
  /// Training: tasks of every pipeline rank by time; empty with one stage or when not asked for.
  std::vector<PipelineSpan> timeline;

  std::string whyNotCompilable;   ///< by `k2c compile` today; empty: it accepts the plan
  std::vector<std::string> notes; ///< assumptions with their sources, and warnings

  /// Whether the transfers of a phase run beside its work.
  bool overlaps(const std::string &phase) const;
  /// The layout of the devices that run a phase.
  const ParallelLayout &layoutOf(const std::string &phase) const {
    return phase == "prefill" && layout.prefill ? *layout.prefill : layout;
  }
  /// A figure's value, or nothing when this phase does not have it.
  std::optional<double> figure(const std::string &key) const;
  /// The class with least room left.
  const RankMemory &fullest() const;
  /// Whether every class of ranks, and the host where the layout offloads, hold what they must.
  bool fits() const;
};

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

/// What the best plan is best at. Throughput: tokens/s of the cluster. Latency: shortest time for each token (training:
/// of a step). Devices: fewest that hold the model and meet the targets. ExpertParallel: smallest ep that does. Cost:
/// dollars for a million tokens.
enum class Objective : uint8_t { Throughput, Latency, Devices, ExpertParallel, Cost };
/// As --objective takes it.
const char *nameOf(Objective objective);

/// A plan that holds and is not the best.
struct RunnerUp {
  ClusterPlan plan;
  std::string loses; ///< to the best: "1.8 times fewer tokens/s: dispatch crosses 8 nodes, 4 suffice"
};

/// Layouts refused for one reason.
struct Refused {
  std::string reason;  ///< "memory", "targets", ...
  int64_t count = 0;   ///< layouts
  std::string example; ///< one of them with both numbers
};

/// What a search of all layouts found.
struct PlanSearch {
  Objective objective = Objective::Throughput; ///< what `best` is best at
  /// Where k2c compile accepts some of the layouts that hold, the best of these.
  ClusterPlan best;
  /// Nothing is better in throughput and latency and devices at once; by throughput, the best first.
  std::vector<ClusterPlan> frontier;
  std::vector<RunnerUp> runnersUp; ///< next in the objective, best first
  int64_t candidates = 0;          ///< layouts evaluated
  int64_t compiling = 0;           ///< of those that hold, the ones that k2c compile accepts
  std::vector<Refused> refused;
};

} // namespace k2c

#endif // K2C_PLANNER_CLUSTERPLAN_H
