// The workers' side: a free slot is filled and posted, a wait sleeps until it is done.
//
// A tag says the axis and the number of the collective among those of its axis, so that messages of collectives in
// flight are never mixed up, and messages of ranks that disagree about a collective of one axis do meet and are
// compared. Sends and receives are numbered by pair: a rank takes part in some only. Numbers return after 64, twice
// what may be in flight, and messages of one tag keep their order.
#include "exchange/Exchange.h"
#include <future>
#include <immintrin.h>
#include <string>
#include <system_error>

namespace k2c::runtime {

static constexpr uint32_t tagWindow = 2 * Posts::maxInFlight;
static_assert(controlTag + 1 + 2 * axisCount * tagWindow < tagLimit);
static constexpr std::chrono::milliseconds longestSleep{100};

Expected<std::unique_ptr<Exchange>> Exchange::open(const TransportMaker &maker, Clock::duration deadline) {
  std::unique_ptr<Exchange> exchange(new Exchange(deadline));
  if (Status started = exchange->startThread(maker); !started)
    return started.takeError();
  return exchange;
}

Status Exchange::startThread(const TransportMaker &maker) {
  std::promise<Status> made;
  std::future<Status> outcome = made.get_future();
  const auto serve = [shared = link, deadline = deadline, &maker](std::promise<Status> told) {
    Expected<std::unique_ptr<Transport>> own = maker();
    if (!own) {
      told.set_value(own.takeError());
      return;
    }
    shared->transport = std::move(*own);
    told.set_value({}); // `maker` ends here
    Communicator(*shared->transport, shared->posts, deadline).run();
  };
  try {
    thread = std::thread(serve, std::move(made));
  } catch (const std::system_error &refused) {
    return systemError("communication thread", "cannot be started", refused.code().value());
  }
  Status opened = outcome.get();
  if (opened) {
    ownRank = link->transport->rank();
    grid.dp = grid.ep = link->transport->ranks();
  }
  return opened;
}

Status Exchange::bind(const Grid &agreed, uint64_t hash, int32_t spins) {
  if (Status fits = agreed.check(ranks()); !fits)
    return fits;
  grid = agreed;
  program = hash;
  posts.spins = spins;
  theCounters = Counters();
  return {};
}

/// Whether the communication thread has come to its end, at most the deadline behind the farewells.
bool Exchange::endsInTime() {
  const Clock::time_point limit = Clock::time_point(Clock::duration(posts.closedSince)) + deadline;
  for (;;) {
    const uint32_t heard = posts.finished.heard();
    if (posts.hasEnded)
      return true;
    if (Clock::now() > limit)
      return false;
    posts.finished.wait(heard, longestSleep);
  }
}

/// Behind the farewells nothing is in flight: a thread that a library keeps has nothing of this object or its callers.
void Exchange::leave() {
  posts.isLeaving = true;
  if (link->transport)
    link->transport->bell().ring();
  if (!thread.joinable())
    return;
  if (posts.closedSince == 0 || endsInTime())
    thread.join();
  else
    thread.detach();
}

Exchange::~Exchange() {
  if (posts.closedSince == 0)
    posts.fail(Error{K2RT_PEER_FAILED, "rank " + std::to_string(ownRank), "has left the run before its end", ""});
  leave();
}

int32_t Exchange::tagOf(const Collective &collective, const Group &group) {
  const bool isPair = collective.op == Op::send || collective.op == Op::receive;
  const int32_t axis = static_cast<int32_t>(collective.axis);
  std::array<int32_t, 3> pair{axis, group.self, collective.peer};
  if (collective.op == Op::receive)
    std::swap(pair[1], pair[2]);
  const uint32_t number = isPair ? startedPairs[pair]++ : started[axis]++;
  return static_cast<int32_t>(controlTag + 1 + (2 * axis + isPair) * tagWindow + number % tagWindow);
}

Expected<RequestId> Exchange::start(const Collective &collective) {
  if (posts.hasFailed())
    return posts.failure();
  const Group among = group(collective.axis);
  const RaggedRows &rows = collective.rows;
  if (isRagged(collective.op) && (rows.isCapacity ? rows.sent[among.self] > rows.received[among.self]
                                                  : rows.sent[among.self] != rows.received[among.self]))
    return Error{K2RT_PEER_FAILED, placeOf(collective),
                 "this rank keeps " + std::to_string(rows.sent[among.self]) + " rows of its own and expects " +
                     std::to_string(rows.received[among.self]),
                 ""};
  for (RequestId id = 0; id < Posts::maxInFlight; ++id) {
    Posts::Slot &slot = posts.slots[id];
    if (slot.state != Posts::State::free)
      continue;
    slot.waitingSince = 0;
    slot.request.begin(collective, among, tagOf(collective, among), program, grid.perNode);
    slot.state = Posts::State::posted;
    link->transport->bell().ring();
    return id;
  }
  return Error{K2RT_PEER_FAILED, placeOf(collective),
               std::to_string(Posts::maxInFlight) + " collectives are in flight, as many as there may be",
               "wait for one of them before the next start"};
}

template <class Done> Status Exchange::waitUntil(Done isDone) {
  for (int32_t spin = posts.spins; spin > 0; --spin) {
    if (isDone())
      return {};
    ::_mm_pause();
  }
  for (;;) {
    const uint32_t heard = posts.finished.heard();
    if (isDone())
      return {};
    if (interrupted)
      posts.fail(Error{K2RT_INTERRUPTED, "rank " + std::to_string(ownRank), "interrupted", ""});
    if (posts.hasFailed()) {
      link->transport->bell().ring();
      return posts.failure();
    }
    posts.finished.wait(heard, longestSleep);
  }
}

Status Exchange::wait(RequestId id) {
  Posts::Slot &slot = posts.slots[id];
  const Clock::time_point begin = Clock::now();
  slot.waitingSince = begin.time_since_epoch().count();
  if (Status done = waitUntil([&] { return slot.state == Posts::State::done; }); !done)
    return done;
  theCounters.count(slot.request.collective(), slot.request.totals(), begin);
  if (whenOver)
    whenOver(slot.request.collective(), slot.request.totals(), begin);
  slot.state = Posts::State::free;
  return {};
}

Status Exchange::run(const Collective &collective) {
  Expected<RequestId> request = start(collective);
  return request ? wait(*request) : Status(request.takeError());
}

void Exchange::fail(Error error) {
  posts.fail(std::move(error));
  link->transport->bell().ring();
}

void Exchange::interrupt() {
  interrupted = true;
  posts.finished.ring();
}

Status Exchange::close() {
  posts.closingSince = Clock::now().time_since_epoch().count();
  link->transport->bell().ring();
  if (Status closed = waitUntil([&] { return posts.closedSince != 0 && !posts.hasFailed(); }); !closed)
    return closed;
  (void)endsInTime();
  return posts.hasFailed() ? Status(posts.failure()) : Status();
}

} // namespace k2c::runtime
