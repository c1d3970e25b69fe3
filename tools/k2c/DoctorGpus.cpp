//===- DoctorGpus.cpp - k2c doctor: NVIDIA's driver, devices and tools ------===//
#include "DoctorGpus.h"
#include "Commands.h"
#include "base/Gpu.h"
#include "base/SmallFile.h"
#include "base/Utf8.h"
#include "k2c/Support/Units.h"
#include "k2c/Target/Nvidia.h"
#include <cstdio>
#include <dlfcn.h>
#include <filesystem>

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

/// What `tool --version` says in the line with its release; "": it does not say.
std::string releaseOf(const std::string &path) {
  std::string command = "'", line(256, 0), release;
  for (const char c : path)
    command += c == '\'' ? "'\\''" : std::string(1, c);
  const std::unique_ptr<FILE, int (*)(FILE *)> output(::popen((command + "' --version 2>/dev/null").c_str(), "r"),
                                                      ::pclose);
  while (output && std::fgets(line.data(), static_cast<int>(line.size()), output.get()))
    if (const std::string text(line.c_str()); text.find("release ") != text.npos)
      release = text.substr(text.find("release "), text.find_last_not_of("\n") + 1 - text.find("release "));
  return release;
}

std::string toolText(const std::string &path, const char *absence) {
  if (path.empty())
    return std::string("not found: ") + absence;
  const std::string release = releaseOf(path);
  return path + (release.empty() ? ", of no version that it states" : ", " + printable(release));
}

/// In $PATH, or beside ptxas.
std::string findNvdisasm(const std::string &ptxas) {
  if (const std::string found = onPath("nvdisasm"); !found.empty() || ptxas.empty())
    return found;
  const auto beside = std::filesystem::path(ptxas).parent_path() / "nvdisasm";
  std::error_code error;
  return std::filesystem::exists(beside, error) ? beside.string() : "";
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
  const std::string ptxas = findPtxas().value_or("");
  found.push_back({"ptxas", toolText(ptxas, "bundles of GPUs hold PTX alone, which the driver compiles when a program "
                                            "starts")});
  found.push_back({"nvdisasm", toolText(findNvdisasm(ptxas), "the machine code of GPUs' kernels is not shown")});
  return found;
}
