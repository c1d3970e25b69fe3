//===- Schedule.cpp - Shapes, routes and texts of pipeline schedules ----------===//
//
// A shape is checked, then each rank's program is written by itself (Schedule.h has the kinds and sources). What
// differs between kinds is in one place, the route: where a micro-batch goes when it leaves a place (rank, lane).
//
//   1F1B           (r, 0) -> (r + 1, 0)
//   interleaved    (last, c) -> (0, c + 1)                        a chunk goes on at the first rank
//   DualPipe       lane 1 runs (r, 1) -> (r - 1, 1)               two directions, half of the micro-batches each
//   DualPipeV      (last, 0) -> (last, 1) -> (last - 1, 1)        the V turns on the last rank
//
// Stage numbers, texts and transport follow from it. Fields are any 64-bit numbers, so sizes are bounded by division
// before they are multiplied; interleaved schedules derive their transport from the orders of all ranks, the others
// write it.
//
//===----------------------------------------------------------------------===//

#include "k2c/Planner/Schedule.h"

#include "Programs.h"

using namespace k2c;
using namespace k2c::planner;

PipelineRoute::PipelineRoute(const PipelineShape &shape)
    : kind(shape.kind), ranks(static_cast<int32_t>(shape.pp)), laneCount(1),
      perLane(static_cast<int32_t>(shape.microbatches)) {
  if (kind == PipelineKind::Interleaved)
    laneCount = static_cast<int32_t>(shape.chunks);
  if (kind == PipelineKind::DualPipe || kind == PipelineKind::DualPipeV)
    laneCount = 2;
  if (kind == PipelineKind::DualPipe)
    perLane /= 2;
}

std::optional<PipelinePlace> PipelineRoute::neighbour(PipelinePlace at, int32_t step) const {
  // Lane 1 of DualPipe and DualPipeV runs from the last rank to the first.
  bool isReversed = (kind == PipelineKind::DualPipe || kind == PipelineKind::DualPipeV) && at.lane == 1;
  int32_t rank = at.rank + (isReversed ? -step : step);
  if (rank >= 0 && rank < ranks)
    return PipelinePlace{rank, at.lane};
  if (kind == PipelineKind::DualPipe)
    return std::nullopt;
  int32_t lane = at.lane + step;
  if (lane < 0 || lane >= laneCount)
    return std::nullopt;
  // The V turns on the same rank; a chunk goes on at the other end of the ranks.
  int32_t wrapped = step > 0 ? 0 : ranks - 1;
  return PipelinePlace{kind == PipelineKind::DualPipeV ? at.rank : wrapped, lane};
}

int64_t k2c::stageCount(const PipelineShape &shape) {
  return shape.pp * (shape.kind == PipelineKind::DualPipeV ? 2 : shape.chunks);
}

int64_t k2c::stageOf(const PipelineShape &shape, PipelinePlace place) {
  switch (shape.kind) {
  case PipelineKind::Interleaved:
    return place.lane * shape.pp + place.rank;
  case PipelineKind::DualPipe: // both ends of the model on each pair of ranks
    return place.lane == 0 ? place.rank : shape.pp - 1 - place.rank;
  case PipelineKind::DualPipeV:
    return place.lane == 0 ? place.rank : 2 * shape.pp - 1 - place.rank;
  case PipelineKind::GPipe:
  case PipelineKind::OneFOneB:
  case PipelineKind::ZeroBubbleH1:
    return place.rank;
  }
  return 0;
}

std::string planner::describe(const PipelineSchedule &schedule, const PipelineTask &task) {
  bool hasLanes = schedule.shape.kind == PipelineKind::Interleaved || schedule.shape.kind == PipelineKind::DualPipe ||
                  schedule.shape.kind == PipelineKind::DualPipeV;
  std::string text(1, "FBIW"[static_cast<size_t>(task.work)]);
  return text + (hasLanes ? std::to_string(task.lane) + "." : "") + std::to_string(task.microbatch);
}

static std::string describe(const PipelineSchedule &schedule, const PipelineAction &action) {
  std::string task = describe(schedule, action.task);
  switch (action.kind) {
  case PipelineAction::Kind::Compute:
    return task;
  case PipelineAction::Kind::Pair:
    return task + "&" + describe(schedule, action.partner);
  case PipelineAction::Kind::Send:
    return "s" + task + ">" + std::to_string(action.peer);
  case PipelineAction::Kind::Receive:
    return "r" + task + "<" + std::to_string(action.peer);
  case PipelineAction::Kind::Wait:
    return "|";
  }
  return "";
}

static std::string join(const PipelineSchedule &schedule, size_t rank, bool withTransport) {
  std::string text;
  for (const PipelineAction &action : schedule.ranks[rank])
    if (withTransport || action.computes())
      text += (text.empty() ? "" : " ") + describe(schedule, action);
  return text;
}

std::string PipelineSchedule::order(size_t rank) const { return join(*this, rank, false); }
std::string PipelineSchedule::trace(size_t rank) const { return join(*this, rank, true); }

namespace {

/// Passes of micro-batches through stages that a schedule may hold: bounds time and memory.
constexpr int64_t maxPasses = int64_t(1) << 18;

std::string atLeast(int64_t min, int64_t got) {
  return "must be at least " + std::to_string(min) + ", got " + std::to_string(got);
}

/// Divisors instead of products: fields are any 64-bit numbers.
Status checkSize(const PipelineShape &shape) {
  if (shape.pp < 1)
    return Error{"pp", atLeast(1, shape.pp), ""};
  if (shape.microbatches < 1)
    return Error{"microbatches", atLeast(1, shape.microbatches), ""};
  if (shape.chunks < 1)
    return Error{"chunks", atLeast(1, shape.chunks), ""};
  auto tooMany = [](const std::string &field, int64_t got, int64_t most) {
    return Error{field, std::to_string(got) + " exceeds " + std::to_string(most),
                 "a schedule holds at most " + std::to_string(maxPasses) +
                     " passes of micro-batches through ranks and chunks"};
  };
  if (shape.pp > maxPasses)
    return tooMany("pp", shape.pp, maxPasses);
  if (shape.chunks > maxPasses / shape.pp)
    return tooMany("chunks", shape.chunks, maxPasses / shape.pp);
  if (shape.microbatches > maxPasses / shape.pp / shape.chunks)
    return tooMany("microbatches", shape.microbatches, maxPasses / shape.pp / shape.chunks);
  return Status::success();
}

Status checkInterleaved(const PipelineShape &shape) {
  if (shape.group < shape.pp)
    return Error{"group", std::to_string(shape.group) + " is less than pp " + std::to_string(shape.pp),
                 "a chunk's micro-batches must fill the ranks"};
  int64_t last = shape.microbatches % shape.group;
  if (shape.microbatches < shape.pp || (last != 0 && last < shape.pp))
    return Error{"microbatches",
                 std::to_string(shape.microbatches) + " leave a last group of " + std::to_string(last) +
                     ", less than pp " + std::to_string(shape.pp),
                 "choose a multiple of group " + std::to_string(shape.group)};
  if (shape.extraWarmup < 0 || shape.extraWarmup > maxPasses)
    return Error{"extraWarmup",
                 "must be 0 to " + std::to_string(maxPasses) + ", got " + std::to_string(shape.extraWarmup), ""};
  if (shape.paired && shape.extraWarmup == 0)
    return Error{"paired", "needs a forward more than the warm-up has", "set extraWarmup to 1"};
  return Status::success();
}

Status checkDualPipe(const PipelineShape &shape) {
  bool isV = shape.kind == PipelineKind::DualPipeV;
  if (!isV && shape.pp % 2 != 0)
    return Error{"pp", std::to_string(shape.pp) + " is odd",
                 "both ends of the model lie on each pair of ranks: choose an even number"};
  if (!isV && shape.microbatches % 2 != 0)
    return Error{"microbatches", std::to_string(shape.microbatches) + " is odd",
                 "half of them enter at each end: choose an even number"};
  if (shape.microbatches < 2 * shape.pp)
    return Error{"microbatches",
                 std::to_string(shape.microbatches) + " is less than 2 pp = " + std::to_string(2 * shape.pp),
                 "give at least so many, or fewer stages"};
  return Status::success();
}

Status check(const PipelineShape &shape) {
  if (Status status = checkSize(shape); !status)
    return status;
  bool isInterleaved = shape.kind == PipelineKind::Interleaved;
  if (!isInterleaved && (shape.chunks != 1 || shape.paired))
    return Error{shape.paired ? "paired" : "chunks", "is for interleaved schedules", "leave it out"};
  if (isInterleaved)
    return checkInterleaved(shape);
  if (shape.kind == PipelineKind::DualPipe || shape.kind == PipelineKind::DualPipeV)
    return checkDualPipe(shape);
  return Status::success();
}

void write(const PipelineShape &shape, int32_t rank, RankWriter &out) {
  switch (shape.kind) {
  case PipelineKind::GPipe:
    return writeGPipe(shape, rank, out);
  case PipelineKind::OneFOneB:
  case PipelineKind::ZeroBubbleH1:
    return writeOneFOneB(shape, rank, out);
  case PipelineKind::Interleaved:
    return writeInterleaved(shape, rank, out);
  case PipelineKind::DualPipe:
  case PipelineKind::DualPipeV:
    return writeDualPipe(shape, rank, out);
  }
}

} // namespace

Expected<PipelineSchedule> k2c::makePipelineSchedule(const PipelineShape &asked) {
  PipelineSchedule schedule;
  schedule.shape = asked;
  PipelineShape &shape = schedule.shape;
  if (shape.group == 0)
    shape.group = shape.pp;
  if (Status status = check(shape); !status)
    return status.takeError();
  PipelineRoute route(shape);
  schedule.ranks.resize(static_cast<size_t>(shape.pp));
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    RankWriter out(route, static_cast<int32_t>(rank), schedule.ranks[rank]);
    write(shape, static_cast<int32_t>(rank), out);
  }
  if (shape.kind == PipelineKind::Interleaved)
    if (Status status = deriveTransport(schedule); !status)
      return status.takeError();
  return schedule;
}
