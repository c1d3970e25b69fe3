//===- ExchangeDesc.h - Kernels of what ranks divide --------------------------===//
//
// Part of KernelDesc.h: experts on several ranks, then rows that are shared with all members of a group. A layer's
// experts lie in slots: of a rank, of all ranks of a node, of the world. Rows go to members of a group, each a holder
// of equally many `slots`, and choices are numbered by slots of the holder that plans them; -1 is none. `held` is the
// experts of its slots, `subtrees` what members have whole of N5's tree, `places` the slots in the world that a rank's
// tokens may go to (k2rt/placement.h has all three, and messages). Counts are int64 [2][members]: rows to or from each
// member, then the first of them. A kernel over rows that arrived runs in a step of so many token rows.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_EXCHANGEDESC_H
#define K2C_KERNELS_EXCHANGEDESC_H

#include "k2c/Kernels/Rows.h"

namespace k2c {

/// Finds slots. Arguments: experts i32 [rows][topK], places -> slots i32 [rows][topK], of `slots` in the world and
/// `slotsOfNode` on a node. An expert >= experts: failure.
struct LocateDesc {
  int64_t experts = 0, topK = 0, slots = 0, slotsOfNode = 0;
};

/// Plans the messages of a step. Arguments: slots i32 [rows][topK] of all members, held, subtrees -> routes i32
/// [rows][3][topK], sent, returned. A route is a message, the slot on the member of its expert, and the row of what
/// comes back in which its sum is; -1 without an expert. Messages are sorted by (member, row), one for all choices of a
/// row on a member; returned rows by (member, row, order of choices), one for all choices of a row in a subtree.
struct RoutePlanDesc {
  int64_t experts = 0, topK = 0, members = 1, slots = 0;
};

/// Plans the messages to members that have parts of the same slots: a row, which has a choice there, goes to each of
/// them. Arguments: slots i32
/// [rows][topK] -> routes i32 [rows][3][topK], sent, returned. Routes are RoutePlanDesc's: a message is a row, the same
/// for all members, and of what comes back from each the n-th row is that of the n-th choice that is none of -1.
struct PartPlanDesc {
  int64_t topK = 0, members = 1;
};

/// Writes messages. Arguments: x, weights f32 [rows][topK], routes -> messages. A choice whose expert is on another
/// member has slot -1 and weight 0.
struct PackDesc {
  Rows x;
  int64_t topK = 0;
};

/// Reads messages that lie apart by member. Arguments: messages, came -> y, slots i32 [rows][topK], weights f32
/// [rows][topK], by (member, order).
struct UnpackDesc {
  Rows y;
  int64_t topK = 0, members = 1;
};

/// Plans what goes back. Arguments: slots i32 [rows][topK], came, held, subtrees -> sums i32 [rows][2], back. A row's
/// sums: the first and their number, one for each subtree of a choice; `back` counts them by the member they go to.
struct ReturnPlanDesc {
  int64_t experts = 0, topK = 0, members = 1, slots = 0;
};

/// Adds the rows of slots to the sums of their subtrees. Arguments: slot rows (destroyed), permutation over `slots`
/// experts, slots i32 [rows][topK], sums, held, subtrees -> y: UnpermuteDesc's tree over the ids of all experts, cut at
/// the subtrees.
struct ReduceSubtreesDesc {
  Rows x, y;
  int64_t experts = 0, topK = 0, slots = 0, leaves = 1;
};

/// Adds the sums that came back for a row that goes back itself. Arguments: sums of smaller subtrees (destroyed),
/// routes, slots i32 [rows][topK], sums i32 [rows][2], held, subtrees -> y, as ReduceSubtreesDesc.
struct MergeSubtreesDesc {
  Rows x, y;
  int64_t experts = 0, topK = 0, slots = 0, leaves = 1;
};

/// Adds the sums of a token. Arguments: sums (destroyed), routes, experts i32 [rows][topK] -> y: the rest of
/// UnpermuteDesc's tree. A token without experts is 0.
struct CombineDesc {
  Rows x, y;
  int64_t experts = 0, topK = 0, leaves = 1;
};

/// Adds what members have of the output of each choice. Arguments: parts, returned, routes of PartPlanDesc, weights f32
/// [rows][topK] -> y, the same rows as of one member: the balanced binary tree over the members, times the weight of
/// the choice, each op in f32, rounded once to y.type.
struct AddPartsDesc {
  Rows x, y;
  int64_t topK = 0, members = 2;
};

/// Counts rows of `space` that go to all members, and as many that come back from each. -> sent, returned: sent rows
/// are the same for all, returned ones lie one member behind the other.
struct SharePlanDesc {
  RowSpace space = RowSpace::Token;
  int64_t members = 1;
};

/// Copies rows that lie apart by member. Arguments: rows, came -> y, by (member, order).
struct CloseGapsDesc {
  Rows y;
  int64_t members = 1;
};

/// Counts the rows of CloseGapsDesc by the member that they go back to. Arguments: came -> back.
struct ShareReturnDesc {
  int64_t members = 1;
};

/// Puts what came back for a row into one, member by member. Arguments: parts, returned -> y.
struct JoinColumnsDesc {
  Rows x, y; ///< y.width = members * x.width
  int64_t members = 1;
};

} // namespace k2c

#endif // K2C_KERNELS_EXCHANGEDESC_H
