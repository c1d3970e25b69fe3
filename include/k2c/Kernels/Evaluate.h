//===- Evaluate.h - The scalar reading of a kernel ----------------------------===//
//
// The oracle that emitted kernels are compared with, bit by bit: plain loops that perform the operations KernelDesc.h
// defines, in the order it defines, over the whole grid. It takes the very argument array a compiled kernel takes.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_EVALUATE_H
#define K2C_KERNELS_EVALUATE_H

#include "base/Error.h"
#include "k2c/Kernels/WeightLayout.h"
#include "k2rt/program.h"

namespace k2c {

/// Runs `desc` on args (operands, then results: the order of `operands(desc)`) for every row of `step`. Matrices lie in
/// `layout`. Sets DAZ and FTZ for its own duration. Errors, at desc.name: what makes a compiled kernel return a status
/// (an id, position, expert or output row out of range), row spaces the kernel does not take, and what verify()
/// refuses. Pointers are the caller's to get right.
Status evaluate(const KernelDesc &desc, void *const *args, const k2rt_ir_step &step, WeightLayout layout);

} // namespace k2c

#endif // K2C_KERNELS_EVALUATE_H
