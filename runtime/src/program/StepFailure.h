// What a kernel that fails ends a step with, on whatever it ran.
#ifndef K2RT_PROGRAM_STEPFAILURE_H
#define K2RT_PROGRAM_STEPFAILURE_H

#include "program/Bundle.h"
#include <string>

namespace k2c::runtime {

/// The failure of kernel `kernel`, which returned `result`. `absent`: where it was K2RT_STATUS_ABSENT_EXPERT, an entry
/// of the tables of bundle.weights. `who` ends the message: " on worker 3".
Error kernelFailed(const Bundle &bundle, int32_t kernel, int32_t result, const void *absent, const std::string &who);

} // namespace k2c::runtime

#endif
