//===- TimeLeft.h - How long work still takes, for people ------------------===//
#ifndef K2C_BASE_TIMELEFT_H
#define K2C_BASE_TIMELEFT_H

#include <cstdint>
#include <string>

namespace k2c {

/// ", about 4 min left": of work of which `total` has to be done, and which has gone from `first` to `done` in
/// `seconds` at a rate that stays; "" where nothing was done yet, or nothing is left.
std::string timeLeft(int64_t first, int64_t done, int64_t total, double seconds);

} // namespace k2c

#endif // K2C_BASE_TIMELEFT_H
