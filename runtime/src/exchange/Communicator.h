// The communication thread of a rank: all that happens between a start and the end of its wait.
#ifndef K2RT_EXCHANGE_COMMUNICATOR_H
#define K2RT_EXCHANGE_COMMUNICATOR_H

#include "exchange/CollectiveRequest.h"
#include "exchange/Control.h"
#include "exchange/Inquiry.h"
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

namespace k2c::runtime {

/// What workers and the communication thread of a rank share.
struct Posts {
  static constexpr int32_t maxInFlight = 32;
  enum class State : uint32_t { free, posted, running, done };
  struct Slot {
    std::atomic<State> state{State::free};   ///< whose turn it is: workers' when free or done, else the thread's
    std::atomic<Clock::rep> waitingSince{0}; ///< 0: nobody waits yet
    CollectiveRequest request;
  };

  std::array<Slot, maxInFlight> slots;
  Doorbell finished;                       ///< rung whenever a slot is done, or everything has failed
  std::atomic<Clock::rep> closingSince{0}; ///< 0: the run goes on
  std::atomic<Clock::rep> closedSince{0};  ///< 0: not all ranks have said farewell
  std::atomic<bool> hasEnded{false};       ///< the transport is closed, and its thread at its end
  std::atomic<int32_t> spins{0};           ///< fruitless polls, while a worker waits, before a thread sleeps
  std::atomic<bool> isLeaving{false};      ///< this rank has no further part in the run

  /// Whose failure has ended the run; -1: this rank's, or none. Who asks for it behind the run has it, too.
  const std::shared_ptr<std::atomic<int32_t>> failedRank = std::make_shared<std::atomic<int32_t>>(-1);

  /// Ends everything that is in flight or comes later. The first failure counts. `rank`: as failedRank.
  void fail(Error error, int32_t rank = -1);
  bool hasFailed() const { return failed.load(); }
  /// Once hasFailed.
  Error failure() const;

private:
  std::atomic<bool> failed{false};
  mutable std::mutex lock;
  std::optional<Error> first; ///< guarded by `lock`
};

class Communicator {
public:
  Communicator(Transport &transport, Posts &posts, Clock::duration deadline)
      : transport(transport), posts(posts), deadline(deadline), control(transport) {}

  /// Until the run has ended in all ranks, or has failed and this rank leaves.
  void run();

private:
  void forgive(Clock::duration lost);
  bool poll();
  bool hearPeers();
  void hear(const ControlMessage &message);
  bool advanceRequests();
  void watchDeadlines();
  void endInquiry();
  bool end();
  std::string whatWorkersDo() const;

  Transport &transport;
  Posts &posts;
  const Clock::duration deadline;
  Control control;
  Clock::time_point now = Clock::now(); ///< when this poll began; what happens in it counts from then
  std::optional<Collective> lastStarted;
  std::optional<Inquiry> inquiry; ///< one at a time: the first one ends the run, or finds it going on
  int32_t forgiven = 0;           ///< gaps since a collective ended
  bool anyInFlight = false, anyWaits = false;
  bool isFailureFromPeer = false, isFailureTold = false, isFarewellSaid = false;
};

} // namespace k2c::runtime

#endif
