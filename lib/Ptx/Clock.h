//===- Clock.h - What a thread knows to have happened ---------------------===//
//
// A vector clock: for each thread of the launch the time up to which all that it did happened before. Threads that left
// the same barrier know the same, and share it: what is shared is never changed.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PTX_CLOCK_H
#define K2C_LIB_PTX_CLOCK_H

#include <cstdint>
#include <memory>
#include <vector>

namespace k2c::ptx {

/// A thread of the launch: its cluster, and its number there.
struct Agent {
  uint64_t cluster;
  uint32_t number;
};

class Clock {
public:
  /// Whether what `lanes` of the 32 threads from `first` on did at `time` happened before.
  bool covers(const Agent &first, uint32_t lanes, uint32_t time) const;
  /// Whether something that one of `count` threads from `first` on did happened before.
  bool coversAny(const Agent &first, uint32_t count) const;
  /// All that `other` knows is known then.
  void join(const Clock &other);
  /// All that 32 threads from `first` on, those in `lanes`, have done up to `time` is known then.
  void add(const Agent &first, uint32_t lanes, uint32_t time);
  /// Whether both share all that they know.
  bool isSame(const Clock &other) const { return clusters == other.clusters; }

private:
  using Times = std::vector<uint32_t>; ///< by number; those behind its end are 0
  struct OfCluster {
    uint64_t cluster;
    std::shared_ptr<Times> times;

    bool operator==(const OfCluster &other) const { return cluster == other.cluster && times == other.times; }
  };

  std::shared_ptr<Times> &timesOf(uint64_t cluster);

  std::vector<OfCluster> clusters; ///< in ascending order
};

/// Which memory a proxy fence is about.
enum class Proxied : uint8_t { Shared, Global };

/// What a thread knows, and of that what the asynchronous proxy sees, too: what was written before a proxy fence that
/// is known (PTX ISA, Proxies). Reads that happened before, and copies before copies, are a clock of their own: some
/// synchronisation orders no more than these (MBarriers.cpp).
struct Knowledge {
  Clock all, reads, async[2]; ///< async: by Proxied

  bool isSame(const Knowledge &other) const {
    return all.isSame(other.all) && reads.isSame(other.reads) && async[0].isSame(other.async[0]) &&
           async[1].isSame(other.async[1]);
  }
  void join(const Knowledge &other) {
    const bool isOne = reads.isSame(all) && other.reads.isSame(other.all);
    all.join(other.all);
    if (isOne)
      reads = all;
    else
      reads.join(other.reads);
    async[0].join(other.async[0]);
    async[1].join(other.async[1]);
  }
  void add(const Agent &first, uint32_t lanes, uint32_t time) {
    const bool isOne = reads.isSame(all);
    if (isOne)
      reads = {}; // what is shared would be copied
    all.add(first, lanes, time);
    if (isOne)
      reads = all;
    else
      reads.add(first, lanes, time);
  }
};

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_CLOCK_H
