//===- Lengths.cpp - Lengths in tokens as discrete distributions --------------===//

#include "k2c/Planner/Workload.h"

#include <algorithm>
#include <cmath>

using namespace k2c;

Lengths Lengths::fixed(int64_t tokens) { return histogram({{tokens, 1}}); }

/// The number that a standard normal one stays below with chance `share`.
static double normalQuantile(double share) {
  double low = -9, high = 9;
  for (int i = 0; i < 60; ++i) {
    double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < share ? low : high) = middle;
  }
  return low;
}

Lengths Lengths::logNormal(double median, double sigma, int64_t most, int points) {
  std::vector<Point> all;
  for (int i = 0; i < points; ++i) {
    double tokens = median * std::exp(sigma * normalQuantile((i + 0.5) / points));
    all.push_back({std::clamp<int64_t>(std::llround(std::min(tokens, 1e15)), 1, most), 1});
  }
  return histogram(std::move(all));
}

Lengths Lengths::histogram(std::vector<Point> points) {
  std::sort(points.begin(), points.end(), [](const Point &a, const Point &b) { return a.tokens < b.tokens; });
  double sum = 0;
  for (const Point &point : points)
    sum += point.share;
  Lengths lengths;
  for (const Point &point : points) {
    if (point.share <= 0)
      continue;
    if (!lengths.ascending.empty() && lengths.ascending.back().tokens == point.tokens)
      lengths.ascending.back().share += point.share / sum;
    else
      lengths.ascending.push_back({point.tokens, point.share / sum});
  }
  return lengths;
}

double Lengths::mean() const {
  double mean = 0;
  for (const Point &point : ascending)
    mean += point.share * double(point.tokens);
  return mean;
}

double Lengths::meanOfSquares() const {
  double mean = 0;
  for (const Point &point : ascending)
    mean += point.share * double(point.tokens) * double(point.tokens);
  return mean;
}

int64_t Lengths::quantile(double share) const {
  double below = 0;
  for (const Point &point : ascending)
    if ((below += point.share) >= share - 1e-12)
      return point.tokens;
  return longest();
}
