// What a rank asks of an exchange: one collective of its program, with the buffers of this rank.
#ifndef K2RT_EXCHANGE_COLLECTIVE_H
#define K2RT_EXCHANGE_COLLECTIVE_H

#include "exchange/Grid.h"
#include <cstdint>
#include <string>

namespace k2c::runtime {

/// `n` members, each with a number in the group. Sums are of f32 in the order of TreeSum.h, maxima of int64.
enum class Op : uint8_t {
  allReduceMax,     ///< bytes of `source` on each -> as many, equal on all
  allReduceSum,     ///< likewise
  reduceScatterSum, ///< n * bytes on each -> bytes: member i has part i of the sum
  allGather,        ///< bytes on each -> n * bytes, by member
  broadcast,        ///< bytes of `peer`'s source -> `result` of all others
  send,             ///< bytes to `peer`, which receives
  receive,          ///< bytes from `peer`, which sends
  allToAll,         ///< n * bytes: part j goes to member j -> n * bytes, by member
  counts,           ///< the same for one int64 a member: rows of a later allToAllRows
  allToAllRows,     ///< rows of `bytes` each, as many as `rows` says
  scatterRows,      ///< those of `peer` alone: the others send nothing, and wait for nobody else
  gatherRows,       ///< those for `peer` alone, likewise
};
inline constexpr int32_t opCount = 12;
/// Whether its rows are those of RaggedRows.
inline bool isRagged(Op op) { return op >= Op::allToAllRows; }

/// As messages and counters name it.
const char *nameOf(Op op);

/// The rows of an allToAllRows, or of what only one member sends or receives, by member. Offsets are in rows, from
/// `source` and from `result`.
struct RaggedRows {
  const int64_t *sent = nullptr;
  const int64_t *sentOffsets = nullptr;
  /// What each member sends; where `isCapacity`, the most that it may send, replaced by what it did send (it says so in
  /// its header: no exchange of counts is needed where the worst case fits).
  int64_t *received = nullptr;
  const int64_t *receivedOffsets = nullptr;
  bool isCapacity = false;
};

/// Members of a group start the same collectives of that group in the same order, and call each by the same site, step
/// and bytes: what differs is reported by the exchange. Buffers are the exchange's from start to wait; `source` may be
/// `result` in an all-reduce only.
struct Collective {
  Op op;
  Axis axis;
  uint32_t site;      ///< which op of the program
  int32_t layer = -1; ///< of the model; -1: none
  int64_t step = 0;
  const void *source = nullptr;
  void *result = nullptr;
  void *workspace = nullptr; ///< of workspaceBytes
  int64_t bytes = 0;
  int32_t peer = 0;     ///< a member
  int64_t rowBytes = 0; ///< of a send of rows, and of rows that are counted in parts of one; 0: of anything else
  RaggedRows rows{};
  bool isControl = false; ///< carries no rows: counted as control bytes
  int32_t deadlines = 1;  ///< how many a wait has: of ranks that work one after another each has one
  /// Waits as long as the communication threads of those it waits for answer: their workers have other things to do.
  bool isPatient = false;
};

/// Memory that a reduction needs beside its buffers, on each member of a group of `size`.
int64_t workspaceBytes(Op op, int64_t bytes, int32_t size);
/// "site 12 (all_to_all_rows, layer 3, group ep, step 7)".
std::string placeOf(const Collective &collective);

} // namespace k2c::runtime

#endif
