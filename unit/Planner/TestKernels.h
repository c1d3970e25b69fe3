//===- TestKernels.h - Kernels that times are told of ------------------------===//
#ifndef K2C_UNIT_PLANNER_TESTKERNELS_H
#define K2C_UNIT_PLANNER_TESTKERNELS_H

#include "k2c/Kernels/KernelDesc.h"

namespace k2c::test {

/// Rows of k f32 times an n x k matrix.
inline LinearDesc linearOf(int64_t n, int64_t k) {
  LinearDesc d;
  d.x = {RowSpace::Token, k, k, DType::F32};
  d.y = {RowSpace::Token, n, n, DType::F32};
  d.w.n = n;
  d.w.k = k;
  return d;
}

} // namespace k2c::test

#endif // K2C_UNIT_PLANNER_TESTKERNELS_H
