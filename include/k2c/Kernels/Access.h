//===- Access.h - How a kernel touches its arguments ------------------------===//
//
// What a static schedule has to know of a kernel whose items run on several workers: which arguments it writes, and
// which it touches row by row, item i of its grid being row i.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_ACCESS_H
#define K2C_KERNELS_ACCESS_H

#include "k2c/Kernels/KernelDesc.h"

namespace k2c {

/// How a kernel touches one of `operands(desc)`.
struct Access {
  bool writes = false; ///< results, planes of an append, and operands that are destroyed
  bool byRow = false;  ///< item i reads and writes row i and no other
};

/// One entry for each of `operands(desc)`.
std::vector<Access> accesses(const KernelDesc &desc);

/// The rows of its results that a kernel writes.
FormFilter writtenRows(const KernelDesc &desc);

} // namespace k2c

#endif // K2C_KERNELS_ACCESS_H
