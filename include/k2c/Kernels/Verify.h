//===- Verify.h - Descriptions that make sense --------------------------------===//
//
// A description is built from ops by lowering; a wrong width would be read past a buffer by every reading. This is the
// one place that knows how the fields of a description hang together.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_VERIFY_H
#define K2C_KERNELS_VERIFY_H

#include "base/Error.h"
#include "k2c/Kernels/KernelDesc.h"

namespace k2c {

/// Checks that widths, strides, layouts, orders and counts of `desc` agree. Error: at desc.name, the field and both
/// numbers.
Status verify(const KernelDesc &desc);

} // namespace k2c

#endif // K2C_KERNELS_VERIFY_H
