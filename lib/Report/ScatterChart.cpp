//===- ScatterChart.cpp - What else could be chosen -----------------------===//
//
// Plans of a search by latency (to the left is better) and rate (above is better). The line joins the frontier; the
// number beside a point is its devices.
//
//===----------------------------------------------------------------------===//

#include "Charts.h"

#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::report;

namespace {

constexpr double left = 12, right = 99, top = 30, bottom = 340;

struct Point {
  double latency, rate;
  const ClusterPlan *plan;
  const char *classes;
  std::string note;
};

void addPoint(std::vector<Point> &points, const ClusterPlan &plan, const char *classes, const std::string &note = "") {
  const Tradeoff tradeoff = tradeoffOf(plan);
  if (tradeoff.rate && tradeoff.latency && tradeoff.latency->value > 0 && tradeoff.rate->value > 0)
    points.push_back({tradeoff.latency->value, tradeoff.rate->value, &plan, classes, note});
}

std::string titleOf(const Point &point) {
  const Tradeoff tradeoff = tradeoffOf(*point.plan);
  std::string title = format(point.plan->layout, point.plan->phase) + "\n" + std::to_string(point.plan->devices) +
                      " devices, " + printFigure(point.rate, tradeoff.rate->unit) + ", " + tradeoff.latency->label +
                      " " + printFigure(point.latency, tradeoff.latency->unit);
  return point.note.empty() ? title : title + "\n" + point.note;
}

/// From the least to the most value with room around it; logarithmic where they differ much.
Scale scaleOf(const std::vector<Point> &points, double Point::*value, double unit, double from, double to) {
  double low = INFINITY, high = 0;
  for (const Point &point : points) {
    low = std::min(low, point.*value);
    high = std::max(high, point.*value);
  }
  if (high > 8 * low)
    return Scale(low / 1.3 / unit, high * 1.3 / unit, from, to, true);
  return Scale(0, high * 1.12 / unit, from, to);
}

void drawFrontier(Svg &svg, std::vector<Point> points, const Scale &x, const Scale &y, double unit) {
  std::sort(points.begin(), points.end(), [](auto &a, auto &b) { return a.latency < b.latency; });
  const Point *last = nullptr;
  for (const Point &point : points) {
    if (last && point.rate <= last->rate) // on the frontier for its few devices
      continue;
    if (last)
      svg.line(x(last->latency / unit), y(last->rate), x(point.latency / unit), y(point.rate), "frontier");
    last = &point;
  }
}

} // namespace

std::string report::scatterChart(const PlanSearch &search) {
  std::vector<Point> frontier, points;
  for (const ClusterPlan &plan : search.frontier)
    addPoint(frontier, plan, "point frontierPoint");
  for (const RunnerUp &runnerUp : search.runnersUp)
    addPoint(points, runnerUp.plan, "point runnerUp", runnerUp.loses);
  points.insert(points.end(), frontier.begin(), frontier.end());
  addPoint(points, search.best, "point best", "the chosen plan");
  if (points.empty())
    return "";
  double slowest = 0;
  for (const Point &point : points)
    slowest = std::max(slowest, point.latency);
  const Unit unit = secondsUnit(slowest);
  const Tradeoff tradeoff = tradeoffOf(*points.back().plan);
  Svg svg(bottom + 44, "Plans by latency and rate");
  const Scale x = scaleOf(points, &Point::latency, unit.factor, left, right);
  const Scale y = scaleOf(points, &Point::rate, 1, bottom, top);
  drawAxisX(svg, x, bottom, top, tradeoff.latency->label, unit);
  drawAxisY(svg, y, left, right, tradeoff.rate->label, {});
  drawFrontier(svg, frontier, x, y, unit.factor);
  Labels labels;
  for (const Point &point : points)
    labels.block({x(point.latency / unit.factor), y(point.rate), 0, 0, 12, 12});
  for (const Point &point : points) {
    const double px = x(point.latency / unit.factor), py = y(point.rate);
    svg.openAt(px, py);
    svg.circle(0, 0, &point == &points.back() ? 8 : 5, point.classes, titleOf(point));
    const std::string devices = std::to_string(point.plan->devices);
    if (std::optional<Labels::Box> label = labels.place(px, py, devices.size()))
      if (std::fabs(label->dx) + std::fabs(label->dy) < 24)
        svg.text(label->dx, label->dy + 4, devices, "tick", "middle");
    svg.closeInner();
  }
  return svg.finish() + legend({{"best", "the chosen plan"},
                                {"frontierPoint", "frontier: nothing is better in rate, latency and devices at once"},
                                {"runnerUp", "runners-up"}});
}
