//===- Units.cpp - printing of quantities ---------------------------------===//

#include "k2c/Support/Units.h"
#include "base/FormatBytes.h"

#include <cmath>
#include <cstdio>

using namespace k2c;

namespace {

std::string print(const char *pattern, double value, const char *unit) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value, unit);
  return text;
}

/// Scales `value` by powers of `step` until it is below `step`; `index` becomes
/// the number of steps taken.
double scale(double value, double step, int last, int &index) {
  for (index = 0; std::fabs(value) >= step && index < last; ++index)
    value /= step;
  return value;
}

} // namespace

std::string k2c::format(Bytes bytes) { return formatBytes(bytes.value); }

std::string k2c::format(Flops flops) {
  static const char *const units[] = {"FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
  int index;
  double value = scale(flops.value, 1000, 6, index);
  return print("%.2f %s", value, units[index]);
}

std::string k2c::format(Seconds seconds) {
  double s = std::fabs(seconds.value);
  if (s == 0 || s >= 1)
    return print("%.3g %s", seconds.value, "s");
  if (s >= 1e-3)
    return print("%.3g %s", seconds.value * 1e3, "ms");
  if (s >= 1e-6)
    return print("%.3g %s", seconds.value * 1e6, "us");
  return print("%.3g %s", seconds.value * 1e9, "ns");
}

std::string k2c::format(Bandwidth bandwidth) {
  static const char *const units[] = {"B/s", "KB/s", "MB/s", "GB/s", "TB/s"};
  int index;
  double value = scale(bandwidth.value, 1000, 4, index);
  return print("%.3g %s", value, units[index]);
}

std::string k2c::formatNumber(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string k2c::formatCount(int64_t count) {
  std::string digits = std::to_string(count), out;
  size_t sign = count < 0 ? 1 : 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0)
      out += ',';
    out += digits[i];
  }
  return out;
}
