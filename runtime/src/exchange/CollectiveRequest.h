// A collective under way: its rounds, the messages of the current one, and what has come of them.
#ifndef K2RT_EXCHANGE_COLLECTIVEREQUEST_H
#define K2RT_EXCHANGE_COLLECTIVEREQUEST_H

#include "exchange/Header.h"
#include "exchange/Schedule.h"
#include "transport/Transport.h"
#include <array>
#include <chrono>
#include <vector>

namespace k2c::runtime {

/// Links between two ranks: within a node, or between two.
inline constexpr size_t tierCount = 2;

struct SentBytes {
  int64_t payload = 0, headers = 0;
  int64_t messages = 0; ///< rows of a collective of rows, payloads of others
};

/// What a collective moved, and when.
struct RequestTotals {
  std::array<SentBytes, tierCount> sent; ///< to other ranks
  int32_t last = -1;                     ///< the rank whose message came last; -1: none came
  Clock::time_point begin, end;
};

class CollectiveRequest {
public:
  /// Before advance: what to do, and by which tag of the group. The collective's arrays of rows are read until the end.
  /// `perNode`: ranks of a node, by which what is sent is counted.
  void begin(const Collective &what, const Group &among, int32_t messageTag, uint64_t programHash, int32_t perNode);
  /// Posts and tests messages: whether anything has moved. Once isDone, no more.
  Expected<bool> advance(Transport &transport);
  bool isDone() const { return round == rounds; }

  const Collective &collective() const { return what; }
  const RequestTotals &totals() const { return sums; }

  /// The ranks whose header of the current round has not come: they have not posted it.
  std::vector<int32_t> absentRanks() const;
  /// The ranks with which a message is under way: those above, and those that have not taken or finished one.
  std::vector<int32_t> unfinishedRanks() const;
  /// Payload of the current round that must come, and of it what has.
  int64_t expectedBytes() const;
  int64_t receivedBytes() const;

private:
  enum class Stage : uint8_t { header, payload, done };
  struct Outgoing {
    Envelope envelope;
    Ticket header, payload;
  };
  struct Incoming {
    Envelope envelope;
    Ticket ticket;
    Stage stage;
    int64_t bytes; ///< what the header says
  };

  void post(Transport &transport);
  Expected<bool> advanceSends(Transport &transport);
  Expected<bool> advanceReceives(Transport &transport);
  Status take(Transport &transport, const Receiving &wanted, Incoming &incoming);

  Collective what;
  Group group;
  int32_t tag = 0;
  uint64_t program = 0;
  int32_t nodeRanks = 1;
  int32_t round = 0, rounds = 0;
  bool isPosted = false;
  Round current;
  std::vector<Outgoing> outgoing; ///< by current.sends
  std::vector<Incoming> incoming; ///< by current.receives
  size_t unfinished = 0;          ///< messages of the current round
  RequestTotals sums;
};

} // namespace k2c::runtime

#endif
