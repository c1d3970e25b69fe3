// What carries messages between ranks: the exchange's whole view of threads of one process, of an MPI library, or of
// UCX.
//
// A message is matched by (peer, tag), and by order among those of one peer and tag. Order alone would not do: of two
// collectives in flight, which rank reaches the second round of the first one sooner is a matter of time. Nor would
// tags alone: a header and what follows it have the same one. MPI matches in just this way.
//
// One thread uses a transport, that which made it; only the bell is for all. Nothing here waits.
#ifndef K2RT_TRANSPORT_TRANSPORT_H
#define K2RT_TRANSPORT_TRANSPORT_H

#include "base/Error.h"
#include "transport/Doorbell.h"
#include <chrono>
#include <cstdint>

namespace k2c::runtime {

using Clock = std::chrono::steady_clock;

/// A posted message, until test() says that it is done.
using Ticket = int32_t;
inline constexpr Ticket noTicket = -1;
/// As the peer of a receive: whoever sends first.
inline constexpr int32_t anyPeer = -1;
/// Tags are below this: what every MPI library takes.
inline constexpr int32_t tagLimit = 32768;

/// How soon the thread of a transport should look again: no message is under way, some are while workers compute, whose
/// processor it takes when it looks, or workers wait for one.
enum class Pace : uint8_t { idle, underWay, awaited };

class Transport {
public:
  /// What was posted and is not done is taken back where that is possible.
  virtual ~Transport() = default;

  virtual int32_t rank() const = 0;
  virtual int32_t ranks() const = 0;
  /// Posts a message to a rank, which may be this one. `data` is read until the ticket is done.
  virtual Ticket send(int32_t peer, int32_t tag, const void *data, int64_t bytes) = 0;
  /// Posts a receive of a message of at most `capacity` bytes, and of exactly so many where they are more than
  /// maxShortBytes. `data` is written until the ticket is done.
  virtual Ticket receive(int32_t peer, int32_t tag, void *data, int64_t capacity) = 0;
  /// Whether the message is sent or received; then the ticket is free for others. What failed when it was posted, or
  /// since, is reported here.
  virtual Expected<bool> test(Ticket ticket) = 0;
  /// Rung by who posts work to the thread of this transport, and by peers where those can.
  virtual Doorbell &bell() = 0;
  /// How long that thread may sleep.
  virtual std::chrono::microseconds nap(Pace pace) const = 0;
  /// After the last message, in all ranks: ends the library in good order.
  virtual Status close() = 0;
};

/// Messages up to this size may be shorter than the receive that takes them.
inline constexpr int64_t maxShortBytes = 512;

} // namespace k2c::runtime

#endif
