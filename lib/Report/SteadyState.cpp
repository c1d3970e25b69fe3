//===- SteadyState.cpp - Where a long pipeline repeats itself -------------===//
//
// A step of a thousand micro-batches is a warm-up, the same few tasks over and over, and a cool-down. In the steady
// state, a task of micro-batch i is followed, one period later and on the same rank, by the like task of micro-batch
// i + m. The period is read off the middle of the first rank: the fewest tasks after which kinds, shift of micro-batch
// and times repeat. The state then reaches as far to both sides as every task of every rank has such a follower, and
// each follower such a task before it. Nothing of a schedule's name is used, so that a new schedule needs no line here.
//
//===----------------------------------------------------------------------===//

#include "Derived.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

using namespace k2c;
using namespace k2c::report;

namespace {

using Kind = std::tuple<PipelineWork, int32_t, bool>;

Kind kindOf(const PipelineSpan &span) { return {span.task.work, span.task.lane, bool(span.partner)}; }

struct Period {
  double seconds = 0;
  int32_t microbatches = 0; ///< that one task is behind the like task before it
};

/// The period in the middle of one rank's tasks, which are in the order of time. What repeats for less than an eighth
/// of them is a part of a longer period: micro-batches of one chunk that follow each other.
std::optional<Period> periodOf(const std::vector<const PipelineSpan *> &tasks) {
  const size_t middle = tasks.size() / 2;
  for (size_t length = 1; middle + 2 * length < tasks.size(); ++length) {
    const PipelineSpan &first = *tasks[middle], &next = *tasks[middle + length];
    const Period period{next.begin.value - first.begin.value, next.task.microbatch - first.task.microbatch};
    auto repeats = [&](size_t i) {
      const PipelineSpan &a = *tasks[middle + i], &b = *tasks[middle + i + length];
      return kindOf(a) == kindOf(b) && b.task.microbatch - a.task.microbatch == period.microbatches &&
             std::fabs(b.begin.value - a.begin.value - period.seconds) < 1e-6 * period.seconds;
    };
    const size_t window = std::max(length, tasks.size() / 8);
    bool all = period.microbatches > 0 && period.seconds > 0 && middle + window + length <= tasks.size();
    for (size_t i = 0; all && i < window; ++i)
      all = repeats(i);
    if (all)
      return period;
  }
  return std::nullopt;
}

} // namespace

std::optional<SteadyState> report::steadyStateOf(const ClusterPlan &plan) {
  std::vector<const PipelineSpan *> first;
  std::map<std::tuple<int32_t, Kind, int32_t>, double> begins;
  for (const PipelineSpan &span : plan.timeline) {
    if (span.rank == 0)
      first.push_back(&span);
    begins[{span.rank, kindOf(span), span.task.microbatch}] = span.begin.value;
  }
  std::sort(first.begin(), first.end(), [](auto *a, auto *b) { return a->begin < b->begin; });
  const std::optional<Period> period = periodOf(first);
  if (!period)
    return std::nullopt;
  const double middle = first[first.size() / 2]->begin.value, length = period->seconds;
  auto like = [&](const PipelineSpan &span, int sign) {
    const auto at = begins.find({span.rank, kindOf(span), span.task.microbatch + sign * period->microbatches});
    return at != begins.end() && std::fabs(at->second - span.begin.value - sign * length) < 1e-6 * length;
  };
  SteadyState state{-INFINITY, length, 0, period->microbatches};
  double end = INFINITY;
  // A task that does not repeat ends the state at `after`, or at `until` where it is in the second half.
  auto bound = [&](bool isEarly, double after, double until) {
    if (isEarly)
      state.begin = std::max(state.begin, after + 1e-6 * length);
    else
      end = std::min(end, until);
  };
  for (const PipelineSpan &span : plan.timeline) {
    const double begin = span.begin.value;
    if (!like(span, +1))
      bound(begin < middle, begin, begin + length);
    if (!like(span, -1))
      bound(begin <= middle, begin - length, begin);
  }
  if (std::isfinite(state.begin) && std::isfinite(end))
    state.count = int64_t((end - state.begin) / length);
  return state.count > 0 ? std::optional(state) : std::nullopt;
}
