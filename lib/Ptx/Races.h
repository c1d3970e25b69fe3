//===- Races.h - Accesses that nothing orders -----------------------------===//
//
// Two accesses of different threads to a byte, of which one writes, are a race unless one happens before the other or
// both are strong and in each other's scope (PTX ISA 8.7.1). What happens before is known from barriers, and from
// values that were released and acquired, not from the order in which this machine runs warps: a race is found in any
// schedule in which both accesses happen.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PTX_RACES_H
#define K2C_LIB_PTX_RACES_H

#include "Clock.h"
#include "Execution.h"

#include <unordered_map>

namespace k2c::ptx {

class Races {
public:
  Races(const Program &program, uint32_t warpsOfCta, uint32_t warpsOfCluster)
      : program(program), warpsOfCta(warpsOfCta), warpsOfCluster(warpsOfCluster) {}

  /// `lane` accesses `bytes` bytes at `offset` of the memory at `data`, which has `size` bytes. What it races with;
  /// empty: nothing.
  std::string access(Warp &warp, const Operation &operation, int lane, const void *data, uint64_t size, uint64_t offset,
                     uint32_t bytes, Access access);
  /// What was shared memory at `data` ends.
  void forget(const void *data) { memories.erase(data); }

  // Barriers: who arrives gives what it knows, and takes it when it leaves.
  void release(Warp &warp, uint32_t lanes, Knowledge &given);
  void acquire(Warp &warp, uint32_t lanes, const Knowledge &given);
  /// Lanes that meet know the same then.
  void meet(Warp &warp, uint32_t lanes);
  void fence(Warp &warp, const Operation &operation, uint32_t lanes);

  // The asynchronous proxy: copies and matrix products go on while their threads do, as agents of their own.

  /// An agent of the warp's cluster that has done nothing.
  Agent addAgent(const Warp &warp);
  /// What `agent` does at `time`, on behalf of `lane`, as access() says it; `isProxy`: in the asynchronous proxy.
  std::string copy(Warp &warp, const Operation &operation, int lane, const Agent &agent, uint32_t time, bool isProxy,
                   const void *data, uint64_t size, uint64_t offset, uint64_t bytes, bool isWrite);
  /// Generic writes that the lanes know of are seen by the asynchronous proxy from now on.
  void fenceProxy(Warp &warp, uint32_t lanes);
  /// The lanes know what `agent` has done up to `time`.
  void learn(Warp &warp, uint32_t lanes, const Agent &agent, uint32_t time);

private:
  /// An instruction's accesses to a word of memory, by lanes of one warp or by an agent.
  struct Node {
    uint32_t next;
    uint32_t warp;         ///< in the launch; of an agent: who made it act
    uint32_t first, lanes; ///< numbers of agents in the cluster, from `first` on
    uint32_t time, instruction;
    uint8_t bytes; ///< of the word
    bool isWrite, isStrong;
    bool isAgent, isProxy; ///< it is no thread; it acts in the asynchronous proxy
    Scope scope;
  };
  /// What strong writes to a word publish.
  struct Published {
    Knowledge knowledge;
    Scope scope;
    uint32_t warp;
  };
  struct Memory {
    std::vector<uint32_t> heads; ///< a word each: its last node; 0: none
    std::unordered_map<uint64_t, Published> published;
  };

  uint64_t clusterOf(uint32_t warp) const { return warp / warpsOfCluster; }
  Agent agentOf(uint32_t warp, int lane) const {
    return {clusterOf(warp), warp % warpsOfCluster * warpLanes + static_cast<uint32_t>(lane)};
  }
  Memory &memoryAt(const void *data, uint64_t size);
  bool isInScope(uint32_t warp, uint32_t other, Scope scope) const;
  bool isOrdered(const Node &node, const Node &made, const Knowledge &known) const;
  std::string describe(const Node &node) const;
  std::string note(Memory &memory, uint64_t word, Node &made, const Knowledge &known);
  void publish(Memory &memory, uint64_t word, Warp &warp, const Operation &operation, int lane, Access access);
  void see(Memory &memory, uint64_t word, Warp &warp, const Operation &operation, int lane);

  const Program &program;
  uint32_t warpsOfCta, warpsOfCluster;
  std::unordered_map<const void *, Memory> memories;
  std::unordered_map<uint64_t, uint32_t> agents; ///< by cluster: how many there are beside its threads
  std::vector<Node> nodes{1};
  uint32_t freed = 0; ///< a list of nodes
};

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_RACES_H
