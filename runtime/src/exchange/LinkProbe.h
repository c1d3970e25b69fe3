// What links between ranks carry, measured with the messages of the exchange: headers, deadlines and the communication
// thread are in the numbers, as they are in what a program's collectives take.
//
//   latency     rank 0 and its partner, alone: a message there and one back, many times
//   alone       rank 0 sends to its partner, the others wait
//   together    each rank sends to its partner and receives from another, all at once
#ifndef K2RT_EXCHANGE_LINKPROBE_H
#define K2RT_EXCHANGE_LINKPROBE_H

#include "exchange/Exchange.h"
#include <memory>
#include <vector>

namespace k2c::runtime {

/// Ranks in units of `inner`, of which `count`, two or more, follow one another and are joined by links: a rank's
/// partner is the one with its place in the next of them. The ranks of an exchange are whole such groups.
struct LinkTier {
  int32_t inner = 1, count = 2;
};

/// In one direction, of one rank.
struct LinkRates {
  double latencySeconds = 0;
  double aloneBytesPerSecond = 0, togetherBytesPerSecond = 0;
  int64_t aloneBytes = 0, togetherBytes = 0; ///< of the messages whose time was taken
};

/// How long it looks.
struct ProbeTimes {
  Clock::duration round = std::chrono::milliseconds(50);     ///< of a message, at least, unless the largest takes less
  Clock::duration enough = std::chrono::milliseconds(250);   ///< for one number
  Clock::duration longest = std::chrono::milliseconds(1000); ///< likewise, where a message takes long
};

class LinkProbe {
public:
  explicit LinkProbe(std::unique_ptr<Exchange> exchange, const ProbeTimes &limits = {});

  /// Called by all ranks, for the same tiers in one order: the same rates on all of them. A tier takes about a second,
  /// a few where its links carry less than some 10 KB in one.
  Expected<LinkRates> measure(const LinkTier &tier);
  /// After the last tier, in all ranks.
  Status close() { return exchange->close(); }
  /// This rank has no further part in the run. Behind a failure the buffers stay, as a library of another process may
  /// still read them.
  void leave() { exchange.reset(); }
  /// Ends the run in all ranks.
  void fail(Error error) { exchange->fail(std::move(error)); }
  /// Safe in a signal handler.
  void interrupt() { exchange->interrupt(); }

private:
  struct Buffer {
    std::unique_ptr<char[]> data;
    int64_t bytes = 0;
    /// At least so many. All are written: pages that nobody wrote would be one page.
    char *reserve(int64_t atLeast);
  };

  int32_t partner(int32_t distance) const;
  Collective message(Op op, int32_t peer, void *data, int64_t bytes) const;
  Expected<Clock::duration> longest(Clock::duration own);
  Status ping(std::vector<Clock::duration> &trips);
  Status answer();
  Status measureLatency(double &seconds);
  Expected<Clock::duration> round(bool isAlone, int64_t bytes);
  Status measureRate(bool isAlone, double &bytesPerSecond, int64_t &bytes);

  const ProbeTimes limits;
  LinkTier tier;
  Clock::duration roundTime{0}; ///< at least limits.round
  int64_t isLast = 0;           ///< of the messages of a trip
  int64_t ownTime = 0, longestTime = 0;
  std::vector<int64_t> times; ///< of all ranks
  Buffer outgoing, incoming;
  std::unique_ptr<Exchange> exchange; ///< last: it may hold buffers of the above
};

} // namespace k2c::runtime

#endif
