//===- DoctorGpus.h - k2c doctor: NVIDIA's driver, devices and tools --------===//
#ifndef K2C_TOOLS_K2C_DOCTORGPUS_H
#define K2C_TOOLS_K2C_DOCTORGPUS_H

#include <string>
#include <utility>
#include <vector>

namespace k2c {

/// What was looked for, and what was found: one line of k2c doctor.
using Finding = std::pair<std::string, std::string>;

/// The driver, each device that it has, ptxas and nvdisasm; of what is absent, what does not work without it.
std::vector<Finding> examineGpus();

} // namespace k2c

#endif // K2C_TOOLS_K2C_DOCTORGPUS_H
