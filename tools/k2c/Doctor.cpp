//===- Doctor.cpp - k2c doctor: what this machine offers ------------------===//
#include "Commands.h"
#include "base/Container.h"
#include "base/JsonText.h"
#include "base/SmallFile.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Pipelines/Compile.h"
#include <filesystem>
#include <iostream>

using namespace k2c;

namespace {

using Finding = std::pair<const char *, std::string>;

/// The first of `names` in the folders of $PATH.
std::string onPath(std::initializer_list<const char *> names) {
  std::stringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const char *name : names)
      if (std::error_code error; std::filesystem::exists(std::filesystem::path(folder) / name, error))
        return (std::filesystem::path(folder) / name).string();
  return "not found";
}

std::vector<Finding> examine() {
  std::vector<Finding> found;
  auto line = [&](const char *what, const std::string &is) { found.push_back({what, is}); };
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
  line("ld.lld", onPath({"ld.lld-22"}));
  line("llvm-objdump", onPath({"llvm-objdump-22"}));
  line("mpirun", onPath({"mpirun"}));
  line("NVIDIA driver", std::filesystem::exists("/proc/driver/nvidia/version") ? "found" : "not found");
  return found;
}

int print(bool asJson) {
  nlohmann::ordered_json json;
  for (const auto &[what, found] : examine())
    if (asJson)
      json[what] = found;
    else
      std::cout << what << std::string(22 - std::min<size_t>(21, std::string(what).size()), ' ') << found << "\n";
  if (asJson)
    std::cout << jsonText(json, 2) << "\n";
  return 0;
}

} // namespace

void k2c::addDoctor(CLI::App &app, std::function<int()> &run) {
  CLI::App *c = app.add_subcommand("doctor", "CPU, memory, limits, linker, MPI, driver: found or not");
  c->footer("example:\n  k2c doctor");
  auto asJson = std::make_shared<bool>(false);
  c->add_flag("--json", *asJson, "print JSON");
  c->callback([asJson, &run] { run = [asJson] { return print(*asJson); }; });
}
