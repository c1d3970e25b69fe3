//===- Counters.h - What a launch does, in numbers ------------------------===//
#ifndef K2C_LIB_PTX_COUNTERS_H
#define K2C_LIB_PTX_COUNTERS_H

#include "Execution.h"

namespace k2c::ptx {

InstructionClass classOf(const Instruction &instruction, const Operation &operation);

/// An access of `bytes` bytes (1 to 32) at an address of each lane of `active`.
void countGlobal(Traffic &traffic, const uint64_t *addresses, uint32_t active, uint32_t bytes);
/// The same in shared memory, of up to 16 bytes.
void countShared(Traffic &traffic, const uint64_t *addresses, uint32_t active, uint32_t bytes);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_COUNTERS_H
