//===- DoctorGpus.cpp - k2c doctor: NVIDIA's driver, devices and tools ------===//
#include "DoctorGpus.h"
#include "Commands.h"
#include "base/Gpu.h"
#include "base/SmallFile.h"
#include "base/Utf8.h"
#include "k2c/Support/Units.h"
#include "k2c/Target/Nvidia.h"
#include "k2c/Target/Sass.h"
#include <dlfcn.h>

using namespace k2c;

namespace {

/// The file that the driver was loaded from.
std::string fileOf(const Driver &driver) {
  Dl_info info{};
  const bool isKnown = ::dladdr(reinterpret_cast<void *>(driver.entries().cuInit), &info) != 0 && info.dli_fname;
  return isKnown ? info.dli_fname : driver.file();
}

std::string describe(const GpuFacts &gpu) {
  return printable(gpu.name) + ", compute capability " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor) +
         ", " + format(Bytes(gpu.memory));
}

/// Devices, a line each.
std::vector<Finding> devicesOf(const Driver &driver) {
  const Expected<int32_t> count = countGpus(driver);
  if (!count)
    return {{"GPUs", "none: " + count.error().text()}};
  std::vector<Finding> found;
  for (int32_t ordinal = 0; ordinal < *count; ++ordinal) {
    const Expected<GpuFacts> gpu = readGpu(driver, ordinal);
    found.push_back({"GPU " + std::to_string(ordinal), gpu ? describe(*gpu) : gpu.error().text()});
  }
  return found.empty() ? std::vector<Finding>{{"GPUs", "none"}} : found;
}

/// "CUDA 13.0", and the version of the kernel's module where that is loaded.
std::string versionOf(const Driver &driver) {
  int version = 0;
  const Status asked = driver.call<&Cuda::cuDriverGetVersion>(&version);
  const std::string module = readFirstLine("/proc/driver/nvidia/version");
  return (asked ? versionText(version) : asked.error().text()) + (module.empty() ? "" : ", " + printable(module));
}

std::string toolText(const std::optional<std::string> &path, const char *absence) {
  if (!path)
    return std::string("not found: ") + absence;
  const Expected<std::string> version = toolVersion(*path);
  return version ? *path + ", " + printable(*version) : version.error().text();
}

} // namespace

std::vector<Finding> k2c::examineGpus() {
  std::vector<Finding> found;
  if (const Expected<std::unique_ptr<Driver>> driver = Driver::open("libcuda.so.1"); !driver) {
    found.push_back({"NVIDIA driver", "not found: bundles of GPUs run with --driver emulated alone; " +
                                          driver.error().where + ": " + driver.error().message});
  } else {
    found.push_back({"NVIDIA driver", fileOf(**driver) + ", " + versionOf(**driver)});
    for (Finding &device : devicesOf(**driver))
      found.push_back(std::move(device));
  }
  found.push_back({"ptxas", toolText(findPtxas(), "bundles of GPUs hold PTX alone, which the driver compiles when a "
                                                  "program starts")});
  found.push_back({"nvdisasm", toolText(findNvdisasm(), "the machine code of GPUs' kernels is not shown, and its main "
                                                        "loops are not checked")});
  return found;
}
