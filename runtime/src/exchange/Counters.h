// What the collectives of a rank moved and took, by site.
#ifndef K2RT_EXCHANGE_COUNTERS_H
#define K2RT_EXCHANGE_COUNTERS_H

#include "exchange/Collective.h"
#include "exchange/CollectiveRequest.h"
#include <cstdint>
#include <map>

namespace k2c::runtime {

/// Bytes are those that this rank sent to others. Seconds are from start to end of a collective, waited ones those
/// from its wait to its end, in which the rank's workers had nothing to do.
struct SiteCounters {
  Op op;
  Axis axis;
  int32_t layer = -1;
  int64_t calls = 0;
  int64_t payloadBytes = 0;
  int64_t controlBytes = 0; ///< headers, and the payload of collectives that carry no rows
  double seconds = 0;
  double waitedSeconds = 0;
  std::map<int32_t, double> waitedFor; ///< of waitedSeconds, those that ended with a message of this rank
};

class Counters {
public:
  /// A collective is over; its rank has waited for it from `waitBegin` on.
  void count(const Collective &collective, const RequestTotals &totals, Clock::time_point waitBegin);
  const std::map<uint32_t, SiteCounters> &sites() const { return bySite; }

private:
  std::map<uint32_t, SiteCounters> bySite;
};

} // namespace k2c::runtime

#endif
