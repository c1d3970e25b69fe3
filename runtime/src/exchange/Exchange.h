// Collectives of a rank: started by its workers, carried out by its communication thread, waited for when their
// results are needed.
//
//   open -> agree -> bind -> start, start, compute, wait, wait -> ... -> close
//
// Up to bind ranks have nothing in common but the world, in which they can agree on a program.
// One worker of the rank at a time calls start and wait; the others stand at a barrier around it. Every failure, of
// this rank or another, ends the run in all ranks: from then on every call returns the error of the one that was first.
#ifndef K2RT_EXCHANGE_EXCHANGE_H
#define K2RT_EXCHANGE_EXCHANGE_H

#include "exchange/Collective.h"
#include "exchange/Communicator.h"
#include "exchange/Counters.h"
#include "transport/Transport.h"
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <thread>

namespace k2c::runtime {

/// A collective that was started, until it is waited for.
using RequestId = int32_t;
/// Makes the transport of a rank, on the thread that will use it.
using TransportMaker = std::function<Expected<std::unique_ptr<Transport>>()>;

/// Of every wait, unless a user says another.
inline constexpr std::chrono::seconds defaultDeadline{30};

class Exchange {
public:
  /// Starts the communication thread, which runs where the caller may. `deadline`: of every wait.
  static Expected<std::unique_ptr<Exchange>> open(const TransportMaker &maker, Clock::duration deadline);
  /// Once, before the first collective of a program, the hash of whose program.so is `program`: equal on all ranks.
  /// Fails where the ranks are not those of `grid`. `spins`: polls before a thread that waits sleeps, many where each
  /// has a processor of its own.
  Status bind(const Grid &grid, uint64_t program, int32_t spins);
  /// Without close before, the run ends in failure: other ranks are told that this one has left.
  ~Exchange();
  Exchange(const Exchange &) = delete;
  Exchange &operator=(const Exchange &) = delete;

  int32_t rank() const { return ownRank; }
  int32_t ranks() const { return grid.ranks(); }
  Group group(Axis axis) const { return grid.group(axis, ownRank); }

  /// Its buffers are the exchange's until the wait, after a failure until it is destroyed. At most Posts::maxInFlight
  /// are in flight.
  Expected<RequestId> start(const Collective &collective);
  /// Returns when the collective is over: each start has one wait.
  Status wait(RequestId request);
  /// start and wait.
  Status run(const Collective &collective);

  /// Ends the run in all ranks: their calls return this error.
  void fail(Error error);
  /// Ends the running or next wait early with K2RT_INTERRUPTED. Safe in a signal handler.
  void interrupt();
  /// After the last wait, in all ranks: returns when all have come so far, at most after the deadline. The transport
  /// has the deadline, too, to close; one that then has not is left to its thread, and no failure.
  Status close();

  /// Calls it with each collective that was waited for, what it moved, and when its wait began.
  using WhenOver = std::function<void(const Collective &, const RequestTotals &, Clock::time_point waitBegin)>;
  void setWhenOver(WhenOver call) { whenOver = std::move(call); }
  /// Of what was waited for since bind.
  const Counters &counters() const { return theCounters; }
  /// The rank whose failure has ended the run, -1: this one's, or none; to be read when the exchange is gone.
  std::shared_ptr<const std::atomic<int32_t>> failedRank() const { return posts.failedRank; }

private:
  /// What the communication thread uses: it has its part of it, as a library may keep it for ever in its last call.
  struct Link {
    Posts posts;
    std::unique_ptr<Transport> transport; ///< made and used by the thread
  };

  explicit Exchange(Clock::duration deadline) : deadline(deadline), link(std::make_shared<Link>()) {}
  Status startThread(const TransportMaker &maker);
  int32_t tagOf(const Collective &collective, const Group &group);
  template <class Done> Status waitUntil(Done isDone);
  bool endsInTime();
  void leave();

  const Clock::duration deadline;
  Grid grid;
  uint64_t program = 0;
  int32_t ownRank = 0;
  const std::shared_ptr<Link> link;
  Posts &posts = link->posts;
  std::thread thread;
  std::atomic<bool> interrupted{false};
  std::array<uint32_t, axisCount> started{};               ///< collectives of each axis so far
  std::map<std::array<int32_t, 3>, uint32_t> startedPairs; ///< sends and receives by axis, sender, receiver
  Counters theCounters;
  WhenOver whenOver;
};

} // namespace k2c::runtime

#endif
