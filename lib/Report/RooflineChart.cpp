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

constexpr double left = 10, right = 99, top = 30, bottom = 340;

struct Roof {
  std::string name;
  double rate; ///< FLOP/s
};

/// Equal rates are one roof.
std::vector<Roof> roofsOf(const Device &device) {
  std::vector<Roof> roofs;
  auto add = [&](const std::string &name, FlopRate core) {
    const double rate = device.whole(core).value;
    if (!roofs.empty() && roofs.back().rate == rate)
      roofs.back().name += ", " + name;
    else
      roofs.push_back({name, rate});
  };
  add("f32", device.f32.value);
  add("bf16", device.bf16.value);
  if (device.fp8)
    add("fp8", device.fp8->value);
  if (device.fp4)
    add("fp4", device.fp4->value);
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

/// Labels stand above their roofs at the right end, and left of the slope, where no part can be.
void drawRoofs(Svg &svg, const std::vector<Roof> &roofs, double bandwidth, const Scale &x, const Scale &y,
               const Unit &unit, Labels &labels) {
  double highest = 0;
  for (const Roof &roof : roofs) {
    highest = std::max(highest, roof.rate);
    if (roof.rate / unit.factor < y.low()) // below everything that is reached
      continue;
    const double ridge = std::clamp(roof.rate / bandwidth, x.low(), x.high()), at = y(roof.rate / unit.factor);
    svg.line(x(ridge), at, right, at, "roof");
    const Unit own = flopRateUnit(roof.rate);
    const std::string name = roof.name + " " + printTick(std::round(roof.rate / own.factor * 10) / 10) + " " + own.name;
    svg.text(right, at - 4, name, "tick", "end");
    const double width = 6.5 * double(name.size());
    labels.block({right, at, -width / 2, -8, width, 13});
  }
  const double ridge = std::min(highest / bandwidth, x.high());
  const double start = std::max(x.low(), y.low() * unit.factor / bandwidth);
  svg.line(x(start), y(start * bandwidth / unit.factor), x(ridge), y(ridge * bandwidth / unit.factor), "roof");
  svg.openAt(x(ridge), y(ridge * bandwidth / unit.factor));
  svg.text(-12, 4, "memory " + format(Bandwidth(bandwidth)), "tick wide", "end");
  svg.closeInner();
}

void drawPoints(Svg &svg, const std::vector<Point> &points, const Scale &x, const Scale &y, const Unit &unit,
                Labels &labels) {
  auto at = [&](const Point &point) { return std::min(x(std::min(point.intensity, x.high())), right); };
  for (const Point &point : points)
    labels.block({at(point), y(point.rate / unit.factor), 0, 0, 12, 12});
  for (const Point &point : points) {
    const double px = at(point), py = y(point.rate / unit.factor);
    const Unit own = flopRateUnit(point.rate);
    const std::string number = std::to_string(point.number);
    const std::optional<Labels::Box> label = labels.place(px, py, number.size());
    svg.openAt(px, py);
    if (label)
      svg.line(0, 0, label->dx, label->dy, "leader");
    svg.circle(0, 0, 6, std::string("part ") + nameOf(point.part->bound),
               number + " " + point.part->phase + ": " + point.part->name +
                   (std::isfinite(point.intensity) ? ", " + printTick(point.intensity) + " FLOP/byte, " : ", ") +
                   printTick(point.rate / own.factor) + " " + own.name + ", " + format(point.part->seconds));
    if (label)
      svg.text(label->dx, label->dy + 4, number, "number", "middle");
    svg.closeInner();
  }
}

} // namespace

std::string report::rooflineChart(const PlanReport &report) {
  const Device &device = report.topology.device;
  const std::vector<Point> points = pointsOf(report.plan);
  const std::vector<Roof> roofs = roofsOf(device);
  const double bandwidth = device.memoryRead.value.value;
  if (points.empty() || bandwidth <= 0)
    return "";
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
  Svg svg(bottom + 44, "Roofline: FLOP/s that parts reach over FLOP for each byte");
  const Scale x(least / 2, most * 2, left, right, true);
  const Scale y(slowest / 2 / unit.factor, peak * 1.6 / unit.factor, bottom, top, true);
  drawAxisX(svg, x, bottom, top, "FLOP/byte of memory", {});
  drawAxisY(svg, y, left, right, "reached", unit);
  Labels labels;
  drawRoofs(svg, roofs, bandwidth, x, y, unit, labels);
  drawPoints(svg, points, x, y, unit, labels);
  std::vector<Key> keys;
  for (const Point &point : points)
    keys.push_back({std::string(nameOf(point.part->bound)),
                    std::to_string(point.number) + " " + point.part->phase + ": " + point.part->name +
                        (std::isfinite(point.intensity) ? "" : " (memory traffic not counted: at the right edge)")});
  return svg.finish() + legend(keys);
}
