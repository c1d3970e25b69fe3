// A run of a bundle: its ranks, how long the pieces of a prompt are, and what ran when.
//
// Everything is allocated at the start, once. The scheduler (Scheduler.h) decides what a step contains; the engine has
// it run. Which kind of device a rank has is its caller's choice. Of several ranks the engine is rank 0's: it sends
// each its part of a step and gets the results (RankMember.h). A program of one rank runs what it is given, with no
// record. Ranks in stages have as many steps under way, each of another microbatch, which are sequences of its own.
#ifndef K2RT_ENGINE_ENGINE_H
#define K2RT_ENGINE_ENGINE_H

#include "engine/ExpertStatistics.h"
#include "engine/RankMember.h"
#include "engine/RouteTraffic.h"
#include "engine/StepRows.h"
#include "engine/TraceFile.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace k2c::runtime {

struct EngineOptions {
  int64_t chunk = 0;          ///< most prompt tokens of a sequence per step; 0: as many as fit
  std::string traceFile;      ///< "": no trace
  bool countsExperts = false; ///< has statistics()
  bool countsTraffic = false; ///< has traffic(); of several ranks
};

/// How prompts were divided over the ranks with sequences: of each step that reads some, prompt tokens of the fullest
/// rank over the mean of all.
struct PromptSpread {
  int64_t steps = 0;
  double sum = 0, most = 0;

  void add(int64_t fullest, int64_t all, int64_t ranks);
  double mean() const { return steps > 0 ? sum / static_cast<double>(steps) : 0; }
};

class Engine {
public:
  /// `bundle` outlives the engine. `exchange`: to the other ranks, which serve it; null where there are none.
  static Expected<std::unique_ptr<Engine>> create(const Bundle &bundle, std::unique_ptr<Device> device,
                                                  const EngineOptions &options,
                                                  std::unique_ptr<Exchange> exchange = nullptr);

  const Manifest &manifest() const { return theBundle.manifest; }
  int64_t chunk() const { return chunkTokens; }
  /// The one that this engine runs itself.
  Rank &rank() { return member ? member->rank() : *theRank; }
  /// With sequences of their own: those of a stage, in all replicas.
  int32_t ranks() const { return static_cast<int32_t>(manifest().ranks.dataRanks()); }
  /// Whether a step may be submitted behind one of the same microbatch that is under way, whose samples its ids may
  /// name, if neither wants logits, log probabilities or captures and the first draws nothing.
  bool chains() const { return !member && !capturesExperts() && theRank->chains(); }
  /// Of which each has a step under way.
  int32_t microbatches() const { return microbatchesOf(manifest().ranks); }
  /// What steps of `rank` are built from.
  StepArrays &arrays(int32_t microbatch, int32_t rank) {
    return member ? underWay[microbatch].ranks[rank].arrays : theRank->arrays();
  }
  /// Its free pages, per cache group.
  std::vector<PagePool> &pages(int32_t rank) { return member ? freePages[rank] : theRank->pages(); }

  /// The next step of `rank`, from its arrays(); every rank has one, of no rows perhaps. Of several ranks, forced
  /// routes may be overwritten for the next one then. Of one rank, `wanted` has to stay up to the results.
  void prepare(int32_t microbatch, int32_t rank, const k2rt_ir_step &step, const WantedOutputs &wanted);
  /// Begins what was prepared of a microbatch that is not under way, or of one that chains.
  Status submit(int32_t microbatch);
  /// Waits for the one that was submitted first of those under way.
  Status collect(int32_t microbatch);
  /// What `rank` computed of a microbatch that was collected; what it captured is in the buffers of its step, up to the
  /// results of another rank.
  StepResults results(int32_t microbatch, int32_t rank);
  /// Of all steps that have run; null unless they were asked for.
  const ExpertStatistics *statistics() const { return counted ? &*counted : nullptr; }
  const RouteTraffic *traffic() const { return routed ? &*routed : nullptr; }
  int64_t stepsRun() const { return steps; }
  /// Of these, the ones that went in two halves.
  int64_t stepsInHalves() const { return halved; }
  const PromptSpread &prompts() const { return promptSpread; }
  /// Of several ranks, before finish: what each has counted.
  Expected<std::vector<RankCounters>> counters() { return member->counters(); }

  /// A placement by which no step goes, because a rank lacks weights of its experts.
  struct RefusedPlacement {
    std::string place;
    int32_t rank;
  };
  const std::vector<RefusedPlacement> &refusedPlacements() const { return refused; }

  /// Safe in a signal handler.
  void interrupt();
  /// Once, after the last step: writes the trace of all ranks, if there is one, and ends the run of the others.
  Status finish();
  /// Writes the trace of this rank, if there is one: all that is left to do after a failure.
  Status finishTrace();

private:
  explicit Engine(const Bundle &bundle) : theBundle(bundle) {}

  /// What rank 0 keeps of a step of a rank.
  struct RankStep {
    StepArrays arrays;
    k2rt_ir_step prepared = {};
    uint32_t flags = 0; ///< StepFlag
  };
  struct Microbatch {
    std::vector<RankStep> ranks; ///< with sequences
    AllRecords records;
    AllResults gathered;
    size_t table = 0;      ///< of the placement, by which its step goes
    bool inHalves = false; ///< its step
  };
  Status addRanks();
  Status choosePlacements();
  void countRows(const k2rt_ir_step &step);
  /// What a rank of a sequence gave back.
  struct StageResults {
    std::byte *results;
    ResultLayout layout;
    int64_t firstLayer, endLayer; ///< of which it has captured
  };
  StepResults onlyResults();
  StageResults resultsOf(Microbatch &of, int64_t source, int64_t stage);
  std::vector<RowRange> rowsOf(const Microbatch &of, int64_t source) const;
  template <class T>
  void bringLayers(Microbatch &of, int32_t dataRank, int64_t ResultLayout::*part, bool areMoe, int64_t perRow,
                   void *to);
  void bringOutputs(Microbatch &of, int32_t dataRank);
  void bringLargest(Microbatch &of, int32_t dataRank, float *to);
  void planResults(Microbatch &of) const;
  Status writeTrace(int64_t lost);
  bool capturesExperts() const { return counted || routed; }
  void countCaptured(int32_t microbatch);

  const Bundle &theBundle;
  int64_t chunkTokens = 0;
  std::unique_ptr<TraceFile> traceFile;
  std::unique_ptr<Trace> trace;
  std::vector<Microbatch> underWay;             ///< of several ranks
  std::vector<std::vector<PagePool>> freePages; ///< the same, by rank with sequences
  std::vector<PlacementPeriod> periods;         ///< of the placement, those that hold
  std::vector<RefusedPlacement> refused;
  int64_t steps = 0, halved = 0;             ///< that were run; of these, in halves
  int64_t promptRows = 0, generatedRows = 0; ///< of the step that is prepared, of all ranks
  int64_t maxRows = 0, maxPromptRows = 0;    ///< of it, of one rank
  PromptSpread promptSpread;
  k2rt_ir_step only = {};           ///< of one rank: the step that was prepared
  WantedOutputs onlyWanted;         ///< of it
  std::vector<float> probabilities; ///< its results, where they are wanted
  std::optional<ExpertStatistics> counted;
  std::optional<RouteTraffic> routed;
  std::vector<int32_t> chosen;        ///< what steps capture for these two, of a rank at a time
  std::vector<int32_t> merged;        ///< the same, brought together from the stages and slices of a rank
  std::vector<int32_t> sources;       ///< of its rows, which rank of a stage carried them
  std::unique_ptr<Rank> theRank;      ///< of one rank; behind the trace, into which its device records
  std::unique_ptr<RankMember> member; ///< of several; behind what it sends and receives
};

} // namespace k2c::runtime

#endif
