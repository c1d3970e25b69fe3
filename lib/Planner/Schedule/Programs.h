//===- Programs.h - How the programs of ranks are written ---------------------===//
#ifndef K2C_LIB_PLANNER_SCHEDULE_PROGRAMS_H
#define K2C_LIB_PLANNER_SCHEDULE_PROGRAMS_H

#include "k2c/Planner/Schedule.h"

namespace k2c::planner {

/// Appends actions to one rank's program. Transfers that cross no rank, and waits for nothing, are left out.
class RankWriter {
public:
  RankWriter(const PipelineRoute &route, int32_t rank, std::vector<PipelineAction> &program)
      : route(route), rank(rank), program(program) {}

  void compute(PipelineWork work, int32_t lane, int32_t microbatch) {
    program.push_back({PipelineAction::Kind::Compute, {work, lane, microbatch}, {}, 0});
  }
  void pair(PipelineTask forward, PipelineTask backward) {
    program.push_back({PipelineAction::Kind::Pair, forward, backward, 0});
  }
  void receiveForward(int32_t lane, int32_t microbatch) {
    transfer(PipelineAction::Kind::Receive, route.previous({rank, lane}), {PipelineWork::Forward, lane, microbatch});
  }
  void sendForward(int32_t lane, int32_t microbatch) {
    transfer(PipelineAction::Kind::Send, route.next({rank, lane}), {PipelineWork::Forward, lane, microbatch});
  }
  void receiveBackward(int32_t lane, int32_t microbatch) {
    transfer(PipelineAction::Kind::Receive, route.next({rank, lane}), {PipelineWork::Backward, lane, microbatch});
  }
  void sendBackward(int32_t lane, int32_t microbatch) {
    transfer(PipelineAction::Kind::Send, route.previous({rank, lane}), {PipelineWork::Backward, lane, microbatch});
  }
  void wait() {
    if (posted)
      program.push_back({});
    posted = false;
  }

private:
  void transfer(PipelineAction::Kind kind, std::optional<PipelinePlace> peer, PipelineTask task) {
    if (!peer || peer->rank == rank)
      return;
    program.push_back({kind, task, {}, peer->rank});
    posted = true;
  }

  const PipelineRoute &route;
  int32_t rank;
  std::vector<PipelineAction> &program;
  bool posted = false;
};

void writeGPipe(const PipelineShape &shape, int32_t rank, RankWriter &out);
/// 1F1B; as ZB-H1 with its backwards in two.
void writeOneFOneB(const PipelineShape &shape, int32_t rank, RankWriter &out);
/// Order only; `deriveTransport` adds the rest.
void writeInterleaved(const PipelineShape &shape, int32_t rank, RankWriter &out);
/// DualPipe and DualPipeV.
void writeDualPipe(const PipelineShape &shape, int32_t rank, RankWriter &out);

/// Adds transport to programs that only compute. Error: they deadlock.
Status deriveTransport(PipelineSchedule &schedule);

/// Text of a task: "F3", "I1.0".
std::string describe(const PipelineSchedule &schedule, const PipelineTask &task);

/// Slots of (rank, lane, micro-batch) tables.
class PlaceTable {
public:
  explicit PlaceTable(const PipelineSchedule &schedule) : route(schedule.shape), ranks(schedule.ranks.size()) {}
  const PipelineRoute route;
  size_t size() const { return ranks * static_cast<size_t>(route.lanes()) * static_cast<size_t>(route.microbatches()); }
  size_t at(PipelinePlace place, int32_t microbatch) const {
    auto [rank, lane] = place;
    return static_cast<size_t>((int64_t(rank) * route.lanes() + lane) * route.microbatches() + microbatch);
  }

private:
  size_t ranks;
};

/// When each task of a schedule starts; runs tasks as soon as their inputs are there.
struct TaskTimes {
  /// By rank and position in its program; nothing for actions that do not compute.
  std::vector<std::vector<double>> start, end;
};
Expected<TaskTimes> runOrders(const PipelineSchedule &schedule, const PipelineDurations &durations);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_SCHEDULE_PROGRAMS_H
