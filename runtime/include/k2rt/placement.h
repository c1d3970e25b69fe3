/* Where the experts of a layer are, as kernels of a rank read it, where that rank sends its tokens, and the parts of
 * the sum of experts (numerics N5) that a rank, or the ranks of a node, can add up alone.
 *
 *   table   expert_of_slot[slots]     of all ranks, nodes in a row; -1: the slot is empty
 *           part_subtree[experts]
 *           rank_subtree[experts]
 *           node_subtree[experts]
 *           first_place[experts + 1]  of an expert's places, and their end
 *           place[slots]              physical slots: rank * slots of a rank + slot
 *
 * An expert may be in several slots, on different ranks. Its places are those that tokens of the table's rank may go
 * to: its slot on their own rank, else one on their own node, else one on each node that has it, beginning with another
 * one for each rank. A token goes to the first of them on a node that it cannot avoid, because it has chosen an expert
 * with one place there; to the first of all where there is none (k2rt_placement_slot). So what a token does depends on
 * its experts, on its rank and on this table alone.
 *
 * N5's tree has `leaves` leaves of equally many experts. Experts of an aligned subtree that are on the same holders,
 * ranks or nodes, go to one of these together, which sends one row for those of them that a token chose. The subtree of
 * an expert is the first expert of the largest such subtree around it; the expert itself, where its leaf is divided:
 * sums inside a leaf are a chain, and a chain has no parts.
 *
 * Where ranks next to each other have parts of the same experts, a rank here is all of these together. One of them has
 * no subtree whole: each expert is one of its own.
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

/* A layer's table: its entries, and where its parts begin. Places are first_place and what follows it. */
static inline int64_t k2rt_placement_part_subtree(int64_t slots) { return slots; }
static inline int64_t k2rt_placement_rank_subtree(int64_t experts, int64_t slots) { return slots + experts; }
static inline int64_t k2rt_placement_node_subtree(int64_t experts, int64_t slots) { return slots + 2 * experts; }
static inline int64_t k2rt_placement_places(int64_t experts, int64_t slots) { return slots + 3 * experts; }
static inline int64_t k2rt_places_entries(int64_t experts, int64_t slots) { return experts + 1 + slots; }
static inline int64_t k2rt_placement_entries(int64_t experts, int64_t slots) {
  return k2rt_placement_places(experts, slots) + k2rt_places_entries(experts, slots);
}

/* The slot of choice `k` of a token that chose `top` experts, -1: none; -1 where the choice is none. `slots_of_node`
 * are those of all ranks of a node. */
static inline int32_t k2rt_placement_slot(const int32_t *places, int64_t experts, int64_t slots_of_node,
                                          const int32_t *chosen, int64_t top, int64_t k) {
  const int32_t *slot = places + experts + 1;
  if (chosen[k] < 0)
    return -1;
  const int32_t first = places[chosen[k]], end = places[chosen[k] + 1];
  for (int32_t place = first; place < end && end - first > 1; ++place)
    for (int64_t other = 0; other < top; ++other)
      if (chosen[other] >= 0 && places[chosen[other] + 1] - places[chosen[other]] == 1 &&
          slot[places[chosen[other]]] / slots_of_node == slot[place] / slots_of_node)
        return slot[place];
  return slot[first];
}

/* Whether two experts, of whose slots places has all, by number, are on the same holders of `slots_of_holder` each. */
static inline int k2rt_placement_go_together(const int32_t *places, int64_t experts, int64_t slots_of_holder, int64_t a,
                                             int64_t b) {
  const int32_t *slot = places + experts + 1;
  int32_t i = places[a], j = places[b];
  while (i < places[a + 1] && j < places[b + 1]) {
    const int64_t holder = slot[i] / slots_of_holder;
    if (holder != slot[j] / slots_of_holder)
      return 0;
    while (i < places[a + 1] && slot[i] / slots_of_holder == holder)
      ++i;
    while (j < places[b + 1] && slot[j] / slots_of_holder == holder)
      ++j;
  }
  return i == places[a + 1] && j == places[b + 1];
}

/* The subtrees of holders of `slots_of_holder` slots each; places has all slots. */
static inline void k2rt_placement_subtrees(int32_t *subtree, const int32_t *places, int64_t experts,
                                           int64_t slots_of_holder) {
  for (int64_t expert = 0; expert < experts; ++expert)
    subtree[expert] = (int32_t)expert;
  for (int64_t width = experts / k2rt_combine_leaves(experts); width <= experts; width *= 2)
    for (int64_t first = 0; first < experts; first += width) {
      int64_t end = first + 1;
      while (end < first + width && k2rt_placement_go_together(places, experts, slots_of_holder, first, end))
        ++end;
      for (int64_t expert = first; end == first + width && expert < end; ++expert)
        subtree[expert] = (int32_t)first;
    }
}

/* All slots of all experts, by number. */
static inline void k2rt_placement_list(int32_t *places, const int32_t *expert_of_slot, int64_t experts, int64_t slots) {
  int32_t count = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    places[expert] = count;
    for (int64_t slot = 0; slot < slots; ++slot)
      if (expert_of_slot[slot] == expert)
        places[experts + 1 + count++] = (int32_t)slot;
  }
  places[experts] = count;
}

/* Writes to `to` which of an expert's slots [first, end), all or those of a node, its tokens of `rank` go to: one of
 * each node. Their number. */
static inline int64_t k2rt_placement_one_of_each_node(int32_t *to, const int32_t *first, const int32_t *end,
                                                      int64_t slots_of_node, int64_t rank) {
  int64_t nodes = 0;
  for (const int32_t *at = first, *next; at < end; at = next, ++nodes)
    for (next = at; next < end && *next / slots_of_node == *at / slots_of_node;)
      ++next;
  int64_t node = 0;
  for (const int32_t *at = first, *next; at < end; at = next, ++node) {
    for (next = at; next < end && *next / slots_of_node == *at / slots_of_node;)
      ++next;
    to[(node + nodes - rank % nodes) % nodes] = at[rank % (next - at)];
  }
  return nodes;
}

/* The places of experts for tokens of `rank`; `list` has all slots of all experts. */
static inline void k2rt_placement_choose(int32_t *places, const int32_t *list, int64_t experts, int64_t slots,
                                         int64_t ranks, int64_t nodes, int64_t rank) {
  const int64_t of_rank = slots / ranks, of_node = slots / nodes, node = rank * of_rank / of_node;
  int32_t *const slot = places + experts + 1, *to = slot;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const int32_t *first = list + experts + 1 + list[expert], *end = list + experts + 1 + list[expert + 1];
    const int32_t *here = first, *past, *own = 0;
    while (here < end && *here / of_node < node)
      ++here;
    for (past = here; past < end && *past / of_node == node; ++past)
      own = *past / of_rank == rank ? past : own;
    if (own)
      here = own, past = own + 1;
    else if (here == past)
      here = first, past = end;
    places[expert] = (int32_t)(to - slot);
    to += k2rt_placement_one_of_each_node(to, here, past, of_node, rank);
  }
  places[experts] = (int32_t)(to - slot);
}

/* Fills the rest of a layer's table from its expert_of_slot, for tokens of `rank`. `slots` are those of all ranks, each
 * of the `ranks` has equally many, and each of the `nodes` equally many ranks; each expert is in a slot. `list`: room
 * for k2rt_places_entries, in which all slots of all experts are left. */
static inline void k2rt_placement_fill(int32_t *table, int32_t *list, int64_t experts, int64_t slots, int64_t ranks,
                                       int64_t nodes, int64_t rank) {
  k2rt_placement_list(list, table, experts, slots);
  for (int64_t expert = 0; expert < experts; ++expert)
    table[k2rt_placement_part_subtree(slots) + expert] = (int32_t)expert;
  k2rt_placement_subtrees(table + k2rt_placement_rank_subtree(experts, slots), list, experts, slots / ranks);
  k2rt_placement_subtrees(table + k2rt_placement_node_subtree(experts, slots), list, experts, slots / nodes);
  k2rt_placement_choose(table + k2rt_placement_places(experts, slots), list, experts, slots, ranks, nodes, rank);
}

#ifdef __cplusplus
}
#endif
#endif
