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

  // Barriers: who arrives gives what it knows to `clock`, and takes it when it leaves.
  void release(Warp &warp, uint32_t lanes, Clock &clock);
  void acquire(Warp &warp, uint32_t lanes, const Clock &clock);
  /// Lanes that meet know the same then.
  void meet(Warp &warp, uint32_t lanes);
  void fence(Warp &warp, const Operation &operation, uint32_t lanes);

private:
  /// An instruction's accesses to a word of memory, by lanes of one warp.
  struct Node {
    uint32_t next, warp, lanes, time, instruction;
    uint8_t bytes; ///< of the word
    bool isWrite, isStrong;
    Scope scope;
  };
  /// What strong writes to a word publish.
  struct Published {
    Clock clock;
    Scope scope;
    uint32_t warp;
  };
  struct Memory {
    std::vector<uint32_t> heads; ///< a word each: its last node; 0: none
    std::unordered_map<uint64_t, Published> published;
  };

  Agent agentOf(uint32_t warp, int lane) const {
    return {warp / warpsOfCluster, warp % warpsOfCluster * warpLanes + static_cast<uint32_t>(lane)};
  }
  bool isInScope(uint32_t warp, uint32_t other, Scope scope) const;
  bool isOrdered(const Node &node, Warp &warp, int lane) const;
  std::string describe(const Node &node) const;
  std::string note(Memory &memory, uint64_t word, Node &made, Warp &warp, int lane);
  void publish(Memory &memory, uint64_t word, Warp &warp, const Operation &operation, int lane, Access access);
  void see(Memory &memory, uint64_t word, Warp &warp, const Operation &operation, int lane);

  const Program &program;
  uint32_t warpsOfCta, warpsOfCluster;
  std::unordered_map<const void *, Memory> memories;
  std::vector<Node> nodes{1};
  uint32_t freed = 0; ///< a list of nodes
};

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_RACES_H
