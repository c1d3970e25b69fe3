//===- Cta.h - What kernels know of a GPU's CTA -------------------------------===//
#ifndef K2C_KERNELS_CTA_H
#define K2C_KERNELS_CTA_H

#include <cstdint>

namespace k2c {

/// Warps of a CTA, which share the rows and the leaves of a linear's panels.
constexpr int64_t ctaWarps = 4;
/// Row tiles that they share at most.
constexpr int64_t ctaTiles = 2;

/// The attribute of a function whose worker is a CTA, with all its warps, and of stack space that they share.
inline constexpr const char *ctaAttribute = "k2c-cta";

} // namespace k2c

#endif // K2C_KERNELS_CTA_H
