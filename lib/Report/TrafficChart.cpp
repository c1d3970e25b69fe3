//===- TrafficChart.cpp - How long each tier of links is busy -------------===//

#include "Charts.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::report;

std::string report::trafficChart(const ClusterPlan &plan) {
  constexpr double pitch = 38;
  double most = 0;
  for (const TierTraffic &tier : plan.traffic)
    most = std::max(most, tier.seconds.value);
  if (most <= 0)
    return "";
  const Unit unit = secondsUnit(most);
  const double bottom = pitch * double(plan.traffic.size()) + 4;
  Svg svg(bottom + 42, "Seconds that each tier of links is busy");
  const Scale scale(0, most / unit.factor, 0, 100);
  drawAxisX(svg, scale, bottom, 0, "time on the link", unit);
  double y = 0;
  for (const TierTraffic &tier : plan.traffic) {
    const std::string link = tier.link.empty() ? "" : " (" + tier.link + ")";
    svg.open("class=\"tier\" data-phase=\"" + escapeHtml(tier.phase) + "\" data-tier=\"" + escapeHtml(tier.tier) +
             "\"");
    svg.text(0, y + 14, tier.phase + ": " + tier.tier + link);
    svg.text(100, y + 14, printFigure(tier.bytes, "B") + ", " + format(tier.seconds), "tick", "end");
    svg.rect(0, y + 20, scale(tier.seconds.value / unit.factor), 14, "part link",
             printFigure(tier.bytes, "B") + " at " + format(tier.available) + ": " + format(tier.seconds));
    svg.close();
    y += pitch;
  }
  return svg.finish();
}
