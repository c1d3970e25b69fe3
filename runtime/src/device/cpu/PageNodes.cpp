// move_pages without target nodes moves nothing: it tells the node of each page. Asked in small batches on the stack,
// because a worker's stack is part of the memory certificate.
#include "device/cpu/PageNodes.h"
#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

namespace k2c::runtime {

void PageCounts::add(const PageCounts &other) {
  asked += other.asked;
  told += other.told;
  elsewhere += other.elsewhere;
  refusal = refusal ? refusal : other.refusal;
}

int queryPages(size_t count, void **pages, int *nodes) {
  return ::syscall(SYS_move_pages, 0, count, pages, nullptr, nodes, 0) < 0 ? errno : 0;
}

PageCounts countPages(const std::byte *base, int64_t bytes, int64_t stride, int32_t node, PageQuery query) {
  constexpr int64_t batch = 128;
  void *pages[batch];
  int found[batch];
  PageCounts pageCounts;
  for (int64_t first = 0; first < bytes; first += batch * stride) {
    int64_t count = 0;
    for (int64_t at = first; at < bytes && count < batch; at += stride)
      pages[count++] = const_cast<std::byte *>(base + at);
    pageCounts.refusal = query(static_cast<size_t>(count), pages, found);
    if (pageCounts.refusal)
      return pageCounts;
    pageCounts.asked += count;
    for (int64_t i = 0; i < count; ++i) {
      pageCounts.told += found[i] >= 0;
      pageCounts.elsewhere += found[i] >= 0 && found[i] != node;
    }
  }
  return pageCounts;
}

} // namespace k2c::runtime
