// What the collectives of a rank moved and took, by site and layer.
#ifndef K2RT_EXCHANGE_COUNTERS_H
#define K2RT_EXCHANGE_COUNTERS_H

#include "exchange/Collective.h"
#include "exchange/CollectiveRequest.h"
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace k2c::runtime {

/// Bytes that a rank sent to others.
struct TierCounters {
  int64_t payloadBytes = 0; ///< rows, with what they carry
  int64_t messages = 0;     ///< such rows; of a collective of other things, its payloads
  int64_t controlBytes = 0; ///< headers, and the payload of collectives that carry no rows

  void add(const TierCounters &other);
};

/// Seconds are from start to end of a collective, waited ones those from its wait to its end, in which the rank's
/// workers had nothing to do.
struct SiteCounters {
  Op op = Op::allToAllRows;
  Axis axis = Axis::world;
  int64_t calls = 0;
  std::array<TierCounters, tierCount> tiers;
  double seconds = 0;
  double waitedSeconds = 0;
  std::vector<double> waitedFor; ///< by rank: of waitedSeconds, those that ended with its message; ranks behind: none

  TierCounters total() const;
  /// Those of another rank, of the same calls.
  void add(const SiteCounters &other);
};

class Counters {
public:
  /// A site, and the layer that it exchanges rows of; -1: none.
  using Key = std::pair<int32_t, int32_t>;

  /// A collective is over; its rank has waited for it from `waitBegin` on.
  void count(const Collective &collective, const RequestTotals &totals, Clock::time_point waitBegin);
  const std::map<Key, SiteCounters> &sites() const { return bySite; }
  void add(const Counters &other);

  /// What one rank of `ranks` tells another, as bytes that are the same on all of them: entries of entryWords words of
  /// 64 bits.
  static int64_t entryWords(int32_t ranks);
  std::vector<int64_t> words(int32_t ranks) const;
  /// Refuses numbers that no rank counts.
  static Expected<Counters> read(const std::vector<int64_t> &words, int32_t ranks);

private:
  std::map<Key, SiteCounters> bySite;
};

} // namespace k2c::runtime

#endif
