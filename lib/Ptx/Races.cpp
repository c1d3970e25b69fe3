//===- Races.cpp - Accesses that nothing orders ---------------------------===//
//
// A word of four bytes has a list of accesses: the last writes, and the reads since. An access that happens after
// another of the same bytes takes its place, as who comes after the later one comes after the earlier one, too.
//
//===----------------------------------------------------------------------===//
#include "Races.h"

#include <algorithm>

namespace k2c::ptx {

constexpr uint64_t wordBytes = 4;

bool Races::isInScope(uint32_t warp, uint32_t other, Scope scope) const {
  if (scope == Scope::Cluster)
    return warp / warpsOfCluster == other / warpsOfCluster;
  return scope != Scope::Cta || warp / warpsOfCta == other / warpsOfCta;
}

bool Races::isOrdered(const Node &node, Warp &warp, int lane) const {
  const WarpClocks &own = *warp.clocks;
  for (uint32_t left = node.lanes; left != 0; left &= left - 1) {
    const int other = __builtin_ctz(left);
    if (node.warp == own.number && other == lane)
      continue;
    if (!own.known[lane].covers(agentOf(node.warp, other), node.time))
      return false;
  }
  return true;
}

std::string Races::describe(const Node &node) const {
  const Instruction &other = program.function.code[node.instruction];
  char lanes[16];
  std::snprintf(lanes, sizeof lanes, "0x%x", node.lanes);
  return "'" + other.spelling() + "' at line " + std::to_string(other.line) + " of CTA " +
         std::to_string(node.warp / warpsOfCta) + ", warp " + std::to_string(node.warp % warpsOfCta) + ", lanes " +
         lanes;
}

/// Adds `made` to the accesses of a word, from which what it supersedes goes.
std::string Races::note(Memory &memory, uint64_t word, Node &made, Warp &warp, int lane) {
  uint32_t *link = &memory.heads[word];
  for (uint32_t at = *link; at != 0; at = *link) {
    Node &node = nodes[at];
    const bool isSame = node.warp == made.warp && node.time == made.time; // instruction
    if ((node.bytes & made.bytes) == 0 || (isSame && node.isWrite == made.isWrite)) {
      if (isSame && node.bytes == made.bytes && node.isWrite == made.isWrite) {
        node.lanes |= made.lanes;
        return "";
      }
      link = &node.next;
      continue;
    }
    const bool isOwn = node.warp == made.warp && node.lanes == made.lanes;
    const bool isConflict = (node.isWrite || made.isWrite) && !isSame;
    const bool isBefore = isOwn || isOrdered(node, warp, lane);
    if (isConflict && !isBefore &&
        !(node.isStrong && made.isStrong && isInScope(made.warp, node.warp, made.scope) &&
          isInScope(node.warp, made.warp, node.scope)))
      return describe(node);
    if (isBefore && (node.bytes & ~made.bytes) == 0 && (made.isWrite || !node.isWrite)) {
      const uint32_t next = node.next;
      node.next = freed;
      freed = at;
      *link = next;
      continue;
    }
    link = &node.next;
  }
  uint32_t at = freed;
  if (at == 0) {
    at = static_cast<uint32_t>(nodes.size());
    nodes.emplace_back(); // `link` may point into the old ones: it is not used again
  } else {
    freed = nodes[at].next;
  }
  made.next = memory.heads[word];
  nodes[at] = made;
  memory.heads[word] = at;
  return "";
}

std::string Races::access(Warp &warp, const Operation &operation, int lane, const void *data, uint64_t size,
                          uint64_t offset, uint32_t bytes, Access access) {
  Memory &memory = memories[data];
  memory.heads.resize((size + wordBytes - 1) / wordBytes);
  for (uint64_t word = offset / wordBytes; word * wordBytes < offset + bytes; ++word) {
    Node made{};
    made.warp = warp.clocks->number;
    made.lanes = uint32_t(1) << lane;
    made.time = warp.clocks->time;
    made.instruction = operation.instruction;
    made.isStrong = operation.strength != Strength::Weak;
    made.scope = operation.scope;
    for (uint64_t byte = 0; byte < wordBytes; ++byte)
      if (word * wordBytes + byte >= offset && word * wordBytes + byte < offset + bytes)
        made.bytes |= uint8_t(1 << byte);
    if (made.isStrong && access != Access::Write)
      see(memory, word, warp, operation, lane);
    made.isWrite = access != Access::Read;
    if (std::string other = note(memory, word, made, warp, lane); !other.empty())
      return other;
    if (made.isWrite && (made.isStrong || !memory.published.empty()))
      publish(memory, word, warp, operation, lane, access);
  }
  return "";
}

/// A strong write publishes what its thread knows if it releases, or what the fence before it released. A write that is
/// no part of an atomic operation ends what others have published there.
void Races::publish(Memory &memory, uint64_t word, Warp &warp, const Operation &operation, int lane, Access access) {
  WarpClocks &own = *warp.clocks;
  const bool isRelease = operation.strength == Strength::Release || operation.strength == Strength::AcquireRelease;
  const auto found = memory.published.find(word);
  if (access != Access::ReadWrite && found != memory.published.end())
    memory.published.erase(found);
  if (operation.strength == Strength::Weak || (!isRelease && !(own.isFenced >> lane & 1)))
    return;
  Published &published = memory.published[word];
  Clock given = isRelease ? own.known[lane] : own.fenced[lane];
  if (isRelease)
    given.add(agentOf(own.number, 0), uint32_t(1) << lane, own.time);
  published.clock.join(given);
  published.scope = isRelease ? operation.scope : std::min(operation.scope, own.fenceScope[lane]);
  published.warp = own.number;
}

/// A strong read sees what was published there: at once if it acquires, else at the next fence.
void Races::see(Memory &memory, uint64_t word, Warp &warp, const Operation &operation, int lane) {
  WarpClocks &own = *warp.clocks;
  const auto found = memory.published.find(word);
  if (found == memory.published.end() || !isInScope(found->second.warp, own.number, found->second.scope) ||
      !isInScope(own.number, found->second.warp, operation.scope))
    return;
  const bool isAcquire = operation.strength == Strength::Acquire || operation.strength == Strength::AcquireRelease;
  (isAcquire ? own.known : own.pending)[lane].join(found->second.clock);
}

void Races::release(Warp &warp, uint32_t lanes, Clock &clock) {
  WarpClocks &own = *warp.clocks;
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    clock.join(own.known[__builtin_ctz(left)]);
  clock.add(agentOf(own.number, 0), lanes, own.time);
}

void Races::acquire(Warp &warp, uint32_t lanes, const Clock &clock) {
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    warp.clocks->known[__builtin_ctz(left)].join(clock);
}

void Races::meet(Warp &warp, uint32_t lanes) {
  Clock all;
  release(warp, lanes, all);
  acquire(warp, lanes, all);
}

void Races::fence(Warp &warp, const Operation &operation, uint32_t lanes) {
  WarpClocks &own = *warp.clocks;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    own.known[lane].join(own.pending[lane]);
    own.pending[lane] = {};
    own.fenced[lane] = own.known[lane];
    own.fenced[lane].add(agentOf(own.number, 0), uint32_t(1) << lane, own.time);
    own.isFenced |= uint32_t(1) << lane;
    own.fenceScope[lane] = operation.scope;
  }
}

} // namespace k2c::ptx
