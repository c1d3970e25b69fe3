//===- Finite.h - Weights are numbers -------------------------------------===//
//
// A NaN or an infinity in a weight makes every logit it reaches a NaN, and a router with one chooses experts at random.
// No trained checkpoint has one: it is damage, found while the weights are packed and not in the answers.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_WEIGHTS_FINITE_H
#define K2C_LIB_WEIGHTS_FINITE_H

#include "k2c/Support/DType.h"

#include <cstdint>
#include <optional>

namespace k2c::weights {

/// Index of the first of `count` elements that is NaN or infinite. Types that have neither are always finite.
std::optional<int64_t> firstNonFinite(const char *elements, int64_t count, DType type);

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_FINITE_H
