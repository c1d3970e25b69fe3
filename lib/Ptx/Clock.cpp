//===- Clock.cpp - What a thread knows to have happened -------------------===//
#include "Clock.h"

#include <algorithm>
#include <functional>

namespace k2c::ptx {

bool Clock::covers(const Agent &first, uint32_t lanes, uint32_t time) const {
  for (const OfCluster &one : clusters)
    if (one.cluster == first.cluster) {
      const Times &times = *one.times;
      for (uint32_t left = lanes; left != 0; left &= left - 1) {
        const uint32_t number = first.number + static_cast<uint32_t>(__builtin_ctz(left));
        if (number >= times.size() || times[number] < time)
          return false;
      }
      return true;
    }
  return lanes == 0;
}

bool Clock::coversAny(const Agent &first, uint32_t count) const {
  for (const OfCluster &one : clusters)
    if (one.cluster == first.cluster)
      for (size_t number = first.number; number < first.number + count && number < one.times->size(); ++number)
        if ((*one.times)[number] != 0)
          return true;
  return false;
}

std::shared_ptr<Clock::Times> &Clock::timesOf(uint64_t cluster) {
  auto at = clusters.begin();
  while (at != clusters.end() && at->cluster < cluster)
    ++at;
  if (at == clusters.end() || at->cluster != cluster)
    at = clusters.insert(at, {cluster, nullptr});
  return at->times;
}

void Clock::join(const Clock &other) {
  for (const auto &[cluster, theirs] : other.clusters) {
    std::shared_ptr<Times> &own = timesOf(cluster);
    if (own == theirs)
      continue;
    if (!own) {
      own = theirs;
      continue;
    }
    const size_t both = std::min(own->size(), theirs->size());
    const auto isBelow = [both](const Times &low, const Times &high) {
      return low.size() <= high.size() &&
             std::equal(low.begin(), low.begin() + static_cast<ptrdiff_t>(both), high.begin(), std::less_equal<>());
    };
    if (isBelow(*own, *theirs)) {
      own = theirs;
    } else if (!isBelow(*theirs, *own)) {
      auto joined = std::make_shared<Times>(own->size() > theirs->size() ? *own : *theirs);
      for (size_t i = 0; i < both; ++i)
        (*joined)[i] = std::max((*own)[i], (*theirs)[i]);
      own = std::move(joined);
    }
  }
}

void Clock::add(const Agent &first, uint32_t lanes, uint32_t time) {
  std::shared_ptr<Times> &own = timesOf(first.cluster);
  if (!own)
    own = std::make_shared<Times>();
  else if (own.use_count() != 1)
    own = std::make_shared<Times>(*own);
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const uint32_t number = first.number + static_cast<uint32_t>(__builtin_ctz(left));
    if (own->size() <= number)
      own->resize(number + 1);
    (*own)[number] = std::max((*own)[number], time);
  }
}

} // namespace k2c::ptx
