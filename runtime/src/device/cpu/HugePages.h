// Which pages lie in huge ones: asked of the system page by page.
//
// /proc/self/smaps_rollup has the sum, but walks every page table to make it: 45 ms for each GiB of small pages
// (2 vCPU Zen 5), which is 23 s at the start of a model of 512 GiB. A sample costs 3 us whatever is mapped.
#ifndef K2RT_DEVICE_CPU_HUGEPAGES_H
#define K2RT_DEVICE_CPU_HUGEPAGES_H

#include <cstddef>

namespace k2c::runtime {

/// Whether each of `count` pages (any address in it) is mapped as part of a huge page; returns 0 or an errno.
/// The PAGEMAP_SCAN call of Linux 6.7, except in tests; ENOTTY on an older system.
using HugePageQuery = int (*)(size_t count, const void *const *pages, bool *huge);
int queryHugePages(size_t count, const void *const *pages, bool *huge);

} // namespace k2c::runtime

#endif
