// What this process may use: processors and memory, as the container (cgroup v1 or v2) and the system allow. The
// compiler's host topology is made of the same readings.
#ifndef K2C_BASE_CONTAINER_H
#define K2C_BASE_CONTAINER_H

#include "base/Nodes.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace k2c {

/// Limits in force, and the one that binds.
struct Container {
  std::vector<int> processors; ///< numbers this process may be scheduled on, ascending; never empty
  std::vector<Node> nodes;     ///< the same by NUMA node; one where memory is equally near to all
  double quota = 0;            ///< the smallest CPU quota, in processors; 0 without one
  int32_t defaultThreads = 1;  ///< processors, fewer when the quota, rounded up, allows fewer
  int64_t memoryBytes = 0;     ///< most memory: the cgroup's limit or the machine's
  int64_t availableBytes = 0;  ///< of it, what is free or can be reclaimed now
  std::string memorySource;    ///< file or call the limit came from
};

/// Reads the limits. `root` is "/" except in tests, which lay out proc and sys files below a folder of their own; the
/// processors always come from the kernel.
Container readContainer(const std::string &root = "/");

/// Anonymous resident bytes of this process (RssAnon of /proc/self/status); 0 when it cannot be read.
int64_t anonymousResidentBytes();
/// Bytes of files that this process has mapped in huge pages (FilePmdMapped of /proc/self/smaps_rollup); none when the
/// system does not tell. Takes as long as walking all page tables.
std::optional<int64_t> hugeFileBytes();
/// Peak resident bytes of this process, file pages included (VmHWM).
int64_t peakResidentBytes();

} // namespace k2c

#endif
