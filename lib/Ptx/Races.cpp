//===- Races.cpp - Accesses that nothing orders ---------------------------===//
//
// A word of four bytes has a list of accesses: the last writes, and the reads since. An access that happens after
// another of the same bytes takes its place, as who comes after the later one comes after the earlier one, too. What
// lanes do again and again, each with words of its own, changes one node in its place.
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
bool Races::isOrdered(const Node &node, const Node &made, const Knowledge &known, Proxied where) const {
  if ((node.isConstant && made.isWrite) || (made.isConstant && node.isWrite))
    return false;
  const bool isSameProxy = // of other CTAs' copies to global memory no order is promised without a fence
      node.isProxy && made.isProxy && (where == Proxied::Shared || node.warp / warpsOfCta == made.warp / warpsOfCta);
  const Clock &clock = !node.isWrite || isSameProxy ? known.reads
                       : made.isProxy               ? known.async[static_cast<size_t>(where)]
                                                    : known.all;
  uint32_t others = node.lanes;
  if (!made.isAgent && !node.isAgent && node.warp == made.warp)
    others &= ~made.lanes; // a thread comes after itself
  return clock.covers({clusterOf(node.warp), node.first}, others, node.time);
}

std::string Races::describe(const Node &node, bool isConstant) const {
  const Instruction &other = program.function.code[node.instruction];
  char lanes[16];
  std::snprintf(lanes, sizeof lanes, "0x%x", node.lanes);
  return "'" + other.spelling() + "' at line " + std::to_string(other.line) + " of CTA " +
         std::to_string(node.warp / warpsOfCta) + ", warp " + std::to_string(node.warp % warpsOfCta) + ", lanes " +
         lanes + (isConstant ? ": .nc is for what no thread of the launch writes" : "");
}

/// Puts `made` in front of a list.
void Races::take(uint32_t &head, Node &made) {
  made.next = head;
  if (freed != 0) {
    head = freed;
    freed = nodes[freed].next;
    nodes[head] = made;
    return;
  }
  head = static_cast<uint32_t>(nodes.size());
  nodes.push_back(made);
}

/// Takes the node out to which `link` leads.
void Races::drop(uint32_t &link) {
  const uint32_t at = link;
  link = nodes[at].next;
  nodes[at].next = freed;
  freed = at;
}

/// Whether `node` and `made` race unless one of them happens before the other.
bool Races::isConflict(const Node &node, const Node &made) const {
  const bool isShared = (node.isWrite || made.isWrite) && (node.bytes & made.bytes) != 0;
  if (!isShared)
    return false;
  const bool isStrong = node.isStrong && made.isStrong && node.bytes == made.bytes && node.element == made.element &&
                        isInScope(made.warp, node.warp, made.scope) && isInScope(node.warp, made.warp, node.scope);
  return !isStrong && !isSame(node, made);
}

/// Adds `made` to the accesses of a word, from which what it supersedes goes: what happened before, and what its own
/// lanes have done. Lanes of its instruction that come after it have to come after that, too: they look at `gone`.
std::string Races::note(Memory &memory, uint64_t word, Node &made, const Knowledge &known) {
  uint32_t *link = &memory.heads[word];
  uint32_t own = 0;
  bool isShared = false; // with lanes of the instruction
  for (uint32_t at = *link; at != 0; at = *link) {
    Node &node = nodes[at];
    const bool isOne = isSame(node, made);
    isShared |= isOne;
    if ((node.bytes & made.bytes) == 0 || (isOne && node.isWrite == made.isWrite)) {
      if (isOne && node.bytes == made.bytes && node.isWrite == made.isWrite)
        own = at;
      link = &node.next;
      continue;
    }
    const bool isOwn =
        node.warp == made.warp && node.isAgent == made.isAgent && (!made.isAgent || node.first == made.first);
    const bool isReadAgain = !made.isWrite && !node.isWrite && isOwn; // reads of others stay, one for each
    const bool isSuperseded = (node.bytes & ~made.bytes) == 0 && (made.isWrite || isReadAgain);
    const bool mayRace = isConflict(node, made);
    if (!mayRace && !isSuperseded) {
      link = &node.next;
      continue;
    }
    const bool isBefore = isReadAgain ? made.isAgent && node.time <= made.time // who knows of this one knows of it
                                      : isOrdered(node, made, known, memory.where);
    if (mayRace && !isBefore)
      return describe(node, node.isConstant || made.isConstant);
    if (isSuperseded && made.isWrite)
      leave(memory, word, node, made);
    if (isSuperseded && isOwn && !made.isAgent)
      node.lanes &= ~made.lanes;
    if (isSuperseded && (isBefore || node.lanes == 0))
      drop(*link);
    else
      link = &node.next;
  }
  isShared &= goneWarp == made.warp && goneTime == made.time && !made.isAgent;
  for (size_t i = 0; isShared && i < gone.size(); ++i)
    if (const Node &node = gone[i].node; gone[i].memory == &memory && gone[i].word == word && isConflict(node, made) &&
                                         !isOrdered(node, made, known, memory.where))
      return describe(node);
  if (own != 0)
    nodes[own].lanes |= made.lanes;
  else
    take(memory.heads[word], made);
  return "";
}

/// Keeps what `made` supersedes until its instruction ends.
void Races::leave(const Memory &memory, uint64_t word, const Node &node, const Node &made) {
  if (made.isAgent)
    return;
  if (goneWarp != made.warp || goneTime != made.time)
    gone.clear();
  goneWarp = made.warp;
  goneTime = made.time;
  gone.push_back({&memory, word, node});
}

/// note() for a lane's read where it is plain that nothing races: its lane has read there since the last write, or
/// another lane of the instruction has that knows the same, and no lane of the warp, which knows of itself, has written
/// there. Whether it was.
bool Races::hasNotedRead(uint32_t &head, Node &made, const Knowledge &known, const Knowledge *others) {
  uint32_t *mine = nullptr, instruction = 0; // the node of its lane's last read, and that of the instruction
  uint32_t *link = &head;
  for (; *link != 0 && !nodes[*link].isWrite && (!mine || instruction == 0); link = &nodes[*link].next) {
    const Node &node = nodes[*link];
    if (node.bytes != made.bytes || node.isStrong || node.isAgent || node.warp != made.warp ||
        node.isConstant != made.isConstant)
      continue;
    if (isSame(node, made))
      instruction = *link;
    else if (node.lanes & made.lanes)
      mine = link;
  }
  if (!mine && (instruction == 0 || !others || !known.isSame(*others)))
    return false;
  for (; !mine && *link != 0; link = &nodes[*link].next)
    if (nodes[*link].isWrite && nodes[*link].warp == made.warp && !nodes[*link].isAgent)
      return false;
  if (instruction != 0) {
    nodes[instruction].lanes |= made.lanes;
    if (mine && (nodes[*mine].lanes &= ~made.lanes) == 0)
      drop(*mine);
    return true;
  }
  Node &node = nodes[*mine];
  if (node.lanes == made.lanes) {
    made.next = node.next;
    node = made;
  } else {
    node.lanes &= ~made.lanes;
    take(head, made);
  }
  return true;
}

/// note() for a read by lanes that know the same, where it comes after all writes, whichever lane has made them.
/// Whether it was.
bool Races::hasNotedReads(Memory &memory, uint64_t word, Node &made, const Knowledge &known) {
  Node anyone = made;
  anyone.lanes = 0; // none of them comes after itself alone
  uint32_t *mine = nullptr;
  for (uint32_t *link = &memory.heads[word]; *link != 0; link = &nodes[*link].next) {
    const Node &node = nodes[*link];
    if (node.isWrite && !isOrdered(node, anyone, known, memory.where))
      return false;
    if (!node.isWrite && !node.isStrong && !node.isAgent && node.warp == made.warp && node.bytes == made.bytes &&
        node.isConstant == made.isConstant && (node.lanes & ~made.lanes) == 0)
      mine = link;
  }
  if (mine)
    drop(*mine);
  take(memory.heads[word], made);
  return true;
}

Races::Memory &Races::memoryAt(const Touched &at) {
  if (last && lastData == at.data)
    return *last;
  Memory &memory = memories[at.data];
  memory.where = at.where;
  memory.heads.resize((at.size + wordBytes - 1) / wordBytes);
  last = &memory;
  lastData = at.data;
  return memory;
}

/// The bytes of `word` among `count` from `offset` on, a bit each.
static uint8_t bytesOfWord(uint64_t word, uint64_t offset, uint64_t count) {
  const uint64_t first = word * wordBytes;
  if (offset <= first && offset + count >= first + wordBytes)
    return 0xf;
  uint8_t bytes = 0;
  for (uint64_t byte = first; byte < first + wordBytes; ++byte)
    if (byte >= offset && byte < offset + count)
      bytes |= uint8_t(1 << (byte - first));
  return bytes;
}

Races::Node Races::nodeOf(const Warp &warp, const Operation &operation, Access access) const {
  Node made{};
  made.warp = warp.clocks->number;
  made.first = agentOf(made.warp, 0).number;
  made.time = warp.clocks->time;
  made.instruction = operation.instruction;
  made.isWrite = access != Access::Read;
  made.isStrong = operation.strength != Strength::Weak;
  made.isConstant = operation.isConstant;
  made.scope = operation.scope;
  return made;
}

std::string Races::access(Warp &warp, const Operation &operation, int lane, const Touched &at, Access access) {
  Memory &memory = memoryAt(at);
  Node made = nodeOf(warp, operation, access);
  const auto element = static_cast<uint32_t>(operation.bytes != 0 ? operation.bytes : at.bytes);
  made.element = static_cast<uint8_t>(made.isStrong ? element : 0);
  const Knowledge &known = warp.clocks->known[lane];
  const auto *data = static_cast<const std::byte *>(at.data);
  if (access == Access::ReadWrite) // lanes go one after another
    settle();
  if (made.isStrong)
    for (uint64_t offset = at.offset; offset < at.offset + at.bytes; offset += element) {
      Location &location = locationAt(memory, offset, element, data + offset);
      if (access == Access::ReadWrite)
        see(location.versions.back(), warp, operation, lane);
    }
  for (uint64_t word = at.offset / wordBytes; word * wordBytes < at.offset + at.bytes; ++word) {
    made.lanes = uint32_t(1) << lane;
    made.bytes = bytesOfWord(word, at.offset, at.bytes);
    if (std::string other = note(memory, word, made, known); !other.empty())
      return other;
  }
  if (made.isWrite && !made.isStrong)
    forgetVersions(memory, at.offset, at.bytes);
  else if (made.isWrite)
    for (uint64_t offset = at.offset; offset < at.offset + at.bytes; offset += element)
      publish(memory.locations.find(offset)->second, warp, operation, lane, access, data + offset);
  return "";
}

/// Whether the bytes of each lane lie behind those of the lanes before it.
static bool areApart(uint32_t active, const uint64_t *offsets, uint32_t bytes) {
  uint64_t end = 0;
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const uint64_t offset = offsets[__builtin_ctz(left)];
    if (offset < end)
      return false;
    end = offset + bytes;
  }
  return true;
}

/// Whether lanes access the same bytes, and know the same.
static bool areOne(const Warp &warp, uint32_t active, const uint64_t *offsets) {
  const int first = __builtin_ctz(active);
  for (uint32_t left = active & (active - 1); left != 0; left &= left - 1)
    if (const int lane = __builtin_ctz(left);
        offsets[lane] != offsets[first] || !warp.clocks->known[lane].isSame(warp.clocks->known[first]))
      return false;
  return true;
}

std::string Races::accessTogether(Warp &warp, const Operation &operation, uint32_t active, const Touched &at,
                                  const uint64_t *offsets, uint32_t bytes, Access access) {
  Memory &memory = memoryAt(at);
  Node made = nodeOf(warp, operation, access);
  const bool isWhole = bytes % wordBytes == 0;
  const Knowledge *before = nullptr; // of the lane before, if it accessed the same bytes
  const bool isApart = made.isWrite && areApart(active, offsets, bytes);
  uint64_t last = ~uint64_t(0);
  if (!made.isWrite && isWhole && areOne(warp, active, offsets)) {
    const int first = __builtin_ctz(active);
    uint64_t word = offsets[first] / wordBytes;
    const uint64_t end = word + bytes / wordBytes;
    made.bytes = 0xf;
    for (made.lanes = active; word < end && hasNotedReads(memory, word, made, warp.clocks->known[first]);)
      ++word;
    if (word == end)
      return "";
  }
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint64_t offset = offsets[lane];
    const Knowledge &known = warp.clocks->known[lane];
    if (offset != last)
      before = nullptr;
    for (uint64_t word = offset / wordBytes; word * wordBytes < offset + bytes; ++word) {
      made.bytes = isWhole ? 0xf : bytesOfWord(word, offset, bytes);
      made.lanes = left & -left;
      uint32_t &head = memory.heads[word];
      if (!made.isWrite && hasNotedRead(head, made, known, before))
        continue;
      if (head != 0 && isApart) {
        Node &node = nodes[head];
        if (node.next == 0 && node.bytes == made.bytes && node.warp == made.warp && node.lanes == made.lanes &&
            !node.isAgent && !node.isConstant) {
          made.next = 0;
          node = made;
          continue;
        }
      }
      if (std::string other = note(memory, word, made, known); !other.empty())
        return other;
    }
    before = &known;
    last = offset;
    if (made.isWrite && !memory.locations.empty())
      forgetVersions(memory, offset, bytes);
  }
  return "";
}

Agent Races::addAgent(const Warp &warp) {
  const uint64_t cluster = clusterOf(warp.clocks->number);
  return {cluster, warpsOfCluster * warpLanes + agents[cluster]++};
}

std::string Races::copy(Warp &warp, const Operation &operation, int lane, const Agent &agent, uint32_t time,
                        bool isProxy, const Touched &at, bool isWrite) {
  Memory &memory = memoryAt(at);
  Node made{};
  made.warp = warp.clocks->number;
  made.first = agent.number;
  made.time = time;
  made.instruction = operation.instruction;
  made.isWrite = isWrite;
  made.isAgent = true;
  made.isProxy = isProxy;
  made.isStrong = at.reduced != 0;
  made.element = static_cast<uint8_t>(at.reduced);
  made.scope = Scope::Gpu;
  for (uint64_t word = at.offset / wordBytes; word * wordBytes < at.offset + at.bytes; ++word) {
    made.lanes = 1;
    made.bytes = bytesOfWord(word, at.offset, at.bytes);
    if (const uint32_t head = memory.heads[word]; head != 0)
      if (Node &node = nodes[head]; node.bytes == made.bytes && node.isWrite == isWrite && node.isAgent &&
                                    node.first == made.first && node.time == time && node.warp == made.warp &&
                                    node.instruction == made.instruction)
        continue;
    if (std::string other = note(memory, word, made, warp.clocks->known[lane]); !other.empty())
      return other;
  }
  if (isWrite)
    forgetVersions(memory, at.offset, at.bytes);
  return "";
}

bool Races::hasBegun(const Warp &warp, int lane, uint32_t rank) const {
  const uint32_t threads = warpsOfCta * warpLanes;
  return warp.clocks->known[lane].all.coversAny({clusterOf(warp.clocks->number), rank * threads}, threads);
}

std::string Races::strangerTo(const Warp &warp, const void *data, const Knowledge &known) const {
  const auto found = memories.find(data);
  if (found == memories.end())
    return "";
  for (uint32_t at : found->second.heads)
    for (; at != 0; at = nodes[at].next) {
      const Node &node = nodes[at];
      const bool isCopyIn = node.isProxy && node.isWrite; // of its own, too: it has to be waited for
      if ((isCopyIn || node.warp / warpsOfCta != warp.clocks->number / warpsOfCta) &&
          !(node.isWrite ? known.all : known.reads).covers({clusterOf(node.warp), node.first}, node.lanes, node.time))
        return describe(node);
    }
  return "";
}

} // namespace k2c::ptx
