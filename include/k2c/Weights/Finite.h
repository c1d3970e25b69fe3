//===- Finite.h - Weights are numbers -------------------------------------===//
//
// A NaN or an infinity in a weight makes every logit it reaches a NaN, and a router with one chooses experts at random.
// No trained checkpoint has one: it is damage, found while the weights are packed or exported and not in the answers.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_WEIGHTS_FINITE_H
#define K2C_WEIGHTS_FINITE_H

#include "k2c/Weights/TensorSource.h"

namespace k2c {

/// Reads elements [first, first + count) of a tensor of that type. Error: as of TensorSource::read; an element is NaN
/// or infinite, of the types that have these.
Status readFinite(const TensorSource &tensors, const std::string &name, DType type, int64_t first, int64_t count,
                  char *out);

} // namespace k2c

#endif // K2C_WEIGHTS_FINITE_H
