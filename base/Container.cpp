// cgroup files are read along the whole path from the process's own group to the root: any ancestor may bind.
#include "base/Container.h"
#include "base/Processors.h"
#include "base/SmallFile.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace k2c {

namespace {

constexpr int64_t unlimited = INT64_MAX;

/// A number of bytes at the start of a file; `unlimited` for "max", nothing, or what is no number.
int64_t readLimit(const std::string &path) {
  const std::string text = readSmallFile(path);
  char *end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  return end == text.c_str() || value <= 0 ? unlimited : value;
}

/// The number after `key` in a "key: value kB" or "key value" file; -1 when absent.
int64_t readKeyed(const std::string &text, const std::string &key) {
  size_t at = text.compare(0, key.size(), key) == 0 ? 0 : text.find("\n" + key);
  if (at == std::string::npos)
    return -1;
  at = text.find_first_of("0123456789", at + key.size());
  return at == std::string::npos ? -1 : std::strtoll(text.c_str() + at, nullptr, 10);
}

/// The group path of a controller in /proc/self/cgroup ("" = the v2 line).
std::string groupPath(const std::string &cgroups, const std::string &controller) {
  size_t begin = 0;
  while (begin < cgroups.size()) {
    const size_t end = std::min(cgroups.find('\n', begin), cgroups.size());
    const std::string line = cgroups.substr(begin, end - begin);
    begin = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names == ",," ? controller.empty() : names.find("," + controller + ",") != std::string::npos)
      return line.substr(second + 1);
  }
  return "/";
}

/// Folders from the process's group up to the mount, nearest first. A container often sees only the mount.
std::vector<std::string> ancestors(const std::string &mount, std::string group) {
  std::vector<std::string> folders;
  while (group.size() > 1) {
    folders.push_back(mount + group);
    group.resize(group.find_last_of('/'));
  }
  folders.push_back(mount);
  return folders;
}

void readMemory(const std::string &root, const std::string &cgroups, Container &container) {
  const std::string meminfo = readSmallFile(root + "proc/meminfo");
  container.memoryBytes = std::max<int64_t>(readKeyed(meminfo, "MemTotal:"), 0) * 1024;
  container.availableBytes = std::max<int64_t>(readKeyed(meminfo, "MemAvailable:"), 0) * 1024;
  container.memorySource = "MemTotal of /proc/meminfo";
  auto consider = [&](const std::string &folder, const char *limitFile, const char *usageFile, const char *cacheKey,
                      const char *sharedKey) {
    const int64_t limit = readLimit(folder + limitFile);
    if (limit == unlimited)
      return;
    const int64_t usage = readLimit(folder + usageFile);
    const std::string statistics = readSmallFile(folder + "/memory.stat");
    auto bytesOf = [&](const char *key) { return std::max<int64_t>(readKeyed(statistics, key), 0); };
    const int64_t reclaimable = std::max<int64_t>(bytesOf(cacheKey) - bytesOf(sharedKey), 0);
    const int64_t used = usage == unlimited ? 0 : std::max<int64_t>(usage - reclaimable, 0);
    container.availableBytes = std::min(container.availableBytes, std::max<int64_t>(limit - used, 0));
    if (limit >= container.memoryBytes)
      return;
    container.memoryBytes = limit;
    container.memorySource = "/" + (folder + limitFile).substr(root.size());
  };
  for (const std::string &folder : ancestors(root + "sys/fs/cgroup", groupPath(cgroups, "")))
    consider(folder, "/memory.max", "/memory.current", "file ", "shmem ");
  for (const std::string &folder : ancestors(root + "sys/fs/cgroup/memory", groupPath(cgroups, "memory")))
    consider(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_cache ", "total_shmem ");
}

/// The smallest CPU quota along the path, in processors; 0 without one.
double readQuota(const std::string &root, const std::string &cgroups) {
  double smallest = 0;
  auto consider = [&](double quota, double period) {
    if (quota > 0 && period > 0 && (smallest == 0 || quota / period < smallest))
      smallest = quota / period;
  };
  for (const std::string &folder : ancestors(root + "sys/fs/cgroup", groupPath(cgroups, ""))) {
    double quota = 0, period = 0;
    if (std::sscanf(readSmallFile(folder + "/cpu.max").c_str(), "%lf %lf", &quota, &period) == 2)
      consider(quota, period);
  }
  for (const std::string &folder : ancestors(root + "sys/fs/cgroup/cpu", groupPath(cgroups, "cpu")))
    consider(std::atof(readSmallFile(folder + "/cpu.cfs_quota_us").c_str()),
             std::atof(readSmallFile(folder + "/cpu.cfs_period_us").c_str()));
  return smallest;
}

} // namespace

Container readContainer(const std::string &root) {
  Container container;
  container.processors = ownProcessors(); // the mask already reflects cpuset limits
  if (container.processors.empty())
    container.processors.push_back(0);
  container.nodes = readNodes(container.processors, root);
  const std::string cgroups = readSmallFile(root + "proc/self/cgroup");
  container.quota = readQuota(root, cgroups);
  container.defaultThreads = static_cast<int32_t>(container.processors.size());
  if (container.quota > 0)
    container.defaultThreads =
        static_cast<int32_t>(std::min<double>(container.defaultThreads, std::max(1.0, std::ceil(container.quota))));
  readMemory(root, cgroups, container);
  return container;
}

int64_t anonymousResidentBytes() {
  return std::max<int64_t>(readKeyed(readSmallFile("/proc/self/status"), "RssAnon:"), 0) * 1024;
}

std::optional<int64_t> hugeFileBytes() {
  const int64_t kibibytes = readKeyed(readSmallFile("/proc/self/smaps_rollup"), "FilePmdMapped:");
  return kibibytes < 0 ? std::nullopt : std::optional<int64_t>(kibibytes * 1024);
}

int64_t peakResidentBytes() {
  return std::max<int64_t>(readKeyed(readSmallFile("/proc/self/status"), "VmHWM:"), 0) * 1024;
}

} // namespace k2c
