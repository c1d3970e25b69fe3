//===- DeriveTransport.cpp - Exchanges for orders without any -----------------===//
//
// The orders run once with equal durations, and each transfer happens when its producer ends. Computations by start and
// transfers by that time are one sequence over all ranks in which everything comes after what it needs. Each rank's
// program is its part of the sequence, so the sequence itself is an execution that blocks nobody; joining transfers
// that no computation separates into one exchange only posts them earlier.
//
//===----------------------------------------------------------------------===//

#include "Programs.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

namespace {

struct Transfer {
  double time;
  PipelineAction action;
};

/// The send of a task's result and the receive at the rank that needs it.
void addTransfers(const PlaceTable &table, size_t rank, const PipelineTask &task, double end,
                  std::vector<std::vector<Transfer>> &transfers) {
  if (task.work == PipelineWork::WeightGrad)
    return;
  bool isForward = task.work == PipelineWork::Forward;
  PipelinePlace place{static_cast<int32_t>(rank), task.lane};
  std::optional<PipelinePlace> to = isForward ? table.route.next(place) : table.route.previous(place);
  if (!to || to->rank == place.rank)
    return;
  PipelineWork work = isForward ? PipelineWork::Forward : PipelineWork::Backward;
  transfers[rank].push_back({end, {PipelineAction::Kind::Send, {work, place.lane, task.microbatch}, {}, to->rank}});
  transfers[static_cast<size_t>(to->rank)].push_back(
      {end, {PipelineAction::Kind::Receive, {work, to->lane, task.microbatch}, {}, place.rank}});
}

/// One rank's computations and transfers by time; a transfer comes before a computation of the same time.
std::vector<PipelineAction> merge(const std::vector<PipelineAction> &tasks, const std::vector<double> &start,
                                  const std::vector<Transfer> &transfers) {
  std::vector<PipelineAction> program;
  size_t next = 0;
  auto exchange = [&](double until) {
    size_t begin = next;
    for (; next < transfers.size() && transfers[next].time <= until; ++next)
      program.push_back(transfers[next].action);
    if (next > begin)
      program.push_back({});
  };
  for (size_t i = 0; i < tasks.size(); ++i) {
    exchange(start[i]);
    program.push_back(tasks[i]);
  }
  if (!transfers.empty())
    exchange(transfers.back().time);
  return program;
}

} // namespace

Status planner::deriveTransport(PipelineSchedule &schedule) {
  // Chunks take a part of each duration: whole times, which compare exactly.
  double chunks = static_cast<double>(schedule.shape.chunks);
  Expected<TaskTimes> times = runOrders(schedule, {chunks, chunks, chunks, std::nullopt});
  if (!times)
    return times.takeError();
  PlaceTable table(schedule);
  std::vector<std::vector<Transfer>> transfers(schedule.ranks.size());
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const PipelineAction &action = schedule.ranks[rank][i];
      addTransfers(table, rank, action.task, times->end[rank][i], transfers);
      if (action.kind == PipelineAction::Kind::Pair)
        addTransfers(table, rank, action.partner, times->end[rank][i], transfers);
    }
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    // Sends before receives of the same time, as the other schedules list them.
    std::stable_sort(transfers[rank].begin(), transfers[rank].end(), [](const Transfer &a, const Transfer &b) {
      return a.time != b.time ? a.time < b.time : a.action.kind < b.action.kind;
    });
    schedule.ranks[rank] = merge(schedule.ranks[rank], times->start[rank], transfers[rank]);
  }
  return Status::success();
}
