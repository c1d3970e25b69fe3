//===- TrafficChart.cpp - How long each tier of links is busy -------------===//

#include "Charts.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::report;

std::string report::trafficChart(const ClusterPlan &plan) {
  constexpr double left = 210, right = chartWidth - 250, top = 8, pitch = 30;
  double most = 0;
  for (const TierTraffic &tier : plan.traffic)
    most = std::max(most, tier.seconds.value);
  if (most <= 0)
    return "<p>Nothing crosses a link.</p>\n";
  const Unit unit = secondsUnit(most);
  const double bottom = top + pitch * double(plan.traffic.size()) + 4;
  Svg svg(chartWidth, bottom + 42, "Seconds that each tier of links is busy");
  const Scale scale(0, most / unit.factor, left, right);
  drawAxisX(svg, scale, bottom, top, "received by a device, time on the link", unit);
  double y = top + 6;
  for (const TierTraffic &tier : plan.traffic) {
    const std::string link = tier.link.empty() ? "" : " (" + tier.link + ")";
    const std::string bytes = format(Bytes(int64_t(std::min(tier.bytes, 9e18))));
    svg.open("class=\"tier\" data-phase=\"" + escapeHtml(tier.phase) + "\" data-tier=\"" + escapeHtml(tier.tier) +
             "\"");
    svg.text(left - 8, y + 14, tier.phase + ": " + tier.tier + link, "", "end");
    svg.rect(left, y, scale(tier.seconds.value / unit.factor) - left, 20, "part link",
             bytes + " at " + format(tier.available) + ": " + format(tier.seconds));
    svg.text(right + 12, y + 9, bytes, "");
    svg.text(right + 12, y + 22, "at " + format(tier.available) + ": " + format(tier.seconds), "tick");
    svg.close();
    y += pitch;
  }
  return svg.finish();
}
