/* Where the experts of a layer are, as kernels read it, and the parts of the sum of experts (numerics N5) that a rank,
 * or the ranks of a node, can add up alone.
 *
 *   table   slot_of_expert[experts]   physical slot: rank * slots of a rank + slot
 *           expert_of_slot[slots]     of all ranks, nodes in a row; -1: the slot is empty
 *           rank_subtree[experts]
 *           node_subtree[experts]
 *
 * N5's tree has `leaves` leaves of equally many experts. A holder, a rank or a node, that has all experts of an aligned
 * subtree sends one row for those of them that a token chose. Its subtree of an expert is the first expert of the
 * largest such subtree around it; the expert itself, where its leaf is divided: sums inside a leaf are a chain, and a
 * chain has no parts.
 */
#ifndef K2RT_PLACEMENT_H
#define K2RT_PLACEMENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* N5: the largest power of two that divides the experts, at most 128. */
static inline int64_t k2rt_combine_leaves(int64_t experts) {
  int64_t leaves = 1;
  while (leaves < 128 && experts % (2 * leaves) == 0)
    leaves *= 2;
  return leaves;
}

/* A message is a token's row and then, for each of the token's `top` choices, the slot (int32) and the router weight
 * (f32); the slot is that of the holder to which it goes, -1: of another. */
static inline int64_t k2rt_choices_offset(int64_t row_bytes) { return (row_bytes + 7) / 8 * 8; }
static inline int64_t k2rt_message_bytes(int64_t row_bytes, int64_t top) {
  return k2rt_choices_offset(row_bytes) + 8 * top;
}

/* A layer's table: its entries, and where its parts begin. */
static inline int64_t k2rt_placement_entries(int64_t experts, int64_t slots) { return 3 * experts + slots; }
static inline int64_t k2rt_placement_held(int64_t experts) { return experts; }
static inline int64_t k2rt_placement_rank_subtree(int64_t experts, int64_t slots) { return experts + slots; }
static inline int64_t k2rt_placement_node_subtree(int64_t experts, int64_t slots) { return 2 * experts + slots; }

/* The subtrees that holders of `slots_of_holder` slots each have whole. */
static inline void k2rt_placement_subtrees(int32_t *subtree, const int32_t *slot_of_expert, int64_t experts,
                                           int64_t slots_of_holder) {
  for (int64_t expert = 0; expert < experts; ++expert)
    subtree[expert] = (int32_t)expert;
  for (int64_t width = experts / k2rt_combine_leaves(experts); width <= experts; width *= 2)
    for (int64_t first = 0; first < experts; first += width) {
      const int64_t holder = slot_of_expert[first] / slots_of_holder;
      int64_t end = first + 1;
      while (end < first + width && slot_of_expert[end] / slots_of_holder == holder)
        ++end;
      for (int64_t expert = first; end == first + width && expert < end; ++expert)
        subtree[expert] = (int32_t)first;
    }
}

/* Fills the rest of a layer's table from its expert_of_slot. `slots` are those of all ranks, each of the `ranks` has
 * equally many, and each of the `nodes` equally many ranks; each expert is in one slot. */
static inline void k2rt_placement_fill(int32_t *table, int64_t experts, int64_t slots, int64_t ranks, int64_t nodes) {
  const int32_t *expert_of_slot = table + k2rt_placement_held(experts);
  for (int64_t slot = 0; slot < slots; ++slot)
    if (expert_of_slot[slot] >= 0)
      table[expert_of_slot[slot]] = (int32_t)slot;
  k2rt_placement_subtrees(table + k2rt_placement_rank_subtree(experts, slots), table, experts, slots / ranks);
  k2rt_placement_subtrees(table + k2rt_placement_node_subtree(experts, slots), table, experts, slots / nodes);
}

#ifdef __cplusplus
}
#endif
#endif
