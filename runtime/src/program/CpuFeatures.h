// Whether this processor has what a program was compiled for.
#ifndef K2RT_PROGRAM_CPUFEATURES_H
#define K2RT_PROGRAM_CPUFEATURES_H

#include "base/Error.h"
#include <string>
#include <vector>

namespace k2c::runtime {

/// Checks LLVM feature names ("avx512f", "sse4.1") against cpuid and what the system saves (xgetbv). Fails naming the
/// first that is missing, or a name this build does not know. `cpu` is the target's name, for the message.
Status checkCpuFeatures(const std::vector<std::string> &required, const std::string &cpu);

} // namespace k2c::runtime

#endif
