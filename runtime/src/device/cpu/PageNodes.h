// On which NUMA node memory lies: asked of the system page by page, never assumed.
#ifndef K2RT_DEVICE_CPU_PAGENODES_H
#define K2RT_DEVICE_CPU_PAGENODES_H

#include <cstddef>
#include <cstdint>

namespace k2c::runtime {

/// What the system said of some pages.
struct PageCounts {
  int64_t asked = 0;
  int64_t told = 0;      ///< are resident; the system named their node
  int64_t elsewhere = 0; ///< of these, on another node than wanted
  int refusal = 0;       ///< errno, when the system tells nothing (a container's seccomp filter: EPERM); 0: it told

  void add(const PageCounts &other);
};

/// Nodes of `count` pages, or a negative errno each; returns 0 or an errno. move_pages(2), except in tests.
using PageQuery = int (*)(size_t count, void **pages, int *nodes);
int queryPages(size_t count, void **pages, int *nodes);

/// Asks for the page of every `stride`-th byte of [base, base + bytes), the first included. `stride` is a multiple of
/// 4096. Stops at a refusal.
PageCounts countPages(const std::byte *base, int64_t bytes, int64_t stride, int32_t node, PageQuery query = queryPages);

} // namespace k2c::runtime

#endif
