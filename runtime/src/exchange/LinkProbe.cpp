// How large messages are, and how often they are sent, is decided by time, and by all ranks alike without a word: each
// round ends with the maximum over all ranks of what it took them, which is what they decide by.
//
//   4 KiB, 8 KiB, ...    until a round takes 50 ms and 10 trips, or messages have 16 MiB
//   that size again      for a quarter of a second and 3 times, or for a second: the median of these rounds counts
//
// The first rounds also connect ranks, and use up what a shaped link lets through before it slows down.
#include "exchange/LinkProbe.h"
#include <algorithm>

namespace k2c::runtime {

static constexpr int64_t minBytes = int64_t(4) << 10, maxBytes = int64_t(16) << 20;
static constexpr size_t minRounds = 3, maxTrips = 1000;
static constexpr int64_t minTrips = 10; // what a round takes beside its bytes is a small part of it

enum ProbeSite : uint32_t { messageSite, timeSite };

static double secondsOf(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

static Clock::duration median(std::vector<Clock::duration> &times) {
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

LinkProbe::LinkProbe(std::unique_ptr<Exchange> exchange, const ProbeTimes &limits)
    : limits(limits), times(static_cast<size_t>(exchange->ranks())), exchange(std::move(exchange)) {}

char *LinkProbe::Buffer::reserve(int64_t atLeast) {
  if (atLeast > bytes) {
    data = std::make_unique<char[]>(static_cast<size_t>(atLeast));
    bytes = atLeast;
  }
  return data.get();
}

Expected<LinkRates> LinkProbe::measure(const LinkTier &between) {
  tier = between;
  LinkRates rates;
  if (Status done = measureLatency(rates.latencySeconds); !done)
    return done.takeError();
  if (Status done = measureRate(/*isAlone=*/true, rates.aloneBytesPerSecond, rates.aloneBytes); !done)
    return done.takeError();
  if (Status done = measureRate(/*isAlone=*/false, rates.togetherBytesPerSecond, rates.togetherBytes); !done)
    return done.takeError();
  return rates;
}

/// The rank with this one's place in the unit that is so many behind its own.
int32_t LinkProbe::partner(int32_t distance) const {
  const int32_t unit = exchange->rank() / tier.inner % tier.count;
  return exchange->rank() + ((unit + distance + tier.count) % tier.count - unit) * tier.inner;
}

Collective LinkProbe::message(Op op, int32_t peer, void *data, int64_t bytes) const {
  Collective c{op, Axis::world, messageSite};
  c.source = c.result = data;
  c.bytes = bytes;
  c.peer = peer;
  return c;
}

/// The longest of all ranks' times. Those that have nothing to do in a round wait here for the others.
Expected<Clock::duration> LinkProbe::longest(Clock::duration own) {
  ownTime = own.count();
  Collective c{Op::allReduceMax, Axis::world, timeSite};
  c.source = &ownTime;
  c.result = &longestTime;
  c.workspace = times.data();
  c.bytes = sizeof ownTime;
  c.isPatient = true;
  if (Status done = exchange->run(c); !done)
    return done.takeError();
  return Clock::duration(longestTime);
}

Status LinkProbe::measureLatency(double &seconds) {
  std::vector<Clock::duration> trips;
  Status done;
  if (exchange->rank() == 0)
    done = ping(trips);
  else if (exchange->rank() == tier.inner)
    done = answer();
  if (!done)
    return done;
  Expected<Clock::duration> trip = longest(trips.empty() ? Clock::duration(0) : median(trips));
  if (!trip)
    return trip.takeError();
  seconds = secondsOf(*trip) / 2;
  roundTime = std::clamp(minTrips * *trip, limits.round, std::max(limits.round, limits.longest));
  return {};
}

/// The first trip, in which ranks may connect, does not count.
Status LinkProbe::ping(std::vector<Clock::duration> &trips) {
  const Clock::time_point first = Clock::now();
  isLast = 0;
  for (size_t trip = 0; isLast == 0; ++trip) {
    const Clock::time_point begin = Clock::now();
    isLast = trip >= maxTrips || (trip >= minRounds && begin - first > limits.enough) || begin - first > limits.longest;
    for (const Op op : {Op::send, Op::receive})
      if (Status done = exchange->run(message(op, tier.inner, &isLast, sizeof isLast)); !done)
        return done;
    if (trip > 0)
      trips.push_back(Clock::now() - begin);
  }
  return {};
}

Status LinkProbe::answer() {
  for (isLast = 0; isLast == 0;)
    for (const Op op : {Op::receive, Op::send})
      if (Status done = exchange->run(message(op, 0, &isLast, sizeof isLast)); !done)
        return done;
  return {};
}

/// A message between the two ranks, or one from each; what the slowest took.
Expected<Clock::duration> LinkProbe::round(bool isAlone, int64_t bytes) {
  std::vector<Collective> own;
  if (!isAlone || exchange->rank() == 0)
    own.push_back(message(Op::send, partner(1), outgoing.reserve(bytes), bytes));
  if (!isAlone || exchange->rank() == tier.inner)
    own.push_back(message(Op::receive, partner(-1), incoming.reserve(bytes), bytes));
  const Clock::time_point begin = Clock::now();
  std::vector<RequestId> started;
  for (const Collective &each : own) {
    Expected<RequestId> request = exchange->start(each);
    if (!request)
      return request.takeError();
    started.push_back(*request);
  }
  for (const RequestId request : started)
    if (Status done = exchange->wait(request); !done)
      return done.takeError();
  return longest(own.empty() ? Clock::duration(0) : Clock::now() - begin);
}

Status LinkProbe::measureRate(bool isAlone, double &bytesPerSecond, int64_t &bytes) {
  std::vector<Clock::duration> rounds;
  Clock::duration sum(0);
  bytes = minBytes;
  while (sum < limits.enough || (rounds.size() < minRounds && sum < limits.longest)) {
    Expected<Clock::duration> took = round(isAlone, bytes);
    if (!took)
      return took.takeError();
    if (rounds.empty() && *took < roundTime && bytes < maxBytes) {
      bytes *= 2;
      continue;
    }
    sum += *took;
    rounds.push_back(*took);
  }
  bytesPerSecond = static_cast<double>(bytes) / secondsOf(median(rounds));
  return {};
}

} // namespace k2c::runtime
