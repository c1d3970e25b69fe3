// One loop that polls everything a rank has under way and never waits in a library:
//
//   control messages -> requests -> deadlines -> end of the run
//
// It spins while something is in flight and a worker waits, since then the rank's processor has nothing else to do;
// otherwise it sleeps until its bell rings (transports of one process ring it for each message) or a nap is over.
#include "exchange/Communicator.h"
#include "transport/RankText.h"
#include <sched.h>
#include <sys/prctl.h>
#include <utility>

namespace k2c::runtime {

void Posts::fail(Error error, int32_t rank) {
  {
    std::lock_guard<std::mutex> hold(lock);
    if (first)
      return;
    first = std::move(error);
    *failedRank = rank;
  }
  failed.store(true);
  finished.ring();
}

Error Posts::failure() const {
  std::lock_guard<std::mutex> hold(lock);
  return *first;
}

/// Beyond this, a rank that leaves does not wait for its last words to be sent.
static constexpr std::chrono::milliseconds lastWordsTime{300};
/// More than any nap, and what a busy host adds to one. Between polls that lie further apart this thread could not run.
static constexpr std::chrono::milliseconds usualGap{100};
static constexpr int32_t maxForgiven = 4;

void Communicator::run() {
  ::prctl(PR_SET_TIMERSLACK, 1); // naps are short: the default would add 50 microseconds to each
  std::optional<Clock::time_point> leaving;
  for (int32_t idle = 0;;) {
    const uint32_t heard = transport.bell().heard();
    const Clock::time_point lastPoll = std::exchange(now, Clock::now());
    if (now - lastPoll > usualGap)
      forgive(now - lastPoll);
    const bool hasMoved = poll();
    if (end())
      return;
    if (posts.isLeaving && !leaving)
      leaving = now;
    if (leaving && (now - *leaving > lastWordsTime || (isFailureTold && control.isFlushed())))
      return;
    idle = hasMoved ? 0 : idle + 1;
    if (hasMoved)
      continue;
    if (anyWaits && idle < posts.spins)
      ::sched_yield();
    else
      transport.bell().wait(heard, transport.nap(anyWaits                              ? Pace::awaited
                                                 : anyInFlight || !control.isFlushed() ? Pace::underWay
                                                                                       : Pace::idle));
  }
}

/// Time in which this thread could not run, as that of a suspended process, is no delay of the ranks it waits for. A
/// library that takes its time in every call is no such case: after a few gaps time counts as it does elsewhere, up to
/// the next collective that comes to its end.
void Communicator::forgive(Clock::duration lost) {
  if (++forgiven > maxForgiven)
    return;
  const auto moveOn = [lost](std::atomic<Clock::rep> &since) {
    Clock::rep then = since;
    if (then != 0) // what a worker writes meanwhile is later
      since.compare_exchange_strong(then, then + lost.count());
  };
  for (Posts::Slot &slot : posts.slots)
    moveOn(slot.waitingSince);
  moveOn(posts.closingSince);
  if (inquiry)
    inquiry->forgive(lost);
}

bool Communicator::poll() {
  bool hasMoved = hearPeers();
  if (posts.hasFailed() && !isFailureTold) {
    const Error failure = posts.failure();
    if (!isFailureFromPeer)
      control.sendToOthers(ControlKind::failure, failure.code, failure.text());
    isFailureTold = true;
    return true;
  }
  anyInFlight = anyWaits = false;
  if (posts.hasFailed())
    return hasMoved;
  hasMoved |= advanceRequests();
  watchDeadlines();
  return hasMoved;
}

bool Communicator::hearPeers() {
  Expected<const ControlMessage *> message = control.poll();
  if (!message) {
    posts.fail(message.takeError());
    return false;
  }
  if (!*message)
    return false;
  hear(**message);
  return true;
}

void Communicator::hear(const ControlMessage &message) {
  switch (message.kind) {
  case ControlKind::question:
    control.send(message.source, ControlKind::answer, K2RT_OK, whatWorkersDo());
    return;
  case ControlKind::answer:
    if (inquiry)
      inquiry->hear(message);
    return;
  case ControlKind::failure:
    isFailureFromPeer = !posts.hasFailed();
    posts.fail(Error{message.code, "rank " + std::to_string(message.source),
                     std::string("has ended the run: ") + message.text.data(), ""},
               message.source);
    return;
  case ControlKind::farewell:
    return; // counted by control
  }
}

std::string Communicator::whatWorkersDo() const {
  if (posts.closingSince != 0)
    return "its workers have ended the run";
  for (const Posts::Slot &slot : posts.slots)
    if (slot.state == Posts::State::running && slot.waitingSince != 0)
      return "its workers wait at " + placeOf(slot.request.collective()) + " for " +
             rankList(slot.request.unfinishedRanks());
  return lastStarted ? "its workers hang behind " + placeOf(*lastStarted)
                     : "its workers hang before the first collective";
}

bool Communicator::advanceRequests() {
  bool hasMoved = false;
  for (Posts::Slot &slot : posts.slots) {
    Posts::State state = slot.state.load();
    if (state == Posts::State::posted) {
      lastStarted = slot.request.collective();
      slot.state = state = Posts::State::running;
    }
    if (state != Posts::State::running)
      continue;
    anyInFlight = true;
    anyWaits |= slot.waitingSince != 0;
    Expected<bool> has = slot.request.advance(transport);
    if (!has) {
      posts.fail(has.takeError());
      return true;
    }
    hasMoved |= *has;
    if (!slot.request.isDone())
      continue;
    if (inquiry && &inquiry->about() == &slot.request)
      inquiry.reset(); // it came after all
    slot.state = Posts::State::done;
    forgiven = 0;
    posts.finished.ring();
  }
  return hasMoved;
}

void Communicator::watchDeadlines() {
  if (inquiry) {
    if (inquiry->isOver(now))
      endInquiry();
    return;
  }
  if (!anyWaits)
    return;
  for (Posts::Slot &slot : posts.slots) {
    const Clock::rep since = slot.waitingSince;
    if (slot.state == Posts::State::running && since != 0 &&
        now.time_since_epoch().count() - since > slot.request.collective().deadlines * deadline.count()) {
      inquiry.emplace(slot.request, control);
      return;
    }
  }
}

/// A deadline is over for good, or begins again for a collective that has patience with whoever is alive.
void Communicator::endInquiry() {
  const CollectiveRequest &about = inquiry->about();
  if (!about.collective().isPatient || !inquiry->haveAllAnswered()) {
    posts.fail(inquiry->error(about.collective().deadlines * deadline));
    return;
  }
  for (Posts::Slot &slot : posts.slots)
    if (&slot.request == &about)
      slot.waitingSince = now.time_since_epoch().count();
  inquiry.reset();
}

/// Says farewell once the workers have, and waits for that of all others.
bool Communicator::end() {
  const Clock::rep since = posts.closingSince;
  if (since == 0 || posts.hasFailed())
    return false;
  if (!isFarewellSaid) {
    control.sendToOthers(ControlKind::farewell);
    control.send(transport.rank(), ControlKind::farewell);
  }
  isFarewellSaid = true;
  if (control.haveAllEnded() && control.isFlushed()) {
    posts.closedSince = now.time_since_epoch().count();
    posts.finished.ring();
    if (Status closed = transport.close(); !closed)
      posts.fail(closed.takeError());
    posts.hasEnded = true;
    posts.finished.ring();
    return true;
  }
  if (now.time_since_epoch().count() - since > deadline.count())
    posts.fail(Error{K2RT_DEADLINE, "end of the run",
                     "the deadline of " + secondsText(deadline) + " has passed before " +
                         rankList(control.ranksInRun()) + " ended the run",
                     "a longer deadline helps ranks that are slow"});
  return false;
}

} // namespace k2c::runtime
