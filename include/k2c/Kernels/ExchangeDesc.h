//===- ExchangeDesc.h - Kernels of experts on several ranks -------------------===//
//
// Part of KernelDesc.h. A layer's experts are divided over `ranks` ranks, each with `slots` places for them. Tables of
// the layer's placement, messages and their choices are those of k2rt/placement.h; `held` is the part of
// expert_of_slot that this rank's slots have. Counts are int64 [2][ranks]: rows to or from each rank, then the first
// of them. A kernel over rows that arrived runs in a step of so many token rows.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_EXCHANGEDESC_H
#define K2C_KERNELS_EXCHANGEDESC_H

#include "k2c/Kernels/Rows.h"

namespace k2c {

/// Plans the messages of a step. Arguments: experts i32 [rows][topK], placement -> routes i32 [rows][3][topK], sent,
/// returned. A route is a message, the slot on the rank of its expert, and the row of what comes back in which its sum
/// is; -1 without an expert. Messages are sorted by (rank, token), one for all choices of a token on a rank; returned
/// rows by (rank, token, order of choices), one for all choices of a token in a subtree. An expert >= experts: failure.
struct RoutePlanDesc {
  int64_t experts = 0, topK = 0, ranks = 1, slots = 0;
};

/// Writes messages. Arguments: x, weights f32 [rows][topK], routes -> messages. A choice whose expert is on another
/// rank has slot -1 and weight 0.
struct PackDesc {
  Rows x;
  int64_t topK = 0;
};

/// Reads messages that lie apart by rank. Arguments: messages, came -> y, slots i32 [rows][topK], weights f32
/// [rows][topK], by (rank, order).
struct UnpackDesc {
  Rows y;
  int64_t topK = 0, ranks = 1;
};

/// Plans what goes back. Arguments: slots i32 [rows][topK], came, placement, held -> sums i32 [rows][2], back. A row's
/// sums: the first and their number, one for each subtree of a choice; `back` counts them by the rank they go to.
struct ReturnPlanDesc {
  int64_t experts = 0, topK = 0, ranks = 1, slots = 0;
};

/// Adds the rows of slots to the sums of their subtrees. Arguments: slot rows (destroyed), permutation over `slots`
/// experts, slots i32 [rows][topK], sums, placement, held -> y: UnpermuteDesc's tree over the ids of all experts, cut
/// at subtree_of_expert.
struct ReduceSubtreesDesc {
  Rows x, y;
  int64_t experts = 0, topK = 0, ranks = 1, slots = 0, leaves = 1;
};

/// Adds the sums of a token. Arguments: sums (destroyed), routes, experts i32 [rows][topK] -> y: the rest of
/// UnpermuteDesc's tree. A token without experts is 0.
struct CombineDesc {
  Rows x, y;
  int64_t experts = 0, topK = 0, leaves = 1;
};

} // namespace k2c

#endif // K2C_KERNELS_EXCHANGEDESC_H
