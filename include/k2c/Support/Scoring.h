//===- Scoring.h - How a router turns logits into scores --------------------===//
#ifndef K2C_SUPPORT_SCORING_H
#define K2C_SUPPORT_SCORING_H

#include <cstdint>

namespace k2c {

/// Of models and of kernels alike: each logit on its own, or all experts against each other.
enum class Scoring : uint8_t { Sigmoid, Softmax };

} // namespace k2c

#endif // K2C_SUPPORT_SCORING_H
