//===- Races.h - Accesses that nothing orders -----------------------------===//
//
// Two accesses of different threads to a byte, of which one writes, are a race unless one happens before the other or
// both are strong, in each other's scope, and of the same bytes (PTX ISA, Conflict and Data-races). What happens before
// is known from barriers, and from values that were released and acquired, not from the order in which this machine
// runs warps: a race is found in any schedule in which both accesses happen.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PTX_RACES_H
#define K2C_LIB_PTX_RACES_H

#include "Clock.h"
#include "Execution.h"

#include <deque>
#include <unordered_map>

namespace k2c::ptx {

/// Bytes of a memory, which is known by its first one.
struct Touched {
  const void *data; ///< of the memory
  uint64_t size;
  Proxied where;
  uint64_t offset, bytes;
  uint32_t reduced = 0; ///< bytes of the elements to which a copy adds, each at once; 0: it does not
};

class Races {
public:
  Races(const Program &program, uint32_t warpsOfCta, uint32_t warpsOfCluster)
      : program(program), warpsOfCta(warpsOfCta), warpsOfCluster(warpsOfCluster) {}

  /// `lane` accesses bytes. What it races with; empty: nothing.
  std::string access(Warp &warp, const Operation &operation, int lane, const Touched &at, Access access);
  /// The same of a weak access of all lanes of `active`: `offsets` of `bytes` bytes each in the memory of `at`; words
  /// are not shared by lanes' bytes unless they are whole.
  std::string accessTogether(Warp &warp, const Operation &operation, uint32_t active, const Touched &at,
                             const uint64_t *offsets, uint32_t bytes, Access access);
  /// What was shared memory at `data` ends.
  void forget(const void *data) { memories.erase(data), last = nullptr; }

  // Barriers: who arrives gives what it knows, and takes it when it leaves.
  void release(Warp &warp, uint32_t lanes, Knowledge &given);
  void acquire(Warp &warp, uint32_t lanes, const Knowledge &given);
  /// Lanes that meet know the same then.
  void meet(Warp &warp, uint32_t lanes);

  // What strong accesses and fences order (Strong.cpp).

  /// Operation::target of a fence.
  enum Fence : uint32_t { Acquires = 1, Releases = 2, IsSequential = 4 };
  void fence(Warp &warp, const Operation &operation, uint32_t lanes);
  /// What arrivals without an order of their own give: what a fence of `scope` or more before them has.
  void releaseFenced(Warp &warp, uint32_t lanes, Scope scope, Knowledge &given);
  /// What waits without an order of their own see, for the next fence of `scope`.
  void acquireLater(Warp &warp, uint32_t lanes, Scope scope, const Knowledge &given);
  /// The value that a strong read of `lane` gets in place of the newest one: an older one that nothing forbids it to
  /// see. Null: the newest. `draw`: a random number.
  const std::byte *older(Warp &warp, const Operation &operation, int lane, const Touched &at, uint64_t draw);
  /// What strong writes have written is in memory by now.
  void settle();

  // The asynchronous proxy: copies and matrix products go on while their threads do, as agents of their own.

  /// An agent of the warp's cluster that has done nothing.
  Agent addAgent(const Warp &warp);
  /// What `agent` does at `time`, on behalf of `lane`, as access() says it; `isProxy`: in the asynchronous proxy.
  std::string copy(Warp &warp, const Operation &operation, int lane, const Agent &agent, uint32_t time, bool isProxy,
                   const Touched &at, bool isWrite);
  /// Generic writes that the lanes know of are seen by the asynchronous proxy from now on.
  void fenceProxy(Warp &warp, uint32_t lanes, Proxied where);
  /// The lanes know what `agent` has done up to `time`.
  void learn(Warp &warp, uint32_t lanes, const Agent &agent, uint32_t time);

  // mbarriers: who uses one knows that it was made; copies and other CTAs do behind a fence.

  void make(Warp &warp, int lane, const Agent &object);
  void fenceMade(Warp &warp, uint32_t lanes);
  bool isMade(const Warp &warp, int lane, const Agent &object, bool isProxy) const;

  /// Whether the lane knows of something that CTA `rank` of its cluster has done.
  bool hasBegun(const Warp &warp, int lane, uint32_t rank) const;

  /// An access to the memory at `data` by another CTA than that of `warp`, or a bulk copy to it, of which `known` does
  /// not know; empty: none.
  std::string strangerTo(const Warp &warp, const void *data, const Knowledge &known) const;

private:
  /// An instruction's accesses to a word of memory, by lanes of one warp or by an agent.
  struct Node {
    uint32_t next;
    uint32_t warp;         ///< in the launch; of an agent: who made it act
    uint32_t first, lanes; ///< numbers of agents in the cluster, from `first` on
    uint32_t time, instruction;
    uint8_t bytes;   ///< of the word
    uint8_t element; ///< bytes of the access, if it is strong
    bool isWrite, isStrong;
    bool isAgent, isProxy; ///< it is no thread; it acts in the asynchronous proxy
    bool isConstant;       ///< a read of what no thread of the launch writes
    Scope scope;
  };
  /// What a strong write publishes to who sees it from within `scope` of `warp`.
  struct Published {
    Knowledge knowledge;
    Scope scope;
    uint32_t warp;
  };
  /// A strong write, or what was there before the first of them.
  struct Version {
    std::byte value[8];
    Agent writer;
    uint32_t time; ///< 0: it has always been there
    std::vector<Published> published;
  };
  struct Sight {
    Agent reader;
    uint32_t time;
    uint64_t version;
  };
  /// Bytes that strong accesses of one size access.
  struct Location {
    uint32_t bytes = 0;
    bool isMixed = false; ///< they are of several sizes: the newest value is seen
    uint64_t newest = 0;  ///< number of versions.back()
    std::deque<Version> versions;
    std::vector<Sight> sights; ///< the last of each reader
  };
  /// A version whose value is not known yet.
  struct Fresh {
    const std::byte *from;
    Location *location;
    uint64_t version;
  };
  struct Memory {
    Proxied where;
    std::vector<uint32_t> heads;                      ///< a word each: its last node; 0: none
    std::unordered_map<uint64_t, Location> locations; ///< by offset
  };

  /// An access that one of the instruction that `goneWarp` executes at `goneTime` has superseded.
  struct Gone {
    const Memory *memory;
    uint64_t word;
    Node node;
  };

  uint64_t clusterOf(uint32_t warp) const { return warp / warpsOfCluster; }
  Agent agentOf(uint32_t warp, int lane) const {
    return {clusterOf(warp), warp % warpsOfCluster * warpLanes + static_cast<uint32_t>(lane)};
  }
  Memory &memoryAt(const Touched &at);
  bool isInScope(uint32_t warp, uint32_t other, Scope scope) const;
  bool isOrdered(const Node &node, const Node &made, const Knowledge &known, Proxied where) const;
  bool isSame(const Node &node, const Node &made) const {
    return node.warp == made.warp && node.time == made.time && node.isAgent == made.isAgent &&
           node.instruction == made.instruction && (!made.isAgent || node.first == made.first);
  }
  bool isConflict(const Node &node, const Node &made) const;
  Node nodeOf(const Warp &warp, const Operation &operation, Access access) const;
  std::string describe(const Node &node, bool isConstant = false) const;
  std::string note(Memory &memory, uint64_t word, Node &made, const Knowledge &known);
  void take(uint32_t &head, Node &made);
  void drop(uint32_t &link);
  void leave(const Memory &memory, uint64_t word, const Node &node, const Node &made);
  bool hasNotedRead(uint32_t &head, Node &made, const Knowledge &known, const Knowledge *others);
  bool hasNotedReads(Memory &memory, uint64_t word, Node &made, const Knowledge &known);
  Location &locationAt(Memory &memory, uint64_t offset, uint32_t bytes, const std::byte *value);
  void publish(Location &location, Warp &warp, const Operation &operation, int lane, Access access,
               const std::byte *from);
  void see(const Version &version, Warp &warp, const Operation &operation, int lane);
  void forgetVersions(Memory &memory, uint64_t offset, uint64_t bytes);

  const Program &program;
  uint32_t warpsOfCta, warpsOfCluster;
  std::unordered_map<const void *, Memory> memories;
  Memory *last = nullptr; ///< what was asked for last, at `lastData`
  const void *lastData = nullptr;
  std::vector<Fresh> fresh;
  std::unordered_map<uint64_t, uint32_t> agents; ///< by cluster: how many there are beside its threads
  std::vector<Node> nodes{1};
  uint32_t freed = 0; ///< a list of nodes
  std::vector<Gone> gone;
  uint32_t goneWarp = 0, goneTime = 0;
  std::map<uint64_t, Knowledge> sequential[3]; ///< what fence.sc of each scope knew: by CTA, by cluster, of all
};

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_RACES_H
