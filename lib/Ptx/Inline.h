//===- Inline.h - Calls become what they call -----------------------------===//
#ifndef K2C_LIB_PTX_INLINE_H
#define K2C_LIB_PTX_INLINE_H

#include "k2c/Ptx/Module.h"

namespace k2c::ptx {

/// What a kernel may have with what it calls; no function may declare more registers.
constexpr uint64_t maxRegisters = 1 << 17, maxVariables = 1 << 17;

/// `entry` without calls: in the place of each stands what it calls, with registers and variables of its own, whose
/// parameters are the variables that the call gives. Parameters of calls are local memory.
Expected<Function> withoutCalls(const Module &module, const Function &entry);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_INLINE_H
