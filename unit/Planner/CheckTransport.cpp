//===- CheckTransport.cpp - Blocking exchanges cannot wait for each other -----===//
//
// Runs the programs without time. A transfer is named by its consumer; it happens once both halves have been posted
// and their ranks have reached a Wait.
//
//===----------------------------------------------------------------------===//

#include "CheckTransport.h"
#include "lib/Planner/Schedule/Programs.h"

#include <deque>

using namespace k2c;
using namespace k2c::planner;

namespace {

class Checker {
public:
  explicit Checker(const PipelineSchedule &schedule)
      : schedule(schedule), table(schedule), forwards(table.size()), backwards(table.size()),
        states(schedule.ranks.size()) {}

  Status run() {
    for (size_t rank = 0; rank < states.size(); ++rank)
      ready.push_back(rank);
    while (!ready.empty()) {
      size_t rank = ready.front();
      ready.pop_front();
      State &state = states[rank];
      for (; state.at < schedule.ranks[rank].size(); ++state.at) {
        const PipelineAction &action = schedule.ranks[rank][state.at];
        if (action.kind == PipelineAction::Kind::Wait && !exchange(rank))
          break;
        if (Status status = perform(rank, action); !status)
          return status;
      }
    }
    return checkEnds();
  }

private:
  /// Of one task at one place: computed; halves of the transfer of its input; its input is on its rank.
  struct Slot {
    bool isComputed = false, isSent = false, isExpected = false, hasArrived = false;
  };
  struct State {
    size_t at = 0, batchBegin = 0;
    bool isPosted = false; ///< the batch that ends at `at`
  };

  Error wrong(size_t rank, const PipelineTask &task, const std::string &what) const {
    return Error{"rank " + std::to_string(rank), describe(schedule, task) + " " + what, ""};
  }

  std::vector<Slot> &slots(const PipelineTask &task) {
    return task.work == PipelineWork::Forward ? forwards : backwards;
  }
  Slot &slot(PipelinePlace place, const PipelineTask &task) { return slots(task)[table.at(place, task.microbatch)]; }

  std::optional<PipelinePlace> neighbour(PipelinePlace place, const PipelineTask &task, bool isSource) const {
    return (task.work == PipelineWork::Forward) == isSource ? table.route.previous(place) : table.route.next(place);
  }

  bool hasInput(PipelinePlace place, const PipelineTask &task) {
    if (task.work == PipelineWork::WeightGrad)
      return slot(place, task).isComputed;
    if (task.work != PipelineWork::Forward && !forwards[table.at(place, task.microbatch)].isComputed)
      return false;
    std::optional<PipelinePlace> source = neighbour(place, task, true);
    return !source || (source->rank == place.rank ? slot(*source, task).isComputed : slot(place, task).hasArrived);
  }

  Status compute(size_t rank, const PipelineTask &task) {
    PipelinePlace place{static_cast<int32_t>(rank), task.lane};
    if (!hasInput(place, task))
      return wrong(rank, task, "runs before its input is there");
    slot(place, task).isComputed = true;
    return Status::success();
  }

  Status perform(size_t rank, const PipelineAction &action) {
    PipelinePlace place{static_cast<int32_t>(rank), action.task.lane};
    bool isSend = action.kind == PipelineAction::Kind::Send;
    if (isSend && !slot(place, action.task).isComputed)
      return wrong(rank, action.task, "is sent before it is computed");
    if (isSend || action.kind == PipelineAction::Kind::Receive) {
      std::optional<PipelinePlace> peer = neighbour(place, action.task, !isSend);
      if (!peer || peer->rank != action.peer)
        return wrong(rank, action.task, "has no business with rank " + std::to_string(action.peer));
    }
    if (action.computes())
      if (Status status = compute(rank, action.task); !status)
        return status;
    return action.kind == PipelineAction::Kind::Pair ? compute(rank, action.partner) : Status::success();
  }

  /// Posts the batch before the Wait that `rank` has reached; true once all of it has happened.
  bool exchange(size_t rank) {
    State &state = states[rank];
    bool isComplete = true;
    for (size_t i = state.batchBegin; i < state.at; ++i) {
      const PipelineAction &action = schedule.ranks[rank][i];
      if (action.computes())
        continue;
      PipelinePlace place{static_cast<int32_t>(rank), action.task.lane};
      bool isSend = action.kind == PipelineAction::Kind::Send;
      Slot &transfer = slot(isSend ? *neighbour(place, action.task, false) : place, action.task);
      (isSend ? transfer.isSent : transfer.isExpected) = true;
      if (!state.isPosted)
        ready.push_back(static_cast<size_t>(action.peer));
      isComplete = isComplete && transfer.isSent && transfer.isExpected;
    }
    state.isPosted = !isComplete;
    if (!isComplete)
      return false;
    for (size_t i = state.batchBegin; i < state.at; ++i)
      if (const PipelineAction &action = schedule.ranks[rank][i]; action.kind == PipelineAction::Kind::Receive)
        slot({static_cast<int32_t>(rank), action.task.lane}, action.task).hasArrived = true;
    state.batchBegin = state.at + 1;
    return true;
  }

  Status checkEnds() const {
    for (size_t rank = 0; rank < states.size(); ++rank) {
      const std::vector<PipelineAction> &program = schedule.ranks[rank];
      bool isEnded = states[rank].at == program.size();
      for (size_t i = states[rank].batchBegin; i < states[rank].at; ++i)
        if (!program[i].computes())
          return wrong(rank, program[i].task, isEnded ? "is never waited for" : "waits for ever in an exchange");
    }
    return Status::success();
  }

  const PipelineSchedule &schedule;
  PlaceTable table;
  std::vector<Slot> forwards, backwards;
  std::vector<State> states;
  std::deque<size_t> ready;
};

} // namespace

Status test::checkTransport(const PipelineSchedule &schedule) { return Checker(schedule).run(); }
