//===- StepChart.cpp - What bounds each phase -----------------------------===//

#include "Charts.h"

using namespace k2c;
using namespace k2c::report;

namespace {

constexpr double left = 150, right = chartWidth - 20, height = 30;

std::string classOf(const StepPart &part) { return PhaseParts::isIdle(part) ? "idle" : nameOf(part.bound); }

/// The parts of one lane of a phase; widths are shares of the whole phase.
void drawLane(Svg &svg, const PhaseParts &phase, bool onlyLane, bool links, double y) {
  const Scale scale(0, phase.seconds(), left, right);
  double at = 0;
  for (const StepPart *part : phase.parts) {
    if (onlyLane && PhaseParts::onLinks(*part) != links)
      continue;
    const double begin = scale(at), width = scale(at + part->exposed().value) - begin;
    const std::string share = printShare(part->exposed().value / phase.seconds());
    std::string title = part->name + ": " + format(part->exposed()) + ", " + share + " of " + phase.phase;
    if (!PhaseParts::isIdle(*part))
      title += std::string(", waits for ") + nameOf(part->bound);
    if (part->hidden.value > 0)
      title += ", " + format(part->hidden) + " more beside other parts";
    if (!part->tier.empty())
      title += ", tier " + part->tier;
    svg.rect(begin, y, width, height, "part " + classOf(*part), title);
    // A letter is about 6.5 pixels wide.
    const std::string label = part->name + " " + share;
    if (width > 6.5 * double(label.size()) + 8)
      svg.text(begin + 6, y + 19, label, PhaseParts::isIdle(*part) ? "tick" : "inside");
    else if (width > 6.5 * double(share.size()) + 6)
      svg.text(begin + 4, y + 19, share, "inside");
    at += part->exposed().value;
  }
}

} // namespace

std::string report::stepChart(const ClusterPlan &plan) {
  const std::vector<PhaseParts> phases = phasesOf(plan);
  double rows = 0;
  for (const PhaseParts &phase : phases)
    rows += phase.overlaps ? 2 : 1;
  Svg svg(chartWidth, 10 + rows * (height + 6) + double(phases.size()) * 14, "Parts of each phase of a step");
  double y = 6;
  for (const PhaseParts &phase : phases) {
    svg.open("class=\"phase\" data-phase=\"" + escapeHtml(phase.phase) + "\"");
    svg.text(left - 8, y + 14, phase.phase, "strong", "end");
    svg.text(left - 8, y + 29, format(Seconds(phase.seconds())), "tick", "end");
    if (phase.seconds() > 0) {
      drawLane(svg, phase, phase.overlaps, false, y);
      if (phase.overlaps)
        drawLane(svg, phase, true, true, y += height + 2);
    }
    svg.close();
    y += height + 16;
  }
  return svg.finish() + legend({{"compute", "waits for arithmetic"},
                                {"memory", "waits for memory"},
                                {"link", "waits for a link"},
                                {"latency", "waits for small messages"},
                                {"idle", "idle"}});
}
