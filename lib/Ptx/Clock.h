//===- Clock.h - What a thread knows to have happened ---------------------===//
//
// A vector clock: for each thread of the launch the time up to which all that it did happened before. Threads that left
// the same barrier know the same, and share it: what is shared is never changed.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PTX_CLOCK_H
#define K2C_LIB_PTX_CLOCK_H

#include <cstdint>
#include <map>
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
  /// Whether what `agent` did at `time` happened before.
  bool covers(const Agent &agent, uint32_t time) const;
  /// All that `other` knows is known then.
  void join(const Clock &other);
  /// All that 32 threads from `first` on, those in `lanes`, have done up to `time` is known then.
  void add(const Agent &first, uint32_t lanes, uint32_t time);

private:
  using Times = std::vector<uint32_t>; ///< by number; those behind its end are 0

  std::map<uint64_t, std::shared_ptr<const Times>> clusters;
};

/// What a thread knows, and of that what the asynchronous proxy sees, too: what was written before a proxy fence that
/// is known. (PTX ISA 8.6)
struct Knowledge {
  Clock all, async;

  void join(const Knowledge &other) {
    all.join(other.all);
    async.join(other.async);
  }
};

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_CLOCK_H
