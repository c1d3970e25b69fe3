/* What a token sends to the experts of a layer and gets back: the rule by which programs exchange rows, as a count.
 * The runtime's counters and the planner share it; placement.h says where experts are and how their rows are added up.
 *
 *   one hop    home rank -> each other rank that has experts of the token -> a row for each subtree that it has whole
 *   two hops   home rank -> the rank in its place on each other node (rail) -> each other rank there (node), and back:
 *              a rank sends its subtrees' rows to the rank through which the token came, a node its subtrees' to home
 *
 * A row is counted once a hop, at its sender. What a rank has itself is not sent.
 */
#ifndef K2RT_TRAFFIC_H
#define K2RT_TRAFFIC_H

#include "k2rt/placement.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a layer's experts are divided: `slots` are those of all ranks. */
typedef struct {
  int64_t experts, slots, ranks, nodes;
  int64_t two_hop; /* 0: tokens cross to ranks */
} k2rt_division;

/* Rows by tier: 0 within a node, 1 between nodes. */
typedef struct {
  int64_t sent[2], back[2];
  int64_t nodes; /* that have experts of the token */
} k2rt_token_rows;

/* The rows of a token whose sequence is on `source`, whose experts are `chosen` and computed in `slot`
 * (k2rt_placement_slot); by a layer's table, of any rank. */
static inline k2rt_token_rows k2rt_rows_of_token(const int32_t *table, const k2rt_division *by, int64_t source,
                                                 const int32_t *chosen, const int32_t *slot, int64_t count) {
  const int32_t *rank_subtree = table + k2rt_placement_rank_subtree(by->experts, by->slots);
  const int32_t *node_subtree = table + k2rt_placement_node_subtree(by->experts, by->slots);
  const int64_t rank_slots = by->slots / by->ranks, node_ranks = by->ranks / by->nodes;
  k2rt_token_rows rows = {{0, 0}, {0, 0}, 0};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t rank = slot[i] / rank_slots;
    const int64_t node = rank / node_ranks;
    int64_t new_rank = 1, new_node = 1, new_rank_row = 1, new_node_row = 1; /* until an earlier choice has it, too */
    for (int64_t j = 0; j < i; ++j) {
      const int64_t other = slot[j] / rank_slots;
      if (other / node_ranks != node)
        continue;
      new_node = 0;
      new_node_row &= node_subtree[chosen[j]] != node_subtree[chosen[i]];
      if (other != rank)
        continue;
      new_rank = 0;
      new_rank_row &= rank_subtree[chosen[j]] != rank_subtree[chosen[i]];
    }
    const int64_t home = source / node_ranks;
    const int64_t entry = by->two_hop ? node * node_ranks + source % node_ranks : source;
    rows.nodes += new_node;
    if (by->two_hop && node != home) {
      rows.sent[1] += new_node;
      rows.back[1] += new_node_row;
    }
    if (rank != entry) {
      const int64_t tier = entry / node_ranks != node;
      rows.sent[tier] += new_rank;
      rows.back[tier] += new_rank_row;
    }
  }
  return rows;
}

#ifdef __cplusplus
}
#endif
#endif
