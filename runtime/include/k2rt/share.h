/* How work is shared out among workers, and with it the bytes of weights that each of them reads.
 *
 * A launch gives worker w of T the items [w*n/T, (w+1)*n/T). A weight that kernels read item by item is a block of
 * `items` items of `item_bytes` bytes, one behind the other in memory. Weights of routed experts are `experts` such
 * blocks, each at an address of its own, and item `index` of expert `expert` is number index * experts + expert of the
 * launch. So a worker reads a range of items of every expert, which does not depend on the step; workers are numbered
 * NUMA node by NUMA node, so a node reads one, too.
 * A step with more rows than an item of the kernel takes shares out its blocks of rows as well; then workers also read
 * what others own. Manifest: "shares".
 */
#ifndef K2RT_SHARE_H
#define K2RT_SHARE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a weight slot is read. experts = 0: a block of its own, no routed experts. items = 0: by no rule that is known
 * before the step (embedding rows, norms, tables). */
typedef struct k2rt_share {
  int64_t experts, items, item_bytes;
} k2rt_share;

/* The blocks of a slot: one for each expert, or the only one. */
static inline int64_t k2rt_share_blocks(const k2rt_share *share) { return share->experts > 0 ? share->experts : 1; }

/* The first of `items` items that worker `worker` of `workers` works on; its last one is before that of the next. */
static inline int64_t k2rt_share_begin(int64_t items, int64_t worker, int64_t workers) {
  return items * worker / workers;
}

/* The first item of block `block` that worker `worker` of `workers` reads, within 0 .. items. */
static inline int64_t k2rt_block_begin(const k2rt_share *share, int64_t block, int64_t worker, int64_t workers) {
  const int64_t blocks = k2rt_share_blocks(share), begin = k2rt_share_begin(blocks * share->items, worker, workers);
  return begin <= block ? 0 : (begin - block + blocks - 1) / blocks;
}

/* Bytes that the workers [first, last) of `workers` read. */
static inline int64_t k2rt_share_bytes(const k2rt_share *share, int64_t first, int64_t last, int64_t workers) {
  const int64_t items = k2rt_share_blocks(share) * share->items;
  return (k2rt_share_begin(items, last, workers) - k2rt_share_begin(items, first, workers)) * share->item_bytes;
}

#ifdef __cplusplus
}
#endif
#endif
