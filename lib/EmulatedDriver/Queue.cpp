//===- Queue.cpp - Operations that wait for others ------------------------===//
#include "Queue.h"

#include <algorithm>

namespace k2c::emulated {

Queue::OperationId Queue::add(Work work, const std::vector<OperationId> &after) {
  const OperationId id = ++last;
  Pending added;
  added.work = std::move(work);
  for (const OperationId earlier : after)
    if (const auto found = pending.find(earlier); found != pending.end()) {
      found->second.before.push_back(id);
      ++added.waitsFor;
    }
  if (added.waitsFor == 0)
    ready.push_back(id);
  pending.emplace(id, std::move(added));
  return id;
}

bool Queue::areDone(const std::vector<OperationId> &ids) const {
  for (const OperationId id : ids)
    if (!isDone(id))
      return false;
  return true;
}

void Queue::finish(const std::vector<OperationId> &ids) {
  while (!areDone(ids))
    runOne();
}

void Queue::finishAll() {
  while (!ready.empty())
    runOne();
}

void Queue::goOn() {
  for (uint64_t left = random() % 3; left > 0 && !ready.empty(); --left)
    runOne();
}

void Queue::runOne() {
  auto next = ready.begin() + static_cast<ptrdiff_t>(random() % ready.size());
  if (begun != 0 && std::holds_alternative<KernelLaunch>(pending.find(*next)->second.work.body))
    next = std::find(ready.begin(), ready.end(), begun);
  const auto found = pending.find(*next);
  if (!run(found->second.work)) {
    begun = *next;
    return;
  }
  if (*next == begun)
    begun = 0;
  std::swap(*next, ready.back());
  ready.pop_back();
  for (const OperationId later : found->second.before)
    if (--pending.find(later)->second.waitsFor == 0)
      ready.push_back(later);
  pending.erase(found);
}

} // namespace k2c::emulated
