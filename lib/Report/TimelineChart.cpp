//===- TimelineChart.cpp - The pipeline's ranks over time -----------------===//
//
// A row for each rank. What a rank waits for shows as background. Up to a few thousand tasks are boxes with tooltips;
// beyond, one path for each rank and kind, since a page of a million elements does not open: the trace has them all.
//
//===----------------------------------------------------------------------===//

#include "Charts.h"

#include <array>

using namespace k2c;
using namespace k2c::report;

namespace {

constexpr double left = 70, right = chartWidth - 110, top = 8, pitch = 24, height = 18;
constexpr size_t maxBoxes = 4000;

const char *classOf(const PipelineSpan &span) {
  static const char *const names[] = {"forward", "backward", "inputGrad", "weightGrad", "pair"};
  return names[span.partner ? 4 : size_t(span.task.work)];
}

void drawBoxes(Svg &svg, const ClusterPlan &plan, const Scale &scale, const Unit &unit) {
  const bool lanes = hasLanes(plan);
  for (const PipelineSpan &span : plan.timeline) {
    const double begin = scale(span.begin.value / unit.factor), end = scale(span.end.value / unit.factor);
    const double y = top + 4 + pitch * span.rank;
    const std::string name = nameOf(span, lanes);
    // An outline would hide a narrow box.
    svg.rect(begin, y, end - begin, height, std::string(end - begin > 5 ? "task " : "thin ") + classOf(span),
             "rank " + std::to_string(span.rank) + ", " + name + ": " + format(span.begin) + " to " + format(span.end));
    if (end - begin > 6.5 * double(name.size()) + 2)
      svg.text((begin + end) / 2, y + 13, name, "taskName", "middle");
  }
}

void drawPaths(Svg &svg, const ClusterPlan &plan, const Scale &scale, const Unit &unit) {
  static const char *const classes[] = {"forward", "backward", "inputGrad", "weightGrad", "pair"};
  std::array<std::string, 5> paths;
  for (const PipelineSpan &span : plan.timeline) {
    const double begin = scale(span.begin.value / unit.factor), end = scale(span.end.value / unit.factor);
    paths[span.partner ? 4 : size_t(span.task.work)] +=
        "M" + coordinate(begin) + " " + coordinate(top + 4 + pitch * span.rank) + "h" + coordinate(end - begin) + "v" +
        coordinate(height) + "h" + coordinate(begin - end) + "z";
  }
  for (size_t i = 0; i < paths.size(); ++i)
    if (!paths[i].empty())
      svg.path(paths[i], classes[i]);
}

} // namespace

std::string report::timelineChart(const ClusterPlan &plan) {
  if (plan.timeline.empty())
    return plan.layout.pp > 1 ? "<p>The stages of this plan run one after another for each batch; serving has no "
                                "static schedule.</p>\n"
                              : "<p>One stage: there is no pipeline.</p>\n";
  const std::vector<PipelineRank> ranks = pipelineRanks(plan);
  const double seconds = pipelineSeconds(plan), bottom = top + 4 + pitch * double(ranks.size());
  const Unit unit = secondsUnit(seconds);
  Svg svg(chartWidth, bottom + 42, "Timeline of the pipeline's ranks");
  const Scale scale(0, seconds / unit.factor, left, right);
  drawAxisX(svg, scale, bottom, top, "time", unit);
  for (const PipelineRank &rank : ranks) {
    const double y = top + 4 + pitch * rank.rank;
    svg.open("class=\"lane\" data-rank=\"" + std::to_string(rank.rank) + "\"");
    svg.rect(left, y, right - left, height, "idle");
    svg.text(left - 8, y + 13, "rank " + std::to_string(rank.rank), "", "end");
    svg.text(right + 10, y + 13, printShare(rank.idle / seconds) + " idle", "tick");
    svg.close();
  }
  if (plan.timeline.size() <= maxBoxes)
    drawBoxes(svg, plan, scale, unit);
  else
    drawPaths(svg, plan, scale, unit);
  std::vector<Key> keys = {{"forward", "forward"}};
  auto occurs = [&](auto test) {
    for (const PipelineSpan &span : plan.timeline)
      if (test(span))
        return true;
    return false;
  };
  const char *const names[] = {"", "backward", "backward, input gradients", "backward, weight gradients"};
  const char *const classes[] = {"", "backward", "inputGrad", "weightGrad"};
  for (size_t work = 1; work < 4; ++work)
    if (occurs([&](const PipelineSpan &span) { return !span.partner && size_t(span.task.work) == work; }))
      keys.push_back({classes[work], names[work]});
  if (occurs([](const PipelineSpan &span) { return bool(span.partner); }))
    keys.push_back({"pair", "forward and backward overlapped"});
  keys.push_back({"idle", "idle"});
  return svg.finish() + legend(keys);
}
