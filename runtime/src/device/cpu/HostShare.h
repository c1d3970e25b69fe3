// What one of several ranks on a machine may use of it.
#ifndef K2RT_DEVICE_CPU_HOSTSHARE_H
#define K2RT_DEVICE_CPU_HOSTSHARE_H

#include "base/Container.h"
#include <cstdint>

namespace k2c::runtime {

/// Rank `index` of `ranks` on this host.
struct HostShare {
  int32_t index = 0, ranks = 1;

  /// Whether each rank has processors of its own.
  bool isApart(const Container &host) const { return ranks > 1 && processorsOf(host) >= ranks; }
  /// Whether the host has fewer processors than `threads` of each rank.
  bool isCrowded(const Container &host, int32_t threads) const {
    return int64_t(threads) * ranks > host.defaultThreads;
  }

private:
  static int64_t processorsOf(const Container &host) { return static_cast<int64_t>(host.processors.size()); }
};

/// The processors of the share, [index * P / ranks, (index + 1) * P / ranks) of the P of `host` in the order of its
/// nodes; all of them where there are fewer than ranks. Memory is that of the host. At least one thread by default.
Container partOf(const Container &host, const HostShare &share);

/// How often a thread of a rank with so many workers polls before it sleeps: not at all where the host has fewer
/// processors than workers and communication threads.
int32_t spinsOf(const HostShare &share, const Container &host, int32_t workers);

} // namespace k2c::runtime

#endif
