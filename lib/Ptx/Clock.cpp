//===- Clock.cpp - What a thread knows to have happened -------------------===//
#include "Clock.h"

#include <algorithm>

namespace k2c::ptx {

bool Clock::covers(const Agent &agent, uint32_t time) const {
  const auto found = clusters.find(agent.cluster);
  return found != clusters.end() && agent.number < found->second->size() && (*found->second)[agent.number] >= time;
}

void Clock::join(const Clock &other) {
  for (const auto &[cluster, theirs] : other.clusters) {
    std::shared_ptr<const Times> &own = clusters[cluster];
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
  std::shared_ptr<const Times> &own = clusters[first.cluster];
  auto made = own ? std::make_shared<Times>(*own) : std::make_shared<Times>();
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const uint32_t number = first.number + static_cast<uint32_t>(__builtin_ctz(left));
    if (made->size() <= number)
      made->resize(number + 1);
    (*made)[number] = std::max((*made)[number], time);
  }
  own = std::move(made);
}

} // namespace k2c::ptx
