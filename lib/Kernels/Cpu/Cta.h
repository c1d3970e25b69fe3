//===- Cta.h - Code of a worker that is a CTA of a GPU ---------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_CTA_H
#define K2C_LIB_KERNELS_CPU_CTA_H

#include "Builder.h"
#include "k2c/Kernels/Cta.h"

namespace k2c::emit {

/// The worker is a CTA: each of its ctaWarps warps runs the kernel, with the same items.
void runByCta(KernelBuilder &b);

/// Which warp of the CTA this is (i64).
Value warpOfCta(KernelBuilder &b);

/// The warps of the CTA wait for each other, and see what the others have written.
void meetInCta(KernelBuilder &b);

/// Stack space that the warps of a CTA share.
Value stackOfCta(KernelBuilder &b, int64_t bytes);

/// The same number (i64, less than 2^31), of which nobody knows where it is from: what is computed of it is not
/// computed before, outside of loops, where it would take registers for as long as they run.
Value keptHere(KernelBuilder &b, Value number);

/// The same pointer, known to be one of global memory.
Value globalPointer(KernelBuilder &b, Value pointer);

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_CTA_H
