//===- BankConflicts.h - Whether shared memory answers a warp at once -----===//
#ifndef K2C_PTX_BANKCONFLICTS_H
#define K2C_PTX_BANKCONFLICTS_H

#include "k2c/Ptx/Module.h"

namespace k2c::ptx {

/// Whether the text alone shows that no access of shared memory in `function`, of `module`, has a bank conflict: none
/// takes more wavefronts than its bytes need, whatever it computes. False: one has conflicts, it depends on what is
/// computed, or the text has what is not looked into: calls, and what is no load or store of shared memory (atom, cp).
/// It takes time linear in the text.
bool hasNoBankConflicts(const Module &module, const Function &function);

} // namespace k2c::ptx

#endif // K2C_PTX_BANKCONFLICTS_H
