//===- Math.h - exp, what is made of it, and lists of element operations ---------------===//
#ifndef K2C_LIB_KERNELS_CPU_MATH_H
#define K2C_LIB_KERNELS_CPU_MATH_H

#include "Builder.h"

namespace k2c::emit {

/// Emits e^x on scalars or vectors: the operations of polynomials.def, one for one.
Value emitExp(KernelBuilder &b, Value x);
/// Emits the logistic function, 1 / (1 + e^-x).
Value emitSigmoid(KernelBuilder &b, Value x);
/// The result of `list` on `lanes` elements (0: a scalar) but for the last rounding, which storing does. input(i) makes
/// the f32 of input i; it is called once for each, where the input is first taken.
Value emitElementwise(KernelBuilder &b, const Elementwise &list, int64_t lanes,
                      llvm::function_ref<Value(int64_t)> input);

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_MATH_H
