//===- Entry.h - What a GPU enters ----------------------------------------------===//
#ifndef K2C_LIB_TARGET_NVIDIA_ENTRY_H
#define K2C_LIB_TARGET_NVIDIA_ENTRY_H

#include "k2c/Target/Nvidia.h"

namespace llvm {
class Function;
} // namespace llvm

namespace k2c {

/// Adds the kernel that calls `body`, takes its name, and has `arguments` parameters behind the launch.
void addEntry(llvm::Function &body, int64_t arguments, const NvidiaTarget &target);

} // namespace k2c

#endif // K2C_LIB_TARGET_NVIDIA_ENTRY_H
