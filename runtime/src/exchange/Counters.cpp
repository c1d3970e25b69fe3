// Counting a collective at its end, and what was counted as words for another rank.
#include "exchange/Counters.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace k2c::runtime {

void TierCounters::add(const TierCounters &other) {
  payloadBytes += other.payloadBytes;
  messages += other.messages;
  controlBytes += other.controlBytes;
}

TierCounters SiteCounters::total() const {
  TierCounters sum;
  for (const TierCounters &tier : tiers)
    sum.add(tier);
  return sum;
}

void SiteCounters::add(const SiteCounters &other) {
  op = other.op;
  axis = other.axis;
  calls = std::max(calls, other.calls);
  for (size_t tier = 0; tier < tierCount; ++tier)
    tiers[tier].add(other.tiers[tier]);
  seconds += other.seconds;
  waitedSeconds += other.waitedSeconds;
  waitedFor.resize(std::max(waitedFor.size(), other.waitedFor.size()));
  for (size_t rank = 0; rank < other.waitedFor.size(); ++rank)
    waitedFor[rank] += other.waitedFor[rank];
}

void Counters::count(const Collective &collective, const RequestTotals &totals, Clock::time_point waitBegin) {
  SiteCounters &site = bySite[{static_cast<int32_t>(collective.site), collective.layer}];
  site.op = collective.op;
  site.axis = collective.axis;
  ++site.calls;
  const bool isControl = collective.isControl || collective.op == Op::counts;
  for (size_t tier = 0; tier < tierCount; ++tier) {
    const SentBytes &sent = totals.sent[tier];
    site.tiers[tier].add(isControl ? TierCounters{0, 0, sent.payload + sent.headers}
                                   : TierCounters{sent.payload, sent.messages, sent.headers});
  }
  const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  site.seconds += seconds(totals.end - totals.begin);
  const double waited = std::max(0.0, seconds(totals.end - waitBegin));
  site.waitedSeconds += waited;
  if (totals.last < 0 || waited <= 0)
    return;
  site.waitedFor.resize(std::max<size_t>(site.waitedFor.size(), totals.last + 1));
  site.waitedFor[totals.last] += waited;
}

void Counters::add(const Counters &other) {
  for (const auto &[key, site] : other.bySite)
    bySite[key].add(site);
}

namespace {

/// Calls put(word) or take(word) for the numbers of an entry, in their order.
template <class Whole, class Real, class Site> void visitNumbers(Site &site, Whole whole, Real real) {
  whole(site.calls);
  for (auto &tier : site.tiers) {
    whole(tier.payloadBytes);
    whole(tier.messages);
    whole(tier.controlBytes);
  }
  real(site.seconds);
  real(site.waitedSeconds);
  for (auto &seconds : site.waitedFor)
    real(seconds);
}

constexpr int64_t fixedWords = 2 + 2 + 1 + 3 * static_cast<int64_t>(tierCount) + 2;

} // namespace

int64_t Counters::entryWords(int32_t ranks) { return fixedWords + ranks; }

std::vector<int64_t> Counters::words(int32_t ranks) const {
  std::vector<int64_t> words;
  for (const auto &[key, site] : bySite) {
    for (const int32_t number : {key.first, key.second, static_cast<int32_t>(site.op), static_cast<int32_t>(site.axis)})
      words.push_back(number);
    SiteCounters whole = site;
    whole.waitedFor.resize(static_cast<size_t>(ranks));
    visitNumbers(
        whole, [&](int64_t number) { words.push_back(number); },
        [&](double seconds) {
          words.emplace_back();
          std::memcpy(&words.back(), &seconds, sizeof seconds);
        });
  }
  return words;
}

Expected<Counters> Counters::read(const std::vector<int64_t> &words, int32_t ranks) {
  constexpr int64_t most = int64_t(1) << 52; // sums over ranks do not overflow
  Counters counters;
  bool isRight = words.size() % static_cast<size_t>(entryWords(ranks)) == 0;
  auto next = words.begin();
  const auto within = [&](int64_t least, int64_t limit) {
    const int64_t number = *next++;
    isRight = isRight && number >= least && number < limit;
    return isRight ? number : 0;
  };
  while (isRight && next != words.end()) {
    const int64_t site = within(0, std::numeric_limits<int32_t>::max());
    const int64_t layer = within(-1, std::numeric_limits<int32_t>::max());
    SiteCounters &of = counters.bySite[{static_cast<int32_t>(site), static_cast<int32_t>(layer)}];
    of.op = static_cast<Op>(within(0, opCount));
    of.axis = static_cast<Axis>(within(0, axisCount));
    of.waitedFor.resize(static_cast<size_t>(ranks));
    visitNumbers(
        of, [&](int64_t &number) { number = within(0, most); },
        [&](double &seconds) {
          std::memcpy(&seconds, &*next++, sizeof seconds);
          isRight = isRight && std::isfinite(seconds) && seconds >= 0;
        });
  }
  if (!isRight)
    return Error{K2RT_PEER_FAILED, "counters", "have numbers that no rank counts",
                 "start the same build of k2c on every host"};
  return counters;
}

} // namespace k2c::runtime
