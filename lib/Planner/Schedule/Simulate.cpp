//===- Simulate.cpp - Pipeline schedules in time ------------------------------===//
//
// Each rank runs its order; a task starts when the rank is free and its input is there. A rank that must wait is woken
// by the task that it waits for, so that the cost is linear in tasks; what never wakes is a deadlock.
//
//===----------------------------------------------------------------------===//

#include "Programs.h"

#include <algorithm>
#include <deque>
#include <numeric>

using namespace k2c;
using namespace k2c::planner;

PipelineStageTimes::PipelineStageTimes(const PipelineShape &shape, const std::vector<Stage> &ofModel)
    : lanes(PipelineRoute(shape).lanes()) {
  for (int32_t rank = 0; rank < shape.pp; ++rank)
    for (int32_t lane = 0; lane < lanes; ++lane)
      stages.push_back(ofModel[size_t(stageOf(shape, {rank, lane}))]);
  for (size_t place = 0; place < stages.size(); ++place)
    for (size_t lane = 0, first = place - place % size_t(lanes); lane < size_t(lanes); ++lane)
      pairs.push_back(stages[place].forward + stages[first + lane].backward());
}

PipelineStageTimes::PipelineStageTimes(const PipelineShape &shape, const PipelineDurations &d)
    : PipelineStageTimes(shape, [&] {
        const double share = 1.0 / double(shape.chunks);
        return std::vector<Stage>(size_t(stageCount(shape)),
                                  {share * d.forward, share * d.inputGrad, share * d.weightGrad});
      }()) {
  if (d.overlapped)
    pairs.assign(pairs.size(), *d.overlapped / double(shape.chunks));
}

namespace {

class Runner {
public:
  Runner(const PipelineSchedule &schedule, const PipelineStageTimes &durations)
      : schedule(schedule), table(schedule), durations(durations), forwardEnd(table.size(), -1),
        backwardEnd(table.size(), -1) {}

  Expected<TaskTimes> run() {
    size_t count = schedule.ranks.size();
    times.start.resize(count);
    times.end.resize(count);
    clock.assign(count, 0);
    for (size_t rank = 0; rank < count; ++rank) {
      times.start[rank].resize(schedule.ranks[rank].size());
      times.end[rank].resize(schedule.ranks[rank].size());
      ready.push_back(rank);
    }
    std::vector<size_t> at(count, 0);
    while (!ready.empty()) {
      size_t rank = ready.front();
      ready.pop_front();
      while (at[rank] < schedule.ranks[rank].size() && step(rank, at[rank]))
        ++at[rank];
    }
    for (size_t rank = 0; rank < count; ++rank)
      if (at[rank] < schedule.ranks[rank].size())
        return Error{"rank " + std::to_string(rank),
                     describe(schedule, schedule.ranks[rank][at[rank]].task) + " waits for ever for its input", ""};
    return std::move(times);
  }

private:
  /// Time at which the task's input is there; negative: not yet.
  double inputTime(size_t rank, const PipelineTask &task) const {
    PipelinePlace place{static_cast<int32_t>(rank), task.lane};
    size_t own = table.at(place, task.microbatch);
    switch (task.work) {
    case PipelineWork::Forward: {
      std::optional<PipelinePlace> source = table.route.previous(place);
      return source ? forwardEnd[table.at(*source, task.microbatch)] : 0;
    }
    case PipelineWork::Backward:
    case PipelineWork::InputGrad: {
      std::optional<PipelinePlace> source = table.route.next(place);
      return forwardEnd[own] < 0 || !source ? forwardEnd[own] : backwardEnd[table.at(*source, task.microbatch)];
    }
    case PipelineWork::WeightGrad:
      return backwardEnd[own];
    }
    return -1;
  }

  double duration(size_t rank, const PipelineAction &action) const {
    const size_t lanes = size_t(durations.lanes), place = rank * lanes + size_t(action.task.lane);
    if (action.kind == PipelineAction::Kind::Pair)
      return durations.pairs[place * lanes + size_t(action.partner.lane)];
    const PipelineStageTimes::Stage &stage = durations.stages[place];
    switch (action.task.work) {
    case PipelineWork::Forward:
      return stage.forward;
    case PipelineWork::Backward:
      return stage.backward();
    case PipelineWork::InputGrad:
      return stage.inputGrad;
    case PipelineWork::WeightGrad:
      return stage.weightGrad;
    }
    return 0;
  }

  /// Records a task's end and wakes the rank that goes on with it.
  void finish(size_t rank, const PipelineTask &task, double end) {
    if (task.work == PipelineWork::WeightGrad)
      return;
    PipelinePlace place{static_cast<int32_t>(rank), task.lane};
    bool isForward = task.work == PipelineWork::Forward;
    (isForward ? forwardEnd : backwardEnd)[table.at(place, task.microbatch)] = end;
    std::optional<PipelinePlace> follower = isForward ? table.route.next(place) : table.route.previous(place);
    if (follower && follower->rank != place.rank)
      ready.push_back(static_cast<size_t>(follower->rank));
  }

  bool step(size_t rank, size_t at) {
    const PipelineAction &action = schedule.ranks[rank][at];
    if (!action.computes())
      return true;
    bool isPair = action.kind == PipelineAction::Kind::Pair;
    double input = inputTime(rank, action.task), other = isPair ? inputTime(rank, action.partner) : 0;
    if (input < 0 || other < 0)
      return false;
    double start = std::max({clock[rank], input, other});
    clock[rank] = start + duration(rank, action);
    times.start[rank][at] = start;
    times.end[rank][at] = clock[rank];
    finish(rank, action.task, clock[rank]);
    if (isPair)
      finish(rank, action.partner, clock[rank]);
    return true;
  }

  const PipelineSchedule &schedule;
  PlaceTable table;
  const PipelineStageTimes &durations;
  std::vector<double> forwardEnd, backwardEnd, clock;
  std::deque<size_t> ready;
  TaskTimes times;
};

/// Calls `look` with the forwards alive in each lane, whenever one is added. A backward retires one, in ZB-H1 its
/// weight gradients do.
template <class Look> void followStash(const PipelineSchedule &schedule, size_t rank, Look look) {
  const PipelineWork retiring =
      schedule.shape.kind == PipelineKind::ZeroBubbleH1 ? PipelineWork::WeightGrad : PipelineWork::InputGrad;
  std::vector<int64_t> live(size_t(PipelineRoute(schedule.shape).lanes()), 0);
  auto count = [&](const PipelineTask &task) {
    if (task.work == PipelineWork::Forward) {
      ++live[size_t(task.lane)];
      look(live);
    } else if (task.work == PipelineWork::Backward || task.work == retiring) {
      --live[size_t(task.lane)];
    }
  };
  for (const PipelineAction &action : schedule.ranks[rank]) {
    if (action.computes())
      count(action.task);
    if (action.kind == PipelineAction::Kind::Pair)
      count(action.partner);
  }
}

int64_t peakOf(const PipelineSchedule &schedule, size_t rank) {
  int64_t peak = 0;
  followStash(schedule, rank, [&](const std::vector<int64_t> &live) {
    peak = std::max(peak, std::accumulate(live.begin(), live.end(), int64_t(0)));
  });
  return peak;
}

/// Whether `a` has no fewer in any lane.
bool covers(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](int64_t x, int64_t y) { return x >= y; });
}

} // namespace

std::vector<std::vector<int64_t>> k2c::fullestMoments(const PipelineSchedule &schedule, size_t rank) {
  std::vector<std::vector<int64_t>> moments;
  followStash(schedule, rank, [&](const std::vector<int64_t> &live) {
    for (const std::vector<int64_t> &known : moments)
      if (covers(known, live))
        return;
    moments.erase(
        std::remove_if(moments.begin(), moments.end(), [&](const auto &known) { return covers(live, known); }),
        moments.end());
    moments.push_back(live);
  });
  return moments;
}

Expected<TaskTimes> planner::runOrders(const PipelineSchedule &schedule, const PipelineDurations &durations) {
  return Runner(schedule, PipelineStageTimes(schedule.shape, durations)).run();
}

Expected<PipelineTimeline> k2c::simulate(const PipelineSchedule &schedule, const PipelineDurations &durations) {
  return simulate(schedule, PipelineStageTimes(schedule.shape, durations));
}

Expected<PipelineTimeline> k2c::simulate(const PipelineSchedule &schedule, const PipelineStageTimes &durations) {
  Expected<TaskTimes> times = Runner(schedule, durations).run();
  if (!times)
    return times.takeError();
  PipelineTimeline timeline;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    double busy = 0;
    timeline.tasks.emplace_back();
    for (size_t i = 0; i < times->end[rank].size(); ++i) {
      busy += times->end[rank][i] - times->start[rank][i];
      timeline.makespan = std::max(timeline.makespan, times->end[rank][i]);
      if (schedule.ranks[rank][i].computes())
        timeline.tasks[rank].push_back({schedule.ranks[rank][i], times->start[rank][i], times->end[rank][i]});
    }
    timeline.idle.push_back(-busy);
    timeline.peakStash.push_back(peakOf(schedule, rank));
  }
  for (double &idle : timeline.idle)
    idle += timeline.makespan;
  return timeline;
}

std::optional<double> k2c::closedFormIdle(const PipelineShape &shape, const PipelineDurations &d) {
  StageDurations stage;
  stage.forward = d.forward;
  stage.backward = d.inputGrad + d.weightGrad;
  stage.weight = d.weightGrad;
  stage.overlapped = d.overlapped.value_or(stage.forward + stage.backward);
  int64_t stages = shape.pp * (shape.kind == PipelineKind::DualPipeV ? 2 : 1);
  bool isFull = shape.microbatches >= shape.pp;
  if (shape.kind == PipelineKind::Interleaved)
    isFull =
        shape.extraWarmup == 0 && (shape.group == 0 || shape.group == shape.pp) && shape.microbatches % shape.pp == 0;
  if ((!isFull && shape.kind != PipelineKind::GPipe) || !bubbleFormHolds(shape.kind, stages, stage))
    return std::nullopt;
  return pipelineBubble(shape.kind, stages, shape.chunks, stage, /*exact=*/true);
}
