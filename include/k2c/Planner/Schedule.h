//===- Schedule.h - Pipeline schedules as static programs of ranks ------------===//
//
// A schedule is one list of actions for each rank: what it computes, in which order, and which activations and
// gradients it exchanges in between. Nothing is decided while it runs, so that deadlock, idle time and memory are known
// before. Sources: GPipe (Huang et al., 2019), 1F1B and interleaved 1F1B (Narayanan et al., 2021; Megatron-LM), ZB-H1
// (Qi et al., 2024), DualPipe and DualPipeV (DeepSeek-AI, 2025).
//
// A micro-batch passes the stages of one lane after the other. A lane is the model chunk of interleaved 1F1B, the
// direction of DualPipe (0 enters at rank 0, 1 at the last rank) or the leg of DualPipeV (down the ranks, then back).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_SCHEDULE_H
#define K2C_PLANNER_SCHEDULE_H

#include "base/Error.h"
#include "k2c/Planner/Bubble.h"
#include <vector>

namespace k2c {

/// What a schedule is made for.
struct PipelineShape {
  PipelineKind kind = PipelineKind::OneFOneB;
  int64_t pp = 1; ///< ranks
  int64_t microbatches = 1;
  int64_t chunks = 1;      ///< interleaved: model chunks of a rank
  int64_t group = 0;       ///< interleaved: micro-batches that run through a chunk together; 0: pp
  int64_t extraWarmup = 0; ///< interleaved: 1 lets a forward of the steady state overlap the backward after it
  bool paired = false;     ///< interleaved: the steady state as overlapped pairs
};

/// A rank's share of a lane.
struct PipelinePlace {
  int32_t rank = 0;
  int32_t lane = 0;
};

/// Where micro-batches enter, go on and leave.
class PipelineRoute {
public:
  explicit PipelineRoute(const PipelineShape &shape);
  int32_t lanes() const { return laneCount; }
  /// Micro-batches of one lane: half of all in DualPipe, which numbers them within the direction.
  int32_t microbatches() const { return perLane; }
  /// The stage after and before `at`; none at the ends of the model.
  std::optional<PipelinePlace> next(PipelinePlace at) const { return neighbour(at, 1); }
  std::optional<PipelinePlace> previous(PipelinePlace at) const { return neighbour(at, -1); }

private:
  std::optional<PipelinePlace> neighbour(PipelinePlace at, int32_t step) const;

  PipelineKind kind;
  int32_t ranks, laneCount, perLane;
};

/// A part of a micro-batch's work on one stage. Backward computes both gradients; InputGrad only the one that the stage
/// before waits for, WeightGrad the deferred rest.
enum class PipelineWork : uint8_t { Forward, Backward, InputGrad, WeightGrad };

struct PipelineTask {
  PipelineWork work = PipelineWork::Forward;
  int32_t lane = 0;
  int32_t microbatch = 0;
};

/// One step of a rank. Sends and receives are posted (activations where task.work is Forward, else gradients; named by
/// the lane of the rank that acts); Wait sends all posted since the last Wait out as one exchange and blocks until it
/// is complete.
struct PipelineAction {
  enum class Kind : uint8_t { Compute, Pair, Send, Receive, Wait };
  Kind kind = Kind::Wait;
  PipelineTask task;
  PipelineTask partner; ///< Pair: the backward that runs beside the forward `task`
  int32_t peer = 0;     ///< of a send or receive
  bool computes() const { return kind == Kind::Compute || kind == Kind::Pair; }
};

/// The actions of each rank.
struct PipelineSchedule {
  PipelineShape shape;
  std::vector<std::vector<PipelineAction>> ranks;

  /// What a rank computes, and that with its transport, in one line: "F0 sF0>1 | F1 sF1>1 rB0<1 | B0".
  std::string order(size_t rank) const;
  std::string trace(size_t rank) const;
};

/// Errors: a shape that the kind cannot run or whose programs exceed 2^18 stage passes. `where` is the name of the
/// field of the shape (kind, pp, microbatches, chunks, group, extraWarmup, paired).
Expected<PipelineSchedule> makePipelineSchedule(const PipelineShape &shape);

/// Durations on the layers of a whole rank; interleaved chunks take their share of it.
struct PipelineDurations {
  double forward = 1;
  double inputGrad = 1;
  double weightGrad = 1;
  /// Of a pair; default: its parts one after the other.
  std::optional<double> overlapped;
};

/// Durations of each stage by itself, where stages differ: an uneven split of the layers, an embedding or a head.
struct PipelineStageTimes {
  struct Stage {
    double forward = 0, inputGrad = 0, weightGrad = 0;
    double backward() const { return inputGrad + weightGrad; }
  };
  int32_t lanes = 1;
  std::vector<Stage> stages; ///< of (rank, lane) at rank * lanes + lane
  /// Of a forward in lane f beside a backward in lane b of a rank, at (rank * lanes + f) * lanes + b.
  std::vector<double> pairs;

  /// The stages of a shape, in the order of the model's layers (stagesOfLanes); a pair is as long as its parts one
  /// after the other.
  PipelineStageTimes(const PipelineShape &shape, const std::vector<Stage> &ofModel);
  /// Alike: of each, the share of a rank's `durations` that a lane has.
  PipelineStageTimes(const PipelineShape &shape, const PipelineDurations &durations);
};

/// Stages of the model that the shape's ranks run: pp; interleaved pp times chunks; DualPipeV 2 pp.
int64_t stageCount(const PipelineShape &shape);
/// The stage of the model that a rank runs in a lane.
int64_t stageOf(const PipelineShape &shape, PipelinePlace place);

/// When a rank computes.
struct PipelineTaskTime {
  PipelineAction action; ///< Compute or Pair
  double begin = 0, end = 0;
};

/// What happens when the orders run and transfers cost nothing.
struct PipelineTimeline {
  double makespan = 0;
  std::vector<std::vector<PipelineTaskTime>> tasks; ///< of each rank, in order
  std::vector<double> idle;                         ///< of each rank: makespan less busy time
  /// Of each rank: most forwards not yet retired by their backward (ZB-H1: by their weight gradients), in chunks.
  std::vector<int64_t> peakStash;
};

/// Forwards alive in each lane of a rank at its fullest moments: those counts that no other moment covers. What a rank
/// keeps is the most that any of them holds.
std::vector<std::vector<int64_t>> fullestMoments(const PipelineSchedule &schedule, size_t rank);

/// Runs the orders. Error: a deadlock, with the rank and the task that never starts.
Expected<PipelineTimeline> simulate(const PipelineSchedule &schedule, const PipelineDurations &durations);
/// Likewise, with durations of each stage.
Expected<PipelineTimeline> simulate(const PipelineSchedule &schedule, const PipelineStageTimes &times);

/// Idle time of the worst rank by the closed form (pipelineBubble); none where it does not hold: durations outside its
/// conditions (bubbleFormHolds), fewer micro-batches than ranks, interleaved groups and warm-ups of another length.
std::optional<double> closedFormIdle(const PipelineShape &shape, const PipelineDurations &durations);

} // namespace k2c

#endif // K2C_PLANNER_SCHEDULE_H
