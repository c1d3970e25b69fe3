//===- TrainPipeline.cpp - Time of a training layout's pipeline ---------------===//

#include "TrainingModel.h"

#include <algorithm>
#include <numeric>

using namespace k2c;
using namespace k2c::planner;

Expected<std::shared_ptr<const PipelineCache::Entry>> PipelineCache::get(const PipelineShape &shape) {
  const std::array<int64_t, 5> key = {int64_t(shape.kind), shape.pp, shape.microbatches, shape.chunks, shape.paired};
  auto found = entries.find(key);
  if (found != entries.end())
    return found->second;
  Expected<PipelineSchedule> schedule = makePipelineSchedule(shape);
  if (!schedule) {
    Error error = schedule.takeError();
    error.where = "schedule";
    return entries.emplace(key, Expected<std::shared_ptr<const Entry>>(error)).first->second;
  }
  // What lives at once follows from the order, whatever tasks last.
  Entry entry{std::move(*schedule), {}};
  for (size_t rank = 0; rank < entry.schedule.ranks.size(); ++rank)
    entry.alive.push_back(fullestMoments(entry.schedule, rank));
  return entries.emplace(key, std::make_shared<const Entry>(std::move(entry))).first->second;
}

TrainingModel::TrainingModel(const RequestModel &context, const ParallelLayout &layout, PipelineCache &cache)
    : context(context), train(context.request.workload.train), layout(layout), cache(cache), stages(context, layout) {
  edp = layout.tp * layout.cp * layout.dp / (layout.ep * layout.etp);
  for (int64_t rank : stages.firstRanks()) {
    shares.push_back(stages.shareOf(rank));
    held.push_back(states(shares.back()));
  }
}

/// Without overlap transfers block.
PipelineStageTimes TrainingModel::stageTimes() const {
  std::vector<PipelineStageTimes::Stage> ofModel;
  for (size_t stage = 0; stage < stages.count(); ++stage) {
    const StageTime &t = timeOf(stage);
    ofModel.push_back({t.forward.seconds + t.linkSeconds + t.ringExposed(0) + t.hostExposed / 2,
                       t.inputGrad.seconds + t.linkSeconds + t.ringExposed(1) + t.hostExposed / 2,
                       t.weightGrad.seconds});
  }
  const PipelineShape shape = shapeOf(layout, layout.microbatches);
  PipelineStageTimes result(shape, ofModel);
  if (!layout.overlap)
    return result;
  const size_t lanes = size_t(result.lanes);
  for (size_t at = 0; at < result.pairs.size(); ++at) {
    const int32_t rank = int32_t(at / lanes / lanes);
    const StageTime &f = timeOf(size_t(stageOf(shape, {rank, int32_t(at / lanes % lanes)}))),
                    &b = timeOf(size_t(stageOf(shape, {rank, int32_t(at % lanes)})));
    result.pairs[at] = std::max(f.forward.seconds + b.backward(),
                                f.linkSeconds + b.linkSeconds + f.ringSeconds[0] + b.ringSeconds[1]) +
                       f.hostExposed / 2 + b.hostExposed / 2;
  }
  return result;
}

/// Few enough micro-batches to simulate often, with the remainder that their groups leave: all, or between four and six
/// times the ranks.
static int64_t shortened(int64_t microbatches, int64_t pp) {
  const int64_t period = 2 * pp;
  return microbatches < 8 * pp ? microbatches : 4 * pp + microbatches % period;
}

Status TrainingModel::makePrograms() {
  if (layout.pp == 1 && layout.schedule != PipelineKind::Interleaved)
    return Status::success();
  // GPipe keeps all micro-batches alive, others as many as fill the pipeline.
  const bool keepsAll = layout.schedule == PipelineKind::GPipe;
  Expected<std::shared_ptr<const PipelineCache::Entry>> entry =
      cache.get(shapeOf(layout, keepsAll ? layout.microbatches : shortened(layout.microbatches, layout.pp)));
  if (!entry)
    return entry.takeError();
  programs = std::move(*entry);
  return Status::success();
}

void TrainingModel::timeStages() {
  if (!works.empty())
    return;
  for (size_t kind = 0; kind < stages.kindCount(); ++kind)
    times.push_back(stages.timeOfKind(kind));
  const PipelineRoute route(shapeOf(layout, layout.microbatches));
  // Half of the micro-batches of DualPipe come from each end.
  const double share = double(route.microbatches()) / double(layout.microbatches);
  for (int64_t rank : stages.firstRanks()) {
    StageTime sum;
    for (size_t stage : stages.ofRank(rank))
      sum += timeOf(stage) * share;
    works.push_back(sum);
    if (rank == 0 || sum.passes() > work.passes()) {
      slowest = size_t(rank);
      work = sum;
    }
  }
}

double TrainingModel::minStepSeconds() {
  timeStages();
  double longest = 0;
  for (const StageTime &each : works)
    longest = std::max(longest, layout.overlap ? std::min(each.passes(), each.together()) : each.passes());
  constexpr double rounding = 1 - 1e-9; // of sums in another order
  makespan = rounding * double(layout.microbatches) * longest;
  return stepSeconds();
}

Status TrainingModel::runPipeline(bool quick) {
  timeStages();
  if (layout.pp == 1 && layout.schedule != PipelineKind::Interleaved) {
    makespan = double(layout.microbatches) * work.passes();
    return Status::success();
  }
  const PipelineStageTimes durations = stageTimes();
  auto run = [&](int64_t microbatches) -> Expected<PipelineTimeline> {
    const PipelineShape shape = shapeOf(layout, microbatches);
    if (quick) {
      Expected<std::shared_ptr<const PipelineCache::Entry>> entry = cache.get(shape);
      return entry ? simulate((*entry)->schedule, durations) : Expected<PipelineTimeline>(entry.takeError());
    }
    Expected<PipelineSchedule> schedule = makePipelineSchedule(shape);
    return schedule ? simulate(*schedule, durations) : Expected<PipelineTimeline>(schedule.takeError());
  };
  const int64_t few = quick ? shortened(layout.microbatches, layout.pp) : layout.microbatches;
  Expected<PipelineTimeline> first = run(few);
  if (!first)
    return first.takeError();
  makespan = first->makespan;
  // Of ranks that have as much to do, the one that idles most.
  for (int64_t rank = 0; rank < layout.pp; ++rank)
    if (first->idle[size_t(rank)] > first->idle[slowest] && workOf(rank).passes() >= work.passes() * (1 - 1e-12))
      slowest = size_t(rank);
  idle = first->idle[slowest];
  meanIdle = std::accumulate(first->idle.begin(), first->idle.end(), 0.0) / double(layout.pp);
  if (few < layout.microbatches) {
    Expected<PipelineTimeline> longer = run(few + 2 * layout.pp);
    if (!longer)
      return longer.takeError();
    makespan += (longer->makespan - first->makespan) * double(layout.microbatches - few) / double(2 * layout.pp);
  }
  timeline = std::move(*first);
  return Status::success();
}
