//===- Queue.cpp - Operations that wait for others ------------------------===//
#include "Queue.h"

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
  std::swap(ready[random() % ready.size()], ready.back());
  const auto found = pending.find(ready.back());
  ready.pop_back();
  run(found->second.work);
  for (const OperationId later : found->second.before)
    if (--pending.find(later)->second.waitsFor == 0)
      ready.push_back(later);
  pending.erase(found);
}

} // namespace k2c::emulated
