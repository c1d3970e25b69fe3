//===- Doctor.cpp - k2c doctor: what this machine offers ------------------===//
#include "Commands.h"
#include "DoctorGpus.h"
#include "Launchers.h"
#include "base/Container.h"
#include "base/JsonText.h"
#include "base/SmallFile.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Pipelines/Compile.h"
#include "k2c/Target/Launch.h"
#include <dlfcn.h>
#include <filesystem>
#include <iostream>

using namespace k2c;

namespace {

/// Where a program is.
std::string placeOf(const char *program) {
  const std::string path = onPath(program);
  return path.empty() ? "not found" : path;
}

/// The launchers of MPI libraries, else one of none that k2c knows.
std::string launchers() {
  std::string found;
  for (const LibraryTransport &transport : mpiTransports())
    if (const std::string path = mpirunOf(transport.name); !path.empty())
      found += (found.empty() ? "" : ", ") + path;
  if (!found.empty())
    return found;
  const std::string other = onPath("mpirun");
  return other.empty() ? "not found" : other + ", of no MPI that k2c knows";
}

/// Which of some libraries this build can send messages over, and what it takes to have the others.
std::string transportsAmong(const std::vector<LibraryTransport> &all) {
  std::string found, packages;
  for (const LibraryTransport &transport : all) {
    std::string &list = transport.path.empty() ? packages : found;
    list += (list.empty() ? "" : ", ") + (transport.path.empty() ? transport.package : transport.name);
  }
  return (found.empty() ? "none" : found) +
         (packages.empty() ? "" : "; for more install " + packages + " and build k2c again");
}

/// The UCX that programs on this machine would open.
std::string ucxVersion() {
  void *library = ::dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  const auto version =
      library ? reinterpret_cast<const char *(*)()>(::dlsym(library, "ucp_get_version_string")) : nullptr;
  return version ? std::string("libucp ") + version() : "not found";
}

std::vector<Finding> examine() {
  std::vector<Finding> found;
  auto line = [&](const std::string &what, const std::string &is) { found.push_back({what, is}); };
  Topology host = hostTopology();
  line("cpu target", hostCpuName());
  std::string features;
  for (const std::string &feature : hostCpuFeatures())
    features += (features.empty() ? "" : " ") + feature;
  line("cpu features", features.empty() ? "none that k2c uses" : features);
  const double quota = readContainer().quota;
  line("cpu quota", quota > 0 ? formatNumber(quota, 6) + " CPUs" : "none");
  line("cores", std::to_string(host.device.cores));
  std::string nodes;
  for (int64_t cores : host.device.numa)
    nodes += (nodes.empty() ? "" : " + ") + std::to_string(cores);
  line("NUMA nodes", nodes.empty() ? "1" : std::to_string(host.device.numa.size()) + " (" + nodes + " cores)");
  line("memory", format(host.device.memory.value) + " (" + host.device.memory.source + ")");
  line("memory bandwidth", format(host.device.memoryRead.value) + " (" + host.device.memoryRead.source + ")");
  const std::string hugePages = readFirstLine("/sys/kernel/mm/transparent_hugepage/enabled");
  line("huge pages", hugePages.empty() ? "not found" : hugePages);
  line("ld.lld", placeOf("ld.lld-22"));
  line("llvm-objdump", placeOf("llvm-objdump-22"));
  line("mpirun", launchers());
  line("MPI in this build", transportsAmong(mpiTransports()));
  line("UCX", ucxVersion());
  line("UCX in this build", transportsAmong({ucxTransport()}));
  for (Finding &finding : examineGpus())
    found.push_back(std::move(finding));
  return found;
}

int print(bool asJson) {
  nlohmann::ordered_json json;
  for (const auto &[what, found] : examine())
    if (asJson)
      json[what] = found;
    else
      std::cout << what << std::string(22 - std::min<size_t>(21, what.size()), ' ') << found << "\n";
  if (asJson)
    std::cout << jsonText(json, 2) << "\n";
  return 0;
}

} // namespace

std::string k2c::onPath(const std::string &program) {
  std::stringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::error_code error; std::filesystem::exists(std::filesystem::path(folder) / program, error))
      return (std::filesystem::path(folder) / program).string();
  return "";
}

void k2c::addDoctor(CLI::App &app, std::function<int()> &run) {
  CLI::App *c =
      app.add_subcommand("doctor", "CPU, memory, limits, linker, MPI, UCX, NVIDIA's driver, GPUs: found or not");
  c->footer("example:\n  k2c doctor");
  auto asJson = std::make_shared<bool>(false);
  c->add_flag("--json", *asJson, "print JSON");
  c->callback([asJson, &run] { run = [asJson] { return print(*asJson); }; });
}
