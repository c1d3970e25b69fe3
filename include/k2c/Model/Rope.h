//===- Rope.h - tables of the rotary embedding ----------------------------===//
//
// Angles are products in float32 of position and inverse frequency, as the
// reference implementations compute them; their cosine and sine are exact to
// double precision and rounded once. Sines, logarithms and powers are k2c's
// own (k2rt/polynomials.def, Support/Polynomials.h), so a table has the same
// bits everywhere (numerics N7).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_MODEL_ROPE_H
#define K2C_MODEL_ROPE_H

#include "k2c/Model/ModelSpec.h"

namespace k2c {

/// Most positions a table can have: sines are exact for angles below it.
constexpr int64_t maxRopePositions = int64_t(1) << 20;

/// Inverse frequency of each of the dims/2 pairs, scaling applied.
std::vector<float> ropeInverseFrequencies(const RopeSpec &rope);

/// Rows [first, first + count) of the table [position][2][dims/2]: cosines,
/// then sines, times cosSinScale. `out` has count * dims elements.
void ropeTableRows(const RopeSpec &rope, int64_t first, int64_t count, float *out);

/// The table for positions [0, positions).
std::vector<float> ropeTable(const RopeSpec &rope, int64_t positions);

/// YaRN's magnitude: 0.1 * mscale * ln(factor) + 1 for factor > 1, else 1.
double yarnMagnitude(double factor, double mscale);
/// The mscale of which the magnitude's square is `scale`, for factor > 1.
double yarnMscale(double factor, double scale);

} // namespace k2c

#endif // K2C_MODEL_ROPE_H
