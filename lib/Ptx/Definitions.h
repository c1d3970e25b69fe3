//===- Definitions.h - Registers that may be read before written ----------===//
#ifndef K2C_LIB_PTX_DEFINITIONS_H
#define K2C_LIB_PTX_DEFINITIONS_H

#include "Program.h"

#include <vector>

namespace k2c::ptx {

/// Fills Operation::checked and Program::tracked: the slots that an instruction reads and that some path to it has not
/// written. The others need no check when the kernel runs. `reads` and `writes`: slots, by instruction.
void findUndefined(Program &program, const std::vector<std::vector<Slot>> &reads,
                   const std::vector<std::vector<Slot>> &writes);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_DEFINITIONS_H
