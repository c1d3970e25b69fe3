/* How work is shared out among workers, and with it the bytes of weights that each of them reads.
 *
 * A launch gives worker w of T the items [w*n/T, (w+1)*n/T). A weight that kernels read item by item is `groups` blocks
 * (experts; 1 where there are none) of `items` items of `item_bytes` bytes, one behind the other in memory, and item
 * `index` of group `group` is number index * groups + group of the launch. So a worker reads a range of items of every
 * group, which does not depend on the step; workers are numbered NUMA node by NUMA node, so a node reads one, too.
 * A step with more rows than an item of the kernel takes shares out its blocks of rows as well; then workers also read
 * what others own. Manifest: "shares".
 */
#ifndef K2RT_SHARE_H
#define K2RT_SHARE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a weight slot is read. items = 0: by no rule that is known before the step (embedding rows, norms, tables). */
typedef struct k2rt_share {
  int64_t groups, items, item_bytes;
} k2rt_share;

/* The first of `items` items that worker `worker` of `workers` works on; its last one is before that of the next. */
static inline int64_t k2rt_share_begin(int64_t items, int64_t worker, int64_t workers) {
  return items * worker / workers;
}

/* The first item of group `group` that worker `worker` of `workers` reads, within 0 .. items. */
static inline int64_t k2rt_group_begin(const k2rt_share *share, int64_t group, int64_t worker, int64_t workers) {
  const int64_t begin = k2rt_share_begin(share->groups * share->items, worker, workers);
  return begin <= group ? 0 : (begin - group + share->groups - 1) / share->groups;
}

/* Bytes that the workers [first, last) of `workers` read. */
static inline int64_t k2rt_share_bytes(const k2rt_share *share, int64_t first, int64_t last, int64_t workers) {
  const int64_t items = share->groups * share->items;
  return (k2rt_share_begin(items, last, workers) - k2rt_share_begin(items, first, workers)) * share->item_bytes;
}

#ifdef __cplusplus
}
#endif
#endif
