//===- Math.h - exp and what is made of it, the vector reading of polynomials.def ------===//
#ifndef K2C_LIB_KERNELS_EMIT_MATH_H
#define K2C_LIB_KERNELS_EMIT_MATH_H

#include "Builder.h"

namespace k2c::emit {

/// e^x on scalars or vectors: the operations of polynomials.def, one for one.
Value emitExp(KernelBuilder &b, Value x);
/// 1 / (1 + e^-x).
Value emitSigmoid(KernelBuilder &b, Value x);
/// x / (1 + e^-x).
Value emitSilu(KernelBuilder &b, Value x);

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_EMIT_MATH_H
