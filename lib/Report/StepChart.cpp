//===- StepChart.cpp - What bounds each phase -----------------------------===//

#include "Charts.h"

using namespace k2c;
using namespace k2c::report;

namespace {

constexpr double height = 30;

std::string classOf(const StepPart &part) { return PhaseParts::isIdle(part) ? "idle" : nameOf(part.bound); }

/// The parts of one lane of a phase; widths are shares of the whole phase.
void drawLane(Svg &svg, const PhaseParts &phase, bool onlyLane, bool links, double y) {
  const Scale scale(0, phase.seconds(), 0, 100);
  double at = 0;
  svg.rect(0, y, 100, height, "idle");
  for (const StepPart *part : phase.parts) {
    if (onlyLane && PhaseParts::onLinks(*part) != links)
      continue;
    const double begin = scale(at), width = scale(at + part->exposed().value) - begin;
    const std::string share = printShare(part->exposed().value / phase.seconds());
    std::string title = part->name + ": " + format(part->exposed()) + ", " + share + " of " + phase.phase;
    if (!PhaseParts::isIdle(*part))
      title += std::string(", bound by ") + nameOf(part->bound);
    if (part->hidden.value > 0)
      title += ", " + format(part->hidden) + " more beside other parts";
    if (!part->tier.empty())
      title += ", tier " + part->tier;
    svg.rect(begin, y, width, height, "part " + classOf(*part), title);
    svg.fitText(begin, y + 19, width, {part->name + " " + share, share}, PhaseParts::isIdle(*part) ? "tick" : "inside");
    at += part->exposed().value;
  }
}

} // namespace

std::string report::stepChart(const ClusterPlan &plan) {
  const std::vector<PhaseParts> phases = phasesOf(plan);
  if (phases.empty())
    return "";
  double lanes = 0;
  for (const PhaseParts &phase : phases)
    lanes += phase.seconds() <= 0 ? 0 : phase.overlaps ? 2 : 1;
  Svg svg(lanes * (height + 2) + double(phases.size()) * 32, "Parts of each phase of a step");
  double y = 0;
  for (const PhaseParts &phase : phases) {
    svg.open("class=\"phase\" data-phase=\"" + escapeHtml(phase.phase) + "\"");
    svg.text(0, y + 16, phase.phase, "strong");
    const bool isShown = phase.seconds() > 0;
    svg.text(100, y + 16,
             (isShown ? format(Seconds(phase.seconds())) : "hidden beside other phases") +
                 (phase.overlaps ? ": compute, and transfers beside it" : ""),
             "tick", "end");
    y += 22;
    if (isShown) {
      drawLane(svg, phase, phase.overlaps, false, y);
      if (phase.overlaps)
        drawLane(svg, phase, true, true, y += height + 2);
    }
    svg.close();
    y += isShown ? height + 10 : 10;
  }
  return svg.finish() + legend({{"compute", "bound by compute"},
                                {"memory", "bound by memory"},
                                {"link", "bound by the bandwidth of links"},
                                {"latency", "bound by the latency of messages"},
                                {"idle", "idle"}});
}
