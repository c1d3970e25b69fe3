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

/// Whether who makes `made`, and knows this much, comes after `node`. What threads have written is seen by the
/// asynchronous proxy behind a proxy fence only.
bool Races::isOrdered(const Node &node, const Node &made, const Knowledge &known) const {
  const Clock &clock = made.isProxy && node.isWrite && !node.isProxy ? known.async : known.all;
  for (uint32_t left = node.lanes; left != 0; left &= left - 1) {
    const uint32_t number = node.first + static_cast<uint32_t>(__builtin_ctz(left));
    const bool isSame = made.isAgent == node.isAgent && clusterOf(made.warp) == clusterOf(node.warp) &&
                        number - made.first < warpLanes && (made.lanes >> (number - made.first) & 1);
    if (!(isSame && !made.isAgent) && !clock.covers({clusterOf(node.warp), number}, node.time))
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
std::string Races::note(Memory &memory, uint64_t word, Node &made, const Knowledge &known) {
  uint32_t *link = &memory.heads[word];
  for (uint32_t at = *link; at != 0; at = *link) {
    Node &node = nodes[at];
    const bool isSame = node.warp == made.warp && node.time == made.time && node.isAgent == made.isAgent &&
                        node.instruction == made.instruction && (!made.isAgent || node.first == made.first);
    if ((node.bytes & made.bytes) == 0 || (isSame && node.isWrite == made.isWrite)) {
      if (isSame && node.bytes == made.bytes && node.isWrite == made.isWrite) {
        node.lanes |= made.lanes;
        return "";
      }
      link = &node.next;
      continue;
    }
    const bool isConflict = (node.isWrite || made.isWrite) && !isSame;
    const bool isBefore = isOrdered(node, made, known);
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

Races::Memory &Races::memoryAt(const void *data, uint64_t size) {
  Memory &memory = memories[data];
  memory.heads.resize((size + wordBytes - 1) / wordBytes);
  return memory;
}

/// The bytes of `word` among `count` from `offset` on, a bit each.
static uint8_t bytesOfWord(uint64_t word, uint64_t offset, uint64_t count) {
  uint8_t bytes = 0;
  for (uint64_t byte = 0; byte < wordBytes; ++byte)
    if (word * wordBytes + byte >= offset && word * wordBytes + byte < offset + count)
      bytes |= uint8_t(1 << byte);
  return bytes;
}

std::string Races::access(Warp &warp, const Operation &operation, int lane, const void *data, uint64_t size,
                          uint64_t offset, uint32_t bytes, Access access) {
  Memory &memory = memoryAt(data, size);
  const WarpClocks &own = *warp.clocks;
  Node made{};
  made.warp = own.number;
  made.first = agentOf(own.number, 0).number;
  made.time = own.time;
  made.instruction = operation.instruction;
  made.isWrite = access != Access::Read;
  made.isStrong = operation.strength != Strength::Weak;
  made.scope = operation.scope;
  for (uint64_t word = offset / wordBytes; word * wordBytes < offset + bytes; ++word) {
    made.lanes = uint32_t(1) << lane;
    made.bytes = bytesOfWord(word, offset, bytes);
    if (made.isStrong && access != Access::Write)
      see(memory, word, warp, operation, lane);
    if (std::string other = note(memory, word, made, own.known[lane]); !other.empty())
      return other;
    if (made.isWrite && (made.isStrong || !memory.published.empty()))
      publish(memory, word, warp, operation, lane, access);
  }
  return "";
}

Agent Races::addAgent(const Warp &warp) {
  const uint64_t cluster = clusterOf(warp.clocks->number);
  return {cluster, warpsOfCluster * warpLanes + agents[cluster]++};
}

std::string Races::copy(Warp &warp, const Operation &operation, int lane, const Agent &agent, uint32_t time,
                        bool isProxy, const void *data, uint64_t size, uint64_t offset, uint64_t bytes, bool isWrite) {
  Memory &memory = memoryAt(data, size);
  Node made{};
  made.warp = warp.clocks->number;
  made.first = agent.number;
  made.time = time;
  made.instruction = operation.instruction;
  made.isWrite = isWrite;
  made.isAgent = true;
  made.isProxy = isProxy;
  for (uint64_t word = offset / wordBytes; word * wordBytes < offset + bytes; ++word) {
    made.lanes = 1;
    made.bytes = bytesOfWord(word, offset, bytes);
    if (std::string other = note(memory, word, made, warp.clocks->known[lane]); !other.empty())
      return other;
  }
  return "";
}

void Races::fenceProxy(Warp &warp, uint32_t lanes) {
  WarpClocks &own = *warp.clocks;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    Knowledge &known = own.known[__builtin_ctz(left)];
    known.async = known.all;
    known.async.add(agentOf(own.number, 0), left & -left, own.time);
  }
}

void Races::learn(Warp &warp, uint32_t lanes, const Agent &agent, uint32_t time) {
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    warp.clocks->known[__builtin_ctz(left)].all.add(agent, 1, time);
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
  Knowledge given = isRelease ? own.known[lane] : own.fenced[lane];
  if (isRelease)
    given.all.add(agentOf(own.number, 0), uint32_t(1) << lane, own.time);
  published.knowledge.join(given);
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
  (isAcquire ? own.known : own.pending)[lane].join(found->second.knowledge);
}

void Races::release(Warp &warp, uint32_t lanes, Knowledge &given) {
  WarpClocks &own = *warp.clocks;
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    given.join(own.known[__builtin_ctz(left)]);
  given.all.add(agentOf(own.number, 0), lanes, own.time);
}

void Races::acquire(Warp &warp, uint32_t lanes, const Knowledge &given) {
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    warp.clocks->known[__builtin_ctz(left)].join(given);
}

void Races::meet(Warp &warp, uint32_t lanes) {
  Knowledge all;
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
    own.fenced[lane].all.add(agentOf(own.number, 0), uint32_t(1) << lane, own.time);
    own.isFenced |= uint32_t(1) << lane;
    own.fenceScope[lane] = operation.scope;
  }
}

} // namespace k2c::ptx
