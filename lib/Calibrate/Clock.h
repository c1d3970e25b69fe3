//===- Clock.h - Seconds that only go forward, and the date ---------------===//
#ifndef K2C_LIB_CALIBRATE_CLOCK_H
#define K2C_LIB_CALIBRATE_CLOCK_H

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>

namespace k2c::calibration {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What a pair of calls adds to the time between them.
inline double clockSeconds() {
  double least = 1;
  for (int i = 0; i < 100; ++i) {
    double begin = now();
    least = std::min(least, now() - begin);
  }
  return least;
}

/// As 2026-11-21.
inline std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_CLOCK_H
