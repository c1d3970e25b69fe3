//===- TimelineChart.cpp - The pipeline's ranks over time -----------------===//
//
// A row for each rank. What a rank waits for shows as background. A long step is drawn as its warm-up, one period and
// its cool-down: the periods between are like the one that is shown, and as narrow as hairs they would show nothing.
// Up to a few thousand tasks are boxes with tooltips; beyond, one path for each kind, since a page of a million
// elements does not open: the trace has them all.
//
//===----------------------------------------------------------------------===//

#include "Charts.h"

#include <algorithm>
#include <array>

using namespace k2c;
using namespace k2c::report;

namespace {

constexpr double left = 12, right = 86, top = 4, pitch = 24, height = 18;
constexpr size_t maxBoxes = 4000, longRank = 96; ///< tasks: of a page, and of a rank

constexpr const char *classes[] = {"forward", "backward", "inputGrad", "weightGrad", "pair"};

size_t classOf(const PipelineSpan &span) { return span.partner ? 4 : size_t(span.task.work); }

/// What is drawn of a timeline: all of it, or without the periods after the first one.
struct Excerpt {
  std::optional<SteadyState> state; ///< nothing: all
  double cut = 0;                   ///< seconds that are left out, after the period that is shown
  double seconds = 0;               ///< that are drawn

  explicit Excerpt(const ClusterPlan &plan, size_t ranks) : seconds(pipelineSeconds(plan)) {
    if (plan.timeline.size() > longRank * ranks)
      state = steadyStateOf(plan);
    if (state && state->count < 3)
      state.reset();
    if (state)
      seconds -= cut = state->seconds * double(state->count - 1);
  }
  /// Where a task begins in the drawing; nothing when it is left out.
  std::optional<double> at(double begin) const {
    if (!state || begin < state->begin + state->seconds)
      return begin;
    return begin < state->begin + state->seconds + cut ? std::nullopt : std::optional(begin - cut);
  }
};

void drawBoxes(Svg &svg, const ClusterPlan &plan, const Excerpt &excerpt, const Scale &scale) {
  const bool lanes = hasLanes(plan);
  for (const PipelineSpan &span : plan.timeline)
    if (std::optional<double> at = excerpt.at(span.begin.value)) {
      const double begin = scale(*at), width = scale(*at + (span.end - span.begin).value) - begin;
      const double y = top + 4 + pitch * span.rank;
      const std::string name = nameOf(span, lanes);
      // An outline would hide a narrow box.
      svg.rect(begin, y, width, height, std::string(width > 1 ? "task " : "thin ") + classes[classOf(span)],
               "rank " + std::to_string(span.rank) + ", " + name + ": " + format(span.begin) + " to " +
                   format(span.end));
      svg.fitText(begin, y + 13, width, {name}, "taskName");
    }
}

void drawPaths(Svg &svg, const ClusterPlan &plan, const Excerpt &excerpt, const Scale &scale, double bottom) {
  std::array<std::string, 5> paths;
  for (const PipelineSpan &span : plan.timeline)
    if (std::optional<double> at = excerpt.at(span.begin.value)) {
      const double begin = scale(*at), width = scale(*at + (span.end - span.begin).value) - begin;
      paths[classOf(span)] += "M" + coordinate(begin) + " " + coordinate(top + 4 + pitch * span.rank) + "h" +
                              coordinate(width) + "v" + coordinate(height) + "h" + coordinate(-width) + "z";
    }
  svg.openStretched(bottom);
  for (size_t i = 0; i < paths.size(); ++i)
    if (!paths[i].empty())
      svg.path(paths[i], classes[i]);
  svg.closeInner();
}

/// In place of an axis: how long the three parts take, below them.
void drawParts(Svg &svg, const SteadyState &state, const Excerpt &excerpt, const Scale &scale, double bottom) {
  const double end = state.begin + state.seconds;
  for (double at : {state.begin, end})
    svg.line(scale(at), top, scale(at), bottom + 6, "cut");
  svg.text(left, bottom + 16, "warm-up " + format(Seconds(state.begin)), "tick");
  svg.text(right, bottom + 16, "cool-down " + format(Seconds(excerpt.seconds - end)), "tick", "end");
  svg.text((left + right) / 2, bottom + 34,
           "between them one of " + formatCount(state.count) + " periods, " + format(Seconds(state.seconds)) + " each",
           "label", "middle");
}

std::vector<Key> keysOf(const ClusterPlan &plan) {
  static const char *const names[] = {"forward", "backward", "backward, input gradients", "backward, weight gradients",
                                      "forward and backward overlapped"};
  std::array<bool, 5> occurs{};
  for (const PipelineSpan &span : plan.timeline)
    occurs[classOf(span)] = true;
  std::vector<Key> keys;
  for (size_t i = 0; i < occurs.size(); ++i)
    if (occurs[i])
      keys.push_back({classes[i], names[i]});
  keys.push_back({"idle", "idle (bubble)"});
  return keys;
}

} // namespace

std::string report::timelineChart(const ClusterPlan &plan) {
  if (plan.timeline.empty())
    return "";
  const std::vector<PipelineRank> ranks = pipelineRanks(plan);
  const double seconds = pipelineSeconds(plan), bottom = top + 4 + pitch * double(ranks.size());
  const Excerpt excerpt(plan, ranks.size());
  Svg svg(bottom + 42, "Timeline of the pipeline's ranks");
  const Scale scale(0, excerpt.seconds, left, right);
  if (const Unit unit = secondsUnit(seconds); !excerpt.state)
    drawAxisX(svg, Scale(0, seconds / unit.factor, left, right), bottom, top, "time", unit);
  for (const PipelineRank &rank : ranks) {
    const double y = top + 4 + pitch * rank.rank;
    svg.open("class=\"lane\" data-rank=\"" + std::to_string(rank.rank) + "\"");
    svg.rect(left, y, right - left, height, "idle");
    svg.text(0, y + 13, "rank " + std::to_string(rank.rank));
    svg.text(100, y + 13, printShare(rank.idle / seconds) + " idle", "tick", "end");
    svg.close();
  }
  const auto drawn = std::count_if(plan.timeline.begin(), plan.timeline.end(),
                                   [&](const PipelineSpan &span) { return excerpt.at(span.begin.value).has_value(); });
  if (size_t(drawn) <= maxBoxes)
    drawBoxes(svg, plan, excerpt, scale);
  else
    drawPaths(svg, plan, excerpt, scale, bottom + 42);
  if (excerpt.state)
    drawParts(svg, *excerpt.state, excerpt, scale, bottom);
  return svg.finish() + legend(keysOf(plan));
}
