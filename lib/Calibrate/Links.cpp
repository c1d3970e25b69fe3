//===- Links.cpp - Flags and cache lines between pinned threads -----------===//
//
// Two threads take turns: the partner writes a buffer and gives the turn back, the other one then reads it, or writes
// over it, one word of each line. A word is enough: lines move whole.
//
//===----------------------------------------------------------------------===//
#include "Links.h"

#include "Clock.h"
#include "Memory.h"
#include "base/Processors.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <immintrin.h>
#include <sched.h>
#include <thread>

namespace k2c::calibration {

namespace {

constexpr int64_t lineBytes = 64;

/// Pins the calling thread for as long as it lives.
class Pinned {
public:
  explicit Pinned(int processor) { fine = !before.empty() && bindThread(pthread_self(), {processor}) == 0; }
  Pinned(const Pinned &) = delete;
  ~Pinned() {
    if (fine)
      bindThread(pthread_self(), before);
  }
  explicit operator bool() const { return fine; }

private:
  const std::vector<int> before = ownProcessors();
  bool fine;
};

/// Whose turn it is: a flag on a line of its own.
class Turn {
public:
  enum Value : int { Mine, Partners, End };
  void give(Value to) { value.store(to, std::memory_order_release); }
  /// Returns the turn that is not `other`. Gives the processor away now and then: its owner may wait for it.
  Value waitWhile(Value other) const {
    for (int spins = 0;; ++spins) {
      if (int now = value.load(std::memory_order_acquire); now != other)
        return Value(now);
      _mm_pause();
      if (spins % 4096 == 4095)
        sched_yield();
    }
  }

private:
  alignas(lineBytes) std::atomic<int> value{Mine};
  [[maybe_unused]] char rest[lineBytes - sizeof(int)] = {};
};

/// Runs `partner` on `second` at each of its turns, and `mine(turn)` on `first` until it returns.
template <class Mine, class Partner> Status together(int first, int second, Mine mine, Partner partner) {
  Turn turn;
  std::atomic<int> refused{-1};
  std::thread other([&] {
    Pinned pinned(second);
    if (!pinned)
      refused = second;
    while (turn.waitWhile(Turn::Mine) != Turn::End) {
      partner();
      turn.give(Turn::Mine);
    }
  });
  {
    Pinned pinned(first);
    if (!pinned)
      refused = first;
    mine(turn);
    turn.give(Turn::End);
    other.join();
  }
  if (refused >= 0)
    return Error{"calibration", "this process may not run on processor " + std::to_string(refused), ""};
  return {};
}

void writeLines(char *data, int64_t bytes, char value) {
  for (int64_t at = 0; at < bytes; at += lineBytes)
    const_cast<volatile char *>(data)[at] = value;
  _mm_mfence();
}

void readLines(const char *data, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += lineBytes)
    (void)const_cast<const volatile char *>(data)[at];
  _mm_lfence();
}

/// A line, eight times that and so on, and `largest`.
std::vector<Bytes> sizesUpTo(Bytes largest) {
  std::vector<Bytes> sizes;
  for (int64_t bytes = lineBytes; bytes < largest.value; bytes *= 8)
    sizes.push_back(Bytes(bytes));
  sizes.push_back(largest);
  return sizes;
}

} // namespace

Expected<Seconds> ThreadLinkProbe::latency(int first, int second) {
  constexpr int trips = 64;
  double fastest = 1;
  auto mine = [&](Turn &turn) {
    for (double end = now() + budget.value; now() < end;) {
      double begin = now();
      for (int trip = 0; trip < trips; ++trip) {
        turn.give(Turn::Partners);
        turn.waitWhile(Turn::Partners);
      }
      fastest = std::min(fastest, (now() - begin) / (2 * trips));
    }
  };
  if (Status status = together(first, second, mine, [] {}); !status)
    return status.takeError();
  return Seconds(fastest);
}

Expected<Seconds> ThreadLinkProbe::transfer(int first, int second, Bytes bytes, Access access) {
  Expected<Memory> memory = Memory::map(bytes);
  if (!memory)
    return memory.takeError();
  double fastest = 1, clock = clockSeconds();
  char *data = memory->data();
  auto mine = [&](Turn &turn) {
    double end = now() + budget.value;
    for (int run = 0; run < 3 || now() < end; ++run) {
      turn.give(Turn::Partners);
      turn.waitWhile(Turn::Partners);
      double begin = now();
      access == Access::Read ? readLines(data, bytes.value) : writeLines(data, bytes.value, 1);
      fastest = std::min(fastest, now() - begin - clock);
    }
  };
  if (Status status = together(first, second, mine, [&] { writeLines(data, bytes.value, 2); }); !status)
    return status.takeError();
  return Seconds(std::max(fastest, 1e-9));
}

Expected<std::vector<LinkRates>> measureLinks(const std::vector<HostTier> &tiers, Bytes largest, LinkProbe &probe) {
  std::vector<LinkRates> links;
  for (const HostTier &tier : tiers) {
    Expected<Seconds> latency = probe.latency(tier.first, tier.second);
    if (!latency)
      return latency.takeError();
    LinkRates link{tier.name, tier.count, *latency, {}, {}};
    for (auto [access, rates] :
         {std::pair{LinkProbe::Access::Read, &link.read}, std::pair{LinkProbe::Access::Write, &link.write}})
      for (Bytes bytes : sizesUpTo(largest)) {
        Expected<Seconds> seconds = probe.transfer(tier.first, tier.second, bytes, access);
        if (!seconds)
          return seconds.takeError();
        rates->push_back({bytes, Bandwidth(double(bytes.value) / seconds->value)});
      }
    links.push_back(std::move(link));
  }
  return links;
}

void keepFastest(std::vector<LinkRates> &links, const std::vector<LinkRates> &again) {
  if (links.empty())
    links = again;
  for (size_t i = 0; i < links.size(); ++i) {
    LinkRates &link = links[i];
    link.latency = Seconds(std::min(link.latency.value, again[i].latency.value));
    for (auto [rates, others] : {std::pair{&link.read, &again[i].read}, std::pair{&link.write, &again[i].write}})
      for (size_t size = 0; size < rates->size(); ++size)
        (*rates)[size].rate = Bandwidth(std::max((*rates)[size].rate.value, (*others)[size].rate.value));
  }
}

} // namespace k2c::calibration
