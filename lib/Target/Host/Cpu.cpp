//===- Cpu.cpp - What is known of the CPU to compile for ------------------------------------===//
#include "Codegen.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include <algorithm>
#include <unistd.h>

namespace k2c {

bool HostTarget::has(const std::string &feature) const {
  return std::binary_search(features.begin(), features.end(), feature);
}

static Expected<HostTarget> targetOf(const std::string &cpu, std::vector<std::string> features) {
  HostTarget target;
  target.cpu = cpu;
  std::sort(features.begin(), features.end());
  target.features = std::move(features);
  if (!target.has("fma") || !target.has("avx2"))
    return Error{"cpu " + cpu, "has no FMA and AVX2; every contraction is a chain of fused multiply-adds",
                 "compile for x86-64-v3 or newer"};
  return target;
}

TargetInfo HostTarget::tileTarget() const { return cpuTarget(features, l1Bytes, l2Bytes); }

Expected<HostTarget> HostTarget::detect() {
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  if (triple.getArch() != llvm::Triple::x86_64)
    return Error{"cpu host", "is " + triple.getArchName().str() + "; k2c generates code for x86-64",
                 "name a CPU, e.g. x86-64-v3"};
  std::vector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    if (feature.second)
      features.push_back(feature.first().str());
  Expected<HostTarget> target = targetOf(llvm::sys::getHostCPUName().str(), std::move(features));
  if (target) {
    if (long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0)
      target->l1Bytes = bytes;
    if (long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
      target->l2Bytes = bytes;
  }
  return target;
}

Expected<HostTarget> HostTarget::forCpu(const std::string &name) {
  if (name == "host")
    return detect();
  if (llvm::X86::parseArchX86(name, /*Only64Bit=*/true) == llvm::X86::CK_None) {
    bool narrow = llvm::X86::parseArchX86(name) != llvm::X86::CK_None;
    return Error{"cpu " + name, narrow ? "is a 32-bit CPU" : "is not a CPU that LLVM knows for x86-64",
                 "name one as clang's -march does, e.g. x86-64-v3, znver4, sapphirerapids, or host"};
  }
  llvm::SmallVector<llvm::StringRef> known;
  llvm::X86::getFeaturesForCPU(name, known);
  llvm::StringMap<bool> enabled; // with what these imply: x86-64-v4 names AVX512BW, not AVX512F
  for (llvm::StringRef feature : known) {
    enabled[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, /*Enabled=*/true, enabled);
  }
  std::vector<std::string> features;
  for (const auto &feature : enabled)
    if (feature.second)
      features.push_back(feature.first().str());
  return targetOf(name, std::move(features));
}

std::string featureString(const HostTarget &target) {
  // The CPU's name implies features; those this very machine lacks must be taken away.
  llvm::SmallVector<llvm::StringRef> implied;
  llvm::X86::getFeaturesForCPU(target.cpu, implied);
  std::string text;
  for (const std::string &feature : target.features)
    text += (text.empty() ? "+" : ",+") + feature;
  for (llvm::StringRef feature : implied)
    if (!target.has(feature.str()))
      text += ",-" + feature.str();
  return text;
}

} // namespace k2c
