//===- RooflineChart.cpp - What parts reach of what the device can --------===//
//
// Both axes are logarithmic. A part lies at the FLOP it does for each byte of memory it moves and at the FLOP/s it
// reaches: under the slope it waits for memory, under a flat roof for arithmetic, well below both for something else.
//
//===----------------------------------------------------------------------===//

#include "Charts.h"

#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::report;

namespace {

constexpr double left = 80, right = chartWidth - 170, top = 14, bottom = 330;

struct Roof {
  std::string name;
  double rate; ///< FLOP/s
};

std::vector<Roof> roofsOf(const Device &device) {
  std::vector<Roof> roofs = {{"f32", device.whole(device.f32.value).value},
                             {"bf16", device.whole(device.bf16.value).value}};
  if (device.fp8)
    roofs.push_back({"fp8", device.whole(device.fp8->value).value});
  if (device.fp4)
    roofs.push_back({"fp4", device.whole(device.fp4->value).value});
  return roofs;
}

/// A part that computes, with its number in the page's table.
struct Point {
  size_t number;
  const StepPart *part;
  double intensity; ///< infinite where the plan counts no memory traffic
  double rate;
};

std::vector<Point> pointsOf(const ClusterPlan &plan) {
  std::vector<Point> points;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const StepPart &part = plan.steps[i];
    if (part.flops.value > 0 && part.seconds.value > 0)
      points.push_back({i + 1, &part, part.memoryBytes > 0 ? part.flops.value / part.memoryBytes : INFINITY,
                        part.flops.value / part.seconds.value});
  }
  return points;
}

void drawRoofs(Svg &svg, const std::vector<Roof> &roofs, double bandwidth, const Scale &x, const Scale &y,
               const Unit &unit) {
  double highest = 0;
  std::vector<double> labels;
  for (const Roof &roof : roofs) {
    highest = std::max(highest, roof.rate);
    if (roof.rate / unit.factor < y.low()) // below everything that is reached
      continue;
    const double ridge = std::clamp(roof.rate / bandwidth, x.low(), x.high());
    svg.line(x(ridge), y(roof.rate / unit.factor), right, y(roof.rate / unit.factor), "roof");
    // Labels of equal roofs stand below each other.
    double at = y(roof.rate / unit.factor) + 4;
    while (std::any_of(labels.begin(), labels.end(), [&](double other) { return std::fabs(other - at) < 14; }))
      at += 14;
    labels.push_back(at);
    const Unit own = flopRateUnit(roof.rate);
    svg.text(right + 8, at, roof.name + " " + printTick(std::round(roof.rate / own.factor * 10) / 10) + " " + own.name,
             "tick");
  }
  const double ridge = std::min(highest / bandwidth, x.high());
  const double start = std::max(x.low(), y.low() * unit.factor / bandwidth);
  svg.line(x(start), y(start * bandwidth / unit.factor), x(ridge), y(ridge * bandwidth / unit.factor), "roof");
  const double middle = std::sqrt(start * ridge);
  svg.text(x(middle) - 10, y(middle * bandwidth / unit.factor) - 10, "memory " + format(Bandwidth(bandwidth)), "tick",
           "end");
}

void drawPoints(Svg &svg, const std::vector<Point> &points, const Scale &x, const Scale &y, const Unit &unit) {
  Labels labels(right);
  auto at = [&](const Point &point) { return std::min(x(std::min(point.intensity, x.high())), right); };
  for (const Point &point : points)
    labels.block(at(point), y(point.rate / unit.factor), 12, 12);
  for (const Point &point : points) {
    const double px = at(point), py = y(point.rate / unit.factor);
    const Unit own = flopRateUnit(point.rate);
    const std::string number = std::to_string(point.number);
    const std::optional<Labels::Place> label = labels.place(px, py, number.size());
    if (label && label->isFar)
      svg.line(px, py, label->x, label->y, "leader");
    svg.circle(px, py, 6, std::string("part ") + nameOf(point.part->bound),
               number + " " + point.part->phase + ": " + point.part->name +
                   (std::isfinite(point.intensity) ? ", " + printTick(point.intensity) + " FLOP/byte, " : ", ") +
                   printTick(point.rate / own.factor) + " " + own.name + ", " + format(point.part->seconds));
    if (label)
      svg.text(label->x, label->y + 4, number, "number", "middle");
  }
}

} // namespace

std::string report::rooflineChart(const PlanReport &report) {
  const Device &device = report.topology.device;
  const std::vector<Point> points = pointsOf(report.plan);
  const std::vector<Roof> roofs = roofsOf(device);
  const double bandwidth = device.memoryRead.value.value;
  if (points.empty() || bandwidth <= 0)
    return "<p>No part of the step computes.</p>\n";
  double peak = 0;
  for (const Roof &roof : roofs)
    peak = std::max(peak, roof.rate);
  double least = peak / bandwidth, most = least, slowest = peak;
  for (const Point &point : points) {
    least = std::min(least, point.intensity);
    most = std::isfinite(point.intensity) ? std::max(most, point.intensity) : most;
    slowest = std::min(slowest, point.rate);
    peak = std::max(peak, point.rate);
  }
  const Unit unit = flopRateUnit(peak);
  Svg svg(chartWidth, bottom + 44, "Roofline: FLOP/s that parts reach over FLOP for each byte");
  const Scale x(least / 2, most * 2, left, right, true);
  const Scale y(slowest / 2 / unit.factor, peak * 1.6 / unit.factor, bottom, top, true);
  drawAxisX(svg, x, bottom, top, "FLOP for each byte of memory", {});
  drawAxisY(svg, y, left, right, "reached", unit);
  drawRoofs(svg, roofs, bandwidth, x, y, unit);
  drawPoints(svg, points, x, y, unit);
  std::vector<Key> keys;
  for (const Point &point : points)
    keys.push_back({std::string(nameOf(point.part->bound)),
                    std::to_string(point.number) + " " + point.part->phase + ": " + point.part->name +
                        (std::isfinite(point.intensity) ? "" : " (memory traffic not counted: at the right edge)")});
  return svg.finish() + legend(keys);
}
