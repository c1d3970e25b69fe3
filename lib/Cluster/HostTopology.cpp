//===- HostTopology.cpp - This machine as a topology ----------------------===//
//
// Counted: processors (affinity, CPU quota), their NUMA nodes and memory (cgroup limits along the path to the root,
// else the machine's), all three read by the runtime's own reader, so that a plan is made of what a run will find;
// caches (sysfs). Estimated from the instruction set and the clock: the flop rates. Assumed: the memory bandwidth,
// which no file states. Each constant's source says which of the three it is; `k2c calibrate` replaces the last two.
//
//===----------------------------------------------------------------------===//
#include "k2c/Cluster/Topology.h"

#include "base/Container.h"
#include "base/SmallFile.h"
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <sstream>

namespace k2c {

namespace {

//===----------------------------------------------------------------------===//
// Small files
//===----------------------------------------------------------------------===//

/// A positive number at the start of a file.
std::optional<int64_t> readNumber(const std::string &path) {
  std::string text = readFirstLine(path);
  char *end = nullptr;
  long long value = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || value <= 0)
    return std::nullopt;
  return value;
}

/// The text after "key :" of the first such line of a /proc file.
std::string field(const std::string &text, const std::string &key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t colon = line.find(':');
    if (colon == std::string::npos)
      continue;
    size_t end = line.find_last_not_of(" \t", colon ? colon - 1 : 0);
    if (line.substr(0, end + 1) == key)
      return line.substr(std::min(line.size(), line.find_first_not_of(" \t", colon + 1)));
  }
  return "";
}

//===----------------------------------------------------------------------===//
// The processor
//===----------------------------------------------------------------------===//

/// The data or unified cache of a level, from sysfs ("1024K"); else `fallback`.
Sourced<Bytes> cache(const std::string &root, int level, Bytes fallback) {
  for (int index = 0; index < 8; ++index) {
    std::string folder = "sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    if (readNumber(root + folder + "level") != level || readFirstLine(root + folder + "type") == "Instruction")
      continue;
    std::string size = readFirstLine(root + folder + "size");
    int64_t unit = size.empty() ? 0 : size.back() == 'K' ? 1024 : size.back() == 'M' ? 1048576 : 1;
    if (int64_t bytes = std::strtoll(size.c_str(), nullptr, 10) * unit; bytes > 0)
      return {Bytes(bytes), "/" + folder + "size"};
  }
  return {fallback, "assumed: sysfs describes no level " + std::to_string(level) + " cache"};
}

/// Peak rates of one core, from instruction set, family and clock.
void estimateRates(const std::string &root, Device &device) {
  std::string info = readSmallFile(root + "proc/cpuinfo");
  std::string flags = " " + field(info, "flags") + " ";
  auto has = [&](const char *flag) { return flags.find(" " + std::string(flag) + " ") != std::string::npos; };
  bool avx512 = has("avx512f") && has("avx512vl") && has("avx512bw");
  int64_t lanes = avx512 ? 16 : has("avx2") ? 8 : 4;
  // Zen 4 (AMD family 25) runs 512-bit instructions through 256-bit pipes.
  bool halfWidth = avx512 && field(info, "vendor_id") == "AuthenticAMD" && field(info, "cpu family") == "25";
  int64_t pipes = halfWidth ? 1 : 2;
  double megahertz = std::atof(field(info, "cpu MHz").c_str());
  std::string clock = " MHz of /proc/cpuinfo";
  if (!(megahertz > 0)) {
    megahertz = 2000;
    clock = " MHz assumed";
  }
  std::string source = "estimate: " + std::to_string(pipes) + " fused multiply-adds of " + std::to_string(lanes) +
                       " lanes a cycle at " + std::to_string(int64_t(megahertz)) + clock;
  double rate = double(2 * lanes * pipes) * megahertz * 1e6;
  device.f32 = {FlopRate(rate), source};
  device.bf16 = {FlopRate(has("avx512_bf16") ? 2 * rate : rate), has("avx512_bf16")
                                                                     ? "twice the f32 rate (vdpbf16ps): " + source
                                                                     : "the f32 rate: no bf16 dot product"};
}

} // namespace

std::vector<int64_t> numaCores(const std::vector<int64_t> &processors, int64_t cores) {
  // Core c of fewer than there are processors is on the node of processor c * P / cores, as workers are.
  std::vector<int64_t> counts;
  int64_t before = 0, seen = 0, all = std::accumulate(processors.begin(), processors.end(), int64_t(0));
  for (int64_t node : processors) {
    before += node;
    int64_t through = (before * cores + all - 1) / all; // cores c with c * all / cores < before
    if (through > seen)
      counts.push_back(through - seen);
    seen = through;
  }
  return counts.size() > 1 ? counts : std::vector<int64_t>();
}

Topology hostTopology(const std::string &root) {
  Topology topology;
  topology.name = "host";
  topology.description = "this machine's CPU, one process";
  Device &device = topology.device;
  const Container container = readContainer(root);
  device.cores = container.defaultThreads;
  std::vector<int64_t> processors;
  for (const Node &node : container.nodes)
    processors.push_back(int64_t(node.processors.size()));
  device.numa = numaCores(processors, device.cores);
  device.memory = {Bytes(container.memoryBytes), container.memorySource};
  // One thread of the measured VM reads 43 GB/s, two 54; a larger machine is at least as fast.
  device.memoryRead = {Bandwidth(device.cores == 1 ? 43e9 : 54e9),
                       "assumed: measured on a 2-core Zen 5 VM; `k2c calibrate` measures this machine"};
  estimateRates(root, device);
  device.l1 = cache(root, 1, kibibytes(32));
  device.l2 = cache(root, 2, mebibytes(1));
  device.l3 = cache(root, 3, mebibytes(16));
  return topology;
}

} // namespace k2c
