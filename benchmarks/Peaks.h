//===- Peaks.h - What a core can do at most -------------------------------===//
#ifndef K2C_BENCHMARKS_PEAKS_H
#define K2C_BENCHMARKS_PEAKS_H

#include <cstdint>

namespace k2c::bench {

/// FLOP of one call: `steps` rounds of independent multiply-adds on registers, of 512 bits or, for f32 without AVX-512,
/// of 256. Zero where the CPU lacks the instruction.
double runF32Peak(int64_t steps);
double runBf16Peak(int64_t steps);

} // namespace k2c::bench

#endif // K2C_BENCHMARKS_PEAKS_H
