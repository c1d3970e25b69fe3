//===- ServeStep.h - Time of one step of a serving layout ---------------------===//
//
// A step gives each data-parallel rank some sequences with some new tokens each. Its parts take turns; each is bound by
// arithmetic, by memory or by links (paper 004, equations 46-51, with the corrections that docs/Planner.md lists).
//
// With cp > 1 a data-parallel rank is cp devices: each holds 1/cp of every sequence's cache and does the work of 1/cp
// of the new tokens. In attention, the tokens of one must meet the keys of all. Either the keys move (all-gathered from
// the caches, a ring sends as many bytes), or the queries do, and each device returns a partial output with its
// log-sum-exp in f32: "pass-KV" and "pass-Q" of ring attention. What is fewer bytes is taken: keys for long prompts,
// queries for decoding.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_SERVESTEP_H
#define K2C_LIB_PLANNER_CLUSTER_SERVESTEP_H

#include "DeviceRates.h"
#include "HalfBatches.h"
#include "Links.h"
#include "ModelShare.h"

namespace k2c::planner {

/// What a data-parallel rank, cp devices, gets in a step. Real numbers: half a batch of odd size, means of
/// distributions.
struct StepLoad {
  double sequences = 1;
  double tokens = 1;    ///< new ones of a sequence
  double context = 0;   ///< cached before, of a sequence
  bool encodes = false; ///< encoder-decoder models: the layers that read the prompt
  double rows() const { return sequences * tokens; }
};

enum class ServePart : uint8_t {
  Attention,
  Experts,
  Dense,
  Head,
  Draft,
  Dispatch,
  Tensor,
  Context,
  Pipeline,
  Vocabulary
};
inline constexpr size_t servePartCount = 10;

/// One part on one device.
struct PartTime {
  double flops = 0, memory = 0; ///< FLOP; bytes
  LinkUse links;
  double seconds = 0;
  double waiting = 0; ///< of these seconds, those that memory takes
  Bound bound = Bound::Memory;
};

inline PartTime &of(std::array<PartTime, servePartCount> &parts, ServePart part) { return parts[size_t(part)]; }

/// A step of one batch through all stages.
struct StepTime {
  std::array<PartTime, servePartCount> parts; ///< of all stages together
  LayerTurns turns;
  double local = 0, links = 0; ///< seconds of parts that compute, and of those that communicate
  double seconds = 0;          ///< from its first stage to its last, overlap included
  double slowestStage = 0;
  bool overlaps = false;
};

/// Times steps of one layout.
class ServeStep {
public:
  ServeStep(const PlanRequest &request, const ModelShare &model, const DeviceRates &rates, const Links &links,
            const ParallelLayout &layout);

  /// One batch; with two-batch overlap each half apart.
  StepTime time(const StepLoad &load, bool overlap) const;
  /// As the layout says; of a program that k2c compiles, with overlap where that takes less time.
  StepTime time(const StepLoad &load) const;
  /// Seconds between two tokens of a sequence when each data-parallel rank decodes `sequences` of `context` tokens, in
  /// as many batches as there are stages.
  double decodeSeconds(const StepTime &step) const;
  /// Seconds from the begin of a step to that of the next one: a batch is under way in each stage.
  double period(const StepTime &step) const { return layout.pp > 1 ? step.slowestStage : step.seconds; }
  /// The same of two chunks of one prompt, of which a program that k2c compiles has one under way.
  double chunkPeriod(const StepTime &step) const { return compiles ? step.seconds : period(step); }
  StepLoad decodeLoad(double sequences, double context) const;
  /// Most rows of a rank for each row of a mean rank.
  double imbalance(double rows) const;

private:
  /// What kernels and all-to-alls of large batches leave each other when they run at once.
  struct Together {
    double multiprocessors = 1, links = 1;
  };
  void addStage(StepTime &time, const RankShare &share, const StepLoad &load, Together together) const;
  KernelWork attention(const RankShare &share, const StepLoad &load) const;
  KernelWork experts(const RankShare &share, const StepLoad &load) const;
  KernelWork dense(const RankShare &share, const StepLoad &load) const;
  KernelWork head(const RankShare &share, const StepLoad &load) const;
  bool decodes(const StepLoad &load) const;
  void addLinks(std::array<PartTime, servePartCount> &parts, LayerTurns &turns, const RankShare &share,
                const StepLoad &load, double linkShare) const;
  void addRoutes(PartTime &part, LayerTurns &turns, const RankShare &share, const StepLoad &load,
                 double linkShare) const;
  LinkUse vocabularyLinks(const RankShare &share, const StepLoad &load) const;
  Turn moving(const LinkUse &use) const;
  void addTurns(LayerTurns &turns, const std::array<PartTime, servePartCount> &parts, const RankShare &share) const;
  Copies copiesOf(const StepLoad &load) const;
  double unusedRows(const StepLoad &load) const;
  /// What a part does with so many rows beside its FLOP and weights: `ranks` share out heads and widths.
  void addRows(KernelWork &work, const KernelTraffic &traffic, double rows, int64_t ranks, double fusedBytes) const;
  double attentionCore(const AttentionSizes &sizes, const StepLoad &load) const;
  double coreFlops(const AttentionSizes &sizes, double sequences, double queries, double keys, double all) const;
  double cacheTraffic(const AttentionSizes &sizes, const StepLoad &load) const;
  /// New rows of each of a data-parallel rank's devices.
  double rowsOf(const StepLoad &load) const { return load.rows() / double(layout.cp); }
  /// Rows of logits that each of these devices gets.
  double outputRowsOf(const StepLoad &load) const {
    return load.sequences / double(layout.cp) * std::min(load.tokens, 1 + double(request.workload.serve.draftTokens));
  }
  /// Bytes of a layer that a device has after its keys, or its queries and partial outputs, were passed on.
  struct Passed {
    double keys = 0, queries = 0, outputs = 0;
    bool passesKeys() const { return keys <= queries + outputs; }
  };
  Passed passed(const AttentionSizes &sizes, const StepLoad &load) const;

  const PlanRequest &request;
  const ModelShare &model;
  const DeviceRates &rates;
  const Links &links;
  const ParallelLayout layout;
  const bool compiles;                     ///< k2c compile accepts the layout
  std::vector<RankShare> stages, decoding; ///< decoding: without encoder layers
  std::optional<RankShare> draft;
  double measuredImbalance = 0; ///< of Workload::expertLoad; 0: none given
  int64_t expanded = -1;
};

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_SERVESTEP_H
