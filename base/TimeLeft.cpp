//===- TimeLeft.cpp - How long work still takes, for people ----------------===//
#include "base/TimeLeft.h"
#include <cmath>
#include <utility>

std::string k2c::timeLeft(int64_t first, int64_t done, int64_t total, double seconds) {
  if (done <= first || done >= total)
    return "";
  const double left = seconds * double(total - done) / double(done - first);
  for (const auto &[unit, name] : {std::pair(3600.0, " h"), std::pair(60.0, " min")})
    if (left >= 1.5 * unit)
      return ", about " + std::to_string(std::llround(left / unit)) + name + " left";
  return ", about " + std::to_string(std::llround(left)) + " s left";
}
