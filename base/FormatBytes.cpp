//===- FormatBytes.cpp - Sizes for people ----------------------------------===//
#include "base/FormatBytes.h"
#include <cmath>
#include <cstdio>

namespace k2c {

/// Two digits of `bytes` in the largest unit of a power of `step` that leaves at least one.
static std::string inUnits(int64_t bytes, double step, const char *infix) {
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; std::fabs(value) >= step && unit < 5; ++unit)
    value /= step;
  char text[64];
  std::snprintf(text, sizeof text, "%.2f %c%s", value, " KMGTP"[unit], infix);
  return text;
}

std::string formatBytes(int64_t bytes) {
  if (bytes > -1024 && bytes < 1024)
    return std::to_string(bytes) + " B";
  return inUnits(bytes, 1024, "iB") + " (" + inUnits(bytes, 1000, "B") + ")";
}

} // namespace k2c
