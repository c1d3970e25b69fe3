//===- TrainingModel.h - Cost model of a training layout ------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_TRAININGMODEL_H
#define K2C_LIB_PLANNER_CLUSTER_TRAININGMODEL_H

#include "TrainStep.h"
#include <map>
#include <memory>

namespace k2c::planner {

/// Pipeline schedules by shape. A schedule depends on the shape of a layout alone, and a search asks for the same
/// shapes many times.
class PipelineCache {
public:
  struct Entry {
    PipelineSchedule schedule;
    /// For each rank, the numbers of stage passes of each lane whose activations are alive when the rank holds most.
    std::vector<std::vector<std::vector<int64_t>>> alive;
  };
  /// Error: the kind cannot run the shape.
  Expected<std::shared_ptr<const Entry>> get(const PipelineShape &shape);

private:
  std::map<std::array<int64_t, 5>, Expected<std::shared_ptr<const Entry>>> entries;
};

/// The cost model of a training layout: bytes of every rank and seconds of a step. `context` must outlive the model.
class TrainingModel {
public:
  TrainingModel(const RequestModel &context, const ParallelLayout &layout, PipelineCache &cache);

  /// Builds the schedule of every rank. It is an error when the schedule cannot run this shape.
  Status makePrograms();
  /// Simulates all micro-batches or, with `quick`, as many as show the steady state, which is then extrapolated. Needs
  /// makePrograms first.
  Status runPipeline(bool quick);
  /// A lower bound of the seconds of a step: the work of the slowest stage without waiting, and what comes after the
  /// pipeline.
  double minStepSeconds();
  /// Bytes that the fullest rank holds. Needs makePrograms first.
  double maxBytes() const { return maxBytes(routing()); }
  /// The same when tokens are routed as `routing` says.
  double maxBytes(Routing routing) const;
  /// Bytes that the host of the fullest node holds. Needs makePrograms first.
  double hostBytes() const;
  /// Number of parameters whose optimizer states that host holds.
  double hostParameters() const;
  std::vector<RankMemory> memory() const;
  double stepSeconds() const;
  double tokensOfStep() const {
    return double(layout.dp * layout.microbatches * layout.microbatchSize) * double(train.sequence);
  }
  ClusterPlan plan() const;

private:
  enum Part {
    Parameters,
    Gradients,
    Optimizer,
    Activations,
    Uneven,
    Logits,
    Dispatch,
    Second,
    Rows,
    Padding,
    Ring,
    Fixed,
    Loss
  };
  static constexpr size_t parts = 13;
  /// What routing brings to the fullest rank.
  struct Routed {
    RoutedBytes bytes;   ///< of one layer
    double rowsMore = 0; ///< than the mean, which activations count
  };
  std::array<double, parts> bytesOf(int64_t rank, const Routed &routed) const;
  void timeStages();
  PipelineStageTimes stageTimes() const;
  const StageTime &timeOf(size_t stage) const { return times[stages.kindOf(stage)]; }
  /// What a rank does for a micro-batch, in all of its stages. Needs timeStages first.
  const StageTime &workOf(int64_t rank) const { return works[stages.kindOfRank(rank)]; }
  /// The most that a rank holds at once when a pass of stage s holds `bytes(s)`.
  template <class Bytes> double maxAlive(int64_t rank, Bytes bytes) const;
  /// Likewise, of what stays on the device.
  template <class Bytes> double maxOnDevice(int64_t rank, Bytes bytes) const;
  double keptBytes(int64_t rank) const;
  const StateMemory &statesOf(int64_t rank) const { return held[stages.kindOfRank(rank)]; }
  /// Parameters of which a rank holds optimizer states.
  double shardedParameters(int64_t rank) const;
  double hostBytes(int64_t rank) const;
  /// The most that a node's ranks hold together.
  template <class Bytes> double maxOfNode(Bytes bytes) const;
  double maxPasses() const;
  StateMemory states(const RankShare &share) const;
  /// As the workload says; measured where it has loads.
  Routing routing() const;
  Routed routed(Routing routing) const;
  /// A sum of gradients or a collection of parameters, all of a step.
  struct Exchange {
    LinkUse use;
    double seconds = 0, hidden = 0; ///< hidden: of `seconds`, beside computing
  };
  struct Exchanges {
    Exchange gradients, parameters;
    double exposed() const { return gradients.seconds - gradients.hidden + parameters.seconds - parameters.hidden; }
  };
  Exchanges exchanges() const;
  LinkUse gatherAll(double bytes) const;
  /// The update of all parameters: by the device, or by the processors of its node.
  struct Update {
    double bytes = 0; ///< of memory, read and written: of the rank with most, or of the fullest node
    double seconds = 0;
    // Over the host link, by the host only.
    double gradients = 0, parameters = 0; ///< bytes
    double gradientSeconds = 0, parameterSeconds = 0;
    double longest() const { return std::max({seconds, gradientSeconds, parameterSeconds}); }
  };
  Update update() const;
  void addUpdate(ClusterPlan &plan) const;
  void addSteps(ClusterPlan &plan) const;
  void addFigures(ClusterPlan &plan) const;

  const RequestModel &context;
  const TrainWorkload &train;
  const ParallelLayout layout;
  PipelineCache &cache;
  TrainStages stages;
  std::vector<RankShare> shares; ///< of each kind of rank
  std::vector<StateMemory> held; ///< likewise
  std::vector<StageTime> works;  ///< likewise, of a micro-batch
  std::vector<StageTime> times;  ///< of each kind of stage
  size_t slowest = 0;            ///< the rank with most to do
  StageTime work;                ///< its
  int64_t edp = 1;
  double makespan = 0;
  double idle = 0, meanIdle = 0;                        ///< of the slowest rank; of all
  std::shared_ptr<const PipelineCache::Entry> programs; ///< none: one rank, which runs one stage
  std::optional<PipelineTimeline> timeline;
};

/// The layout with the micro-batches of the workload's batch. Error: it does not divide.
Expected<ParallelLayout> withMicrobatches(const TrainWorkload &train, ParallelLayout layout);

/// The layout with layers of stages chosen such that its slowest rank has least to do; nothing when it has one stage,
/// or stages that are as even as they can be are no slower.
std::optional<ParallelLayout> withChosenLayers(const RequestModel &context, ParallelLayout layout);

/// What a search ranks by.
struct TrainScore {
  ParallelLayout layout;
  double tokensPerSecond = 0, stepSeconds = 0, maxBytes = 0;
};
/// Without a plan's tables. `simulates`: the pipeline's steady state is simulated and extrapolated; else memory is
/// exact, and speeds are no lower than the score's.
Expected<TrainScore> scoreTrain(const RequestModel &context, const ParallelLayout &layout, PipelineCache &cache,
                                bool simulates);
/// Bytes of the fullest rank; nothing when the model or the schedule does not divide.
std::optional<double> trainingBytes(const RequestModel &context, const ParallelLayout &layout, PipelineCache &cache);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_TRAININGMODEL_H
