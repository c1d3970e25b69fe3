// Collectives as rounds.
//
// A reduction of n members cuts the vector into n pieces; in its first round each member gets its piece from all, adds
// the n rows up in tree order, and in the second round sends the sum to all (which a reduce-scatter leaves out). So
// each rank sends and receives 2 (n - 1) / n of the vector, the least that any order of messages allows, while the
// order of additions is that of the tree. A short vector is one piece that everyone has: one round, where a round's
// latency is all that counts. Everything else is one round of direct messages; those that have a root are between it
// and each other member alone.
#include "exchange/Schedule.h"
#include "exchange/Header.h"
#include "exchange/TreeSum.h"
#include <algorithm>
#include <cstring>

namespace k2c::runtime {
namespace {

struct Piece {
  int64_t offset; ///< bytes
  int64_t bytes;
};

bool isAllReduce(Op op) { return op == Op::allReduceMax || op == Op::allReduceSum; }
bool isReduction(Op op) { return isAllReduce(op) || op == Op::reduceScatterSum; }
int64_t elementBytes(Op op) { return op == Op::allReduceMax ? sizeof(int64_t) : sizeof(float); }

/// The piece of a reduction's vector that a member adds up.
Piece pieceOf(Op op, int64_t bytes, int32_t size, int32_t member) {
  if (op == Op::reduceScatterSum)
    return {member * bytes, bytes};
  if (bytes <= maxInlineBytes)
    return {0, bytes};
  const int64_t element = elementBytes(op), count = bytes / element;
  const int64_t begin = count * member / size, end = count * (member + 1) / size;
  return {begin * element, (end - begin) * element};
}

const std::byte *at(const void *base, int64_t offset) { return static_cast<const std::byte *>(base) + offset; }
std::byte *at(void *base, int64_t offset) { return static_cast<std::byte *>(base) + offset; }

void copyBytes(std::byte *to, const std::byte *from, int64_t bytes) {
  if (bytes > 0)
    std::memcpy(to, from, static_cast<size_t>(bytes));
}

/// What this rank sends to and receives from a member, by collective.
class Parts {
public:
  Parts(const Collective &collective, const Group &group, int32_t number) : c(collective), g(group), number(number) {}

  bool sendsTo(int32_t member) const {
    if (c.op == Op::send || c.op == Op::gatherRows)
      return member == c.peer;
    return c.op == Op::broadcast || c.op == Op::scatterRows ? g.self == c.peer : c.op != Op::receive;
  }
  bool receivesFrom(int32_t member) const {
    if (c.op == Op::receive || c.op == Op::broadcast || c.op == Op::scatterRows)
      return member == c.peer;
    return c.op == Op::gatherRows ? g.self == c.peer : c.op != Op::send;
  }
  Sending sendingTo(int32_t member) const {
    const int32_t rank = g.rank(member);
    if (isReduction(c.op)) {
      const Piece piece = pieceOf(c.op, c.bytes, g.size, number == 0 ? member : g.self);
      return {rank, number == 0 ? at(c.source, piece.offset) : at(c.result, piece.offset), piece.bytes};
    }
    if (c.op == Op::allToAll || c.op == Op::counts)
      return {rank, at(c.source, member * c.bytes), c.bytes};
    if (isRagged(c.op))
      return {rank, at(c.source, c.rows.sentOffsets[member] * c.bytes), c.rows.sent[member] * c.bytes};
    return {rank, at(c.source, 0), c.bytes};
  }
  Receiving receivingFrom(int32_t member) const {
    const int32_t rank = g.rank(member);
    if (isReduction(c.op) && number == 0) {
      const int64_t bytes = pieceOf(c.op, c.bytes, g.size, g.self).bytes;
      return {rank, at(c.workspace, member * bytes), bytes};
    }
    if (isReduction(c.op)) {
      const Piece piece = pieceOf(c.op, c.bytes, g.size, member);
      return {rank, at(c.result, piece.offset), piece.bytes};
    }
    if (isRagged(c.op))
      return {rank, at(c.result, c.rows.receivedOffsets[member] * c.bytes), c.rows.received[member] * c.bytes,
              c.rows.isCapacity ? &c.rows.received[member] : nullptr, c.bytes};
    const bool isByMember = c.op == Op::allGather || c.op == Op::allToAll || c.op == Op::counts;
    return {rank, at(c.result, isByMember ? member * c.bytes : 0), c.bytes};
  }

private:
  const Collective &c;
  const Group &g;
  const int32_t number;
};

/// Adds up the rows that the first round brought, this rank's own among them.
void reduce(const Collective &c, const Group &g) {
  const Piece piece = pieceOf(c.op, c.bytes, g.size, g.self);
  copyBytes(at(c.workspace, g.self * piece.bytes), at(c.source, piece.offset), piece.bytes);
  const int64_t count = piece.bytes / elementBytes(c.op);
  if (c.op == Op::allReduceMax) {
    auto *rows = static_cast<int64_t *>(c.workspace);
    for (int32_t row = 1; row < g.size; ++row)
      for (int64_t i = 0; i < count; ++i)
        rows[i] = std::max(rows[i], rows[row * count + i]);
  } else {
    treeSum(static_cast<float *>(c.workspace), g.size, count);
  }
  copyBytes(at(c.result, isAllReduce(c.op) ? piece.offset : 0), at(c.workspace, 0), piece.bytes);
}

} // namespace

int64_t workspaceBytes(Op op, int64_t bytes, int32_t size) {
  if (!isReduction(op))
    return 0;
  int64_t largest = 0;
  for (int32_t member = 0; member < size; ++member)
    largest = std::max(largest, pieceOf(op, bytes, size, member).bytes);
  return size * largest;
}

int32_t roundsOf(const Collective &collective, const Group &group) {
  return isAllReduce(collective.op) && collective.bytes > maxInlineBytes && group.size > 1 ? 2 : 1;
}

void planRound(const Collective &collective, const Group &group, int32_t number, Round &round) {
  const Parts parts(collective, group, number);
  round.sends.clear();
  round.receives.clear();
  for (int32_t distance = 1; distance < group.size; ++distance) {
    const int32_t to = (group.self + distance) % group.size, from = (group.self + group.size - distance) % group.size;
    if (parts.sendsTo(to))
      round.sends.push_back(parts.sendingTo(to));
    if (parts.receivesFrom(from) && !(collective.op == Op::broadcast && group.self == collective.peer))
      round.receives.push_back(parts.receivingFrom(from));
  }
}

void finishRound(const Collective &collective, const Group &group, int32_t number) {
  if (isReduction(collective.op)) {
    if (number == 0)
      reduce(collective, group);
    return;
  }
  if (collective.op == Op::send || collective.op == Op::receive || collective.op == Op::broadcast)
    return;
  const Parts parts(collective, group, number);
  const Sending own = parts.sendingTo(group.self);
  const Receiving to = parts.receivingFrom(group.self);
  copyBytes(to.data, own.data, own.bytes);
  if (to.rows)
    *to.rows = collective.rows.sent[group.self];
}

} // namespace k2c::runtime
