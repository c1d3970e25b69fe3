// Which requests begin, and on which rank.
//
// A sequence is admitted only when a slot and all pages that it can ever need are free: no running sequence is ever
// evicted, and no step fails for want of pages. Admission is in order, so that a long request is not overtaken for
// ever. The last new token is sampled and never read, so it needs no place in the cache.
//
// A step takes as long as its fullest rank, so the prompts of those that begin together are evened over ranks: the
// longest is placed first, each where the fewest prompt tokens wait to be read, then where the fewest tokens are.
// Prompts of 20, 10, 10 and 20 tokens are 20 and 10 on each of two ranks, not 30 + 10 and 20. If one finds no room,
// those before it are placed anew, without what came behind.
#include "engine/Scheduler.h"
#include <algorithm>
#include <numeric>
#include <tuple>

namespace k2c::runtime {

std::vector<int64_t> Scheduler::pagesNeeded(const Request &request) const {
  const int64_t cacheTokens = static_cast<int64_t>(request.prompt.size()) + std::max<int64_t>(request.maxNew - 1, 0);
  std::vector<int64_t> needed;
  for (const CacheGroup &group : manifest.groups)
    needed.push_back(pagesFor(group.length(cacheTokens)));
  return needed;
}

Scheduler::Rooms Scheduler::rooms() const {
  Rooms free;
  free.unread.resize(ranks.size());
  free.pages.resize(static_cast<size_t>(engine.ranks()));
  for (const RankPlan &rank : ranks) {
    free.slots.push_back(rank.microbatch < microbatches ? static_cast<int64_t>(rank.freeSlots.size()) : 0);
    free.tokens.push_back(rank.tokens);
    std::vector<int64_t> &pages = free.pages[static_cast<size_t>(rank.number)];
    pages.clear();
    for (const PagePool &pool : rank.pages)
      pages.push_back(pool.available());
  }
  for (const auto &sequence : active)
    free.unread[sequence->plan] += std::max<int64_t>(sequence->promptTokens - sequence->cached, 0);
  return free;
}

/// Takes the room of a request from the best rank and microbatch that has it, of equal ones the first.
std::optional<size_t> Scheduler::take(Rooms &rooms, const Request &request) const {
  const std::vector<int64_t> needed = pagesNeeded(request);
  std::optional<size_t> best;
  const auto load = [&](size_t plan) { return std::tuple(rooms.unread[plan], rooms.tokens[plan]); };
  for (size_t plan = 0; plan < ranks.size(); ++plan) {
    const std::vector<int64_t> &pages = rooms.pages[static_cast<size_t>(ranks[plan].number)];
    bool hasRoom = rooms.slots[plan] > 0;
    for (size_t group = 0; group < needed.size(); ++group)
      hasRoom = hasRoom && pages[group] >= needed[group];
    if (hasRoom && (!best || load(plan) < load(*best)))
      best = plan;
  }
  if (!best)
    return best;
  --rooms.slots[*best];
  rooms.unread[*best] += static_cast<int64_t>(request.prompt.size());
  rooms.tokens[*best] += static_cast<int64_t>(request.prompt.size());
  for (size_t group = 0; group < needed.size(); ++group)
    rooms.pages[static_cast<size_t>(ranks[*best].number)][group] -= needed[group];
  return best;
}

/// Of each of the first `requests` of the queue its rank and microbatch; none where it finds no room.
std::vector<std::optional<size_t>> Scheduler::place(size_t requests) const {
  std::vector<size_t> order(requests);
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return queue[a].prompt.size() > queue[b].prompt.size(); });
  Rooms left = rooms();
  std::vector<std::optional<size_t>> plans(requests);
  for (const size_t request : order)
    plans[request] = take(left, queue[request]);
  return plans;
}

void Scheduler::admit() {
  const auto most = [&] {
    const std::vector<int64_t> slots = rooms().slots;
    return std::min(queue.size(), static_cast<size_t>(std::accumulate(slots.begin(), slots.end(), int64_t(0))));
  };
  for (size_t requests = most(); requests > 0;) {
    const std::vector<std::optional<size_t>> plans = place(requests);
    const auto placed = static_cast<size_t>(std::find(plans.begin(), plans.end(), std::nullopt) - plans.begin());
    if (placed < requests) {
      requests = placed == 0 && requests > 1 ? 1 : placed; // the first waits for nobody behind it
      continue;
    }
    for (const std::optional<size_t> &plan : plans) {
      admitTo(ranks[*plan], std::move(queue.front()));
      queue.pop_front();
    }
    requests = most();
  }
}

void Scheduler::admitTo(RankPlan &rank, Request request) {
  std::vector<int64_t> needed = pagesNeeded(request);
  const int64_t length = static_cast<int64_t>(request.prompt.size());
  const StepArrays &arrays = rank.arrays;
  auto sequence = std::make_unique<Sequence>();
  sequence->number = admitted++;
  sequence->rank = rank.number;
  sequence->plan = static_cast<size_t>(&rank - ranks.data());
  sequence->admittedNs = Trace::nowNs();
  sequence->slot = rank.freeSlots.back();
  rank.freeSlots.pop_back();
  sequence->promptTokens = sequence->tokens = length;
  rank.tokens += length;
  sequence->promptForm = manifest.promptForm(length);
  sequence->ids = arrays.history + sequence->slot * (manifest.limits.max_context + 1);
  std::copy(request.prompt.begin(), request.prompt.end(), sequence->ids);
  for (size_t group = 0; group < needed.size(); ++group)
    rank.pages[group].take(needed[group], arrays.blockTables[group] + sequence->slot * arrays.blockStride);
  sequence->pageCount = std::move(needed);
  sequence->request = std::move(request);
  sequence->request.prompt = {};
  active.push_back(std::move(sequence));
}

} // namespace k2c::runtime
