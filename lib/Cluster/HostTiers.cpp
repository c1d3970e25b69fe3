//===- HostTiers.cpp - How the processors of this machine are joined ------===//
//
// Every processor has a path: socket, NUMA node, last cache, core, as sysfs tells. Units that have the same path up to
// a level are joined there. Paths nest by construction, also where a cache spans several NUMA nodes.
//
//===----------------------------------------------------------------------===//
#include "k2c/Cluster/HostTiers.h"
#include "base/SmallFile.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

namespace k2c {

namespace {

/// Names of the levels, the outermost first; a processor is the innermost unit of all.
constexpr std::array<const char *, 5> levels = {"node", "socket", "numa", "cache", "core"};
using Path = std::array<std::string, levels.size()>;

/// The processors that share the cache of the highest level.
std::string lastCache(const std::string &folder) {
  std::string level, sharers;
  for (int index = 0; index < 8; ++index) {
    std::string cache = folder + "cache/index" + std::to_string(index) + "/", found = readFirstLine(cache + "level");
    if (found > level) {
      level = found;
      sharers = readFirstLine(cache + "shared_cpu_list");
    }
  }
  return sharers;
}

/// The NUMA node that a processor's folder links to.
std::string numaNode(const std::string &folder) {
  std::error_code missing;
  std::filesystem::directory_iterator entries(folder, missing), end;
  for (; entries != end && !missing; entries.increment(missing))
    if (std::string name = entries->path().filename(); name.rfind("node", 0) == 0)
      return name;
  return "";
}

/// What cannot be read is as the level inside it, so that the processors are joined further out.
Path pathOf(const std::string &root, int processor) {
  std::string folder = root + "sys/devices/system/cpu/cpu" + std::to_string(processor) + "/";
  Path path = {"", readFirstLine(folder + "topology/physical_package_id"), numaNode(folder), lastCache(folder),
               readFirstLine(folder + "topology/thread_siblings_list")};
  for (size_t level = levels.size(); level-- > 1;)
    if (path[level].empty())
      path[level] = level + 1 < levels.size() ? path[level + 1] : "processor " + std::to_string(processor);
  return path;
}

} // namespace

std::vector<HostTier> hostTiers(const std::vector<int> &processors, const std::string &root) {
  std::vector<std::pair<std::vector<std::string>, int>> units; ///< path and first processor of each
  for (int processor : processors) {
    Path path = pathOf(root, processor);
    std::vector<std::string> whole(path.begin(), path.end());
    whole.push_back(std::to_string(processor));
    units.push_back({std::move(whole), processor});
  }
  std::vector<HostTier> tiers;
  for (size_t level = levels.size(); level-- > 0;) {
    std::map<std::vector<std::string>, std::vector<int>> joined;
    for (auto &[path, first] : units) {
      path.resize(level + 1);
      joined[path].push_back(first);
    }
    const std::vector<int> *largest = nullptr;
    for (const auto &[path, firsts] : joined)
      if (!largest || firsts.size() > largest->size())
        largest = &firsts;
    if (largest && largest->size() > 1)
      tiers.push_back({levels[level], int64_t(largest->size()), (*largest)[0], (*largest)[1]});
    units.clear();
    for (const auto &[path, firsts] : joined)
      units.push_back({path, firsts.front()});
  }
  return tiers;
}

} // namespace k2c
