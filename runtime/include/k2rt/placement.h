/* Where the experts of a layer are, as kernels read it, and the parts of the sum of experts (numerics N5) that a rank
 * can add up alone.
 *
 *   table   slot_of_expert[experts]   physical slot: rank * slots of a rank + slot
 *           expert_of_slot[slots]     of all ranks; -1: the slot is empty
 *           subtree_of_expert[experts]
 *
 * N5's tree has `leaves` leaves of equally many experts. A rank that holds all experts of an aligned subtree sends one
 * row for those of them that a token chose. subtree_of_expert is the first expert of the largest such subtree around
 * an expert; the expert itself, where its leaf is divided: sums inside a leaf are a chain, and a chain has no parts.
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
 * (f32); the slot is that of the receiving rank, -1: of another. */
static inline int64_t k2rt_choices_offset(int64_t row_bytes) { return (row_bytes + 7) / 8 * 8; }
static inline int64_t k2rt_message_bytes(int64_t row_bytes, int64_t top) {
  return k2rt_choices_offset(row_bytes) + 8 * top;
}

/* Entries of a layer's table. */
static inline int64_t k2rt_placement_entries(int64_t experts, int64_t slots) { return 2 * experts + slots; }

/* Fills the rest of a layer's table from its expert_of_slot. `slots` are those of all ranks, `ranks` of them equally
 * many; each expert is in one slot. */
static inline void k2rt_placement_fill(int32_t *table, int64_t experts, int64_t slots, int64_t ranks) {
  int32_t *slot_of_expert = table, *subtree_of_expert = table + experts + slots;
  const int32_t *expert_of_slot = table + experts;
  const int64_t slots_of_rank = slots / ranks;
  for (int64_t slot = 0; slot < slots; ++slot)
    if (expert_of_slot[slot] >= 0)
      slot_of_expert[expert_of_slot[slot]] = (int32_t)slot;
  for (int64_t expert = 0; expert < experts; ++expert)
    subtree_of_expert[expert] = (int32_t)expert;
  for (int64_t width = experts / k2rt_combine_leaves(experts); width <= experts; width *= 2)
    for (int64_t first = 0; first < experts; first += width) {
      const int64_t rank = slot_of_expert[first] / slots_of_rank;
      int64_t end = first + 1;
      while (end < first + width && slot_of_expert[end] / slots_of_rank == rank)
        ++end;
      for (int64_t expert = first; end == first + width && expert < end; ++expert)
        subtree_of_expert[expert] = (int32_t)first;
    }
}

#ifdef __cplusplus
}
#endif
#endif
