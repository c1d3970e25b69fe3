//===- Queue.h - Operations that wait for others --------------------------===//
//
// What has been enqueued is a graph: an operation comes behind those of its stream, those that the stream was told to
// wait for, and those that edges of its graph name. Nothing else orders operations: which one of those that may go on
// is next is drawn, and none is done before somebody waits or asks. A kernel is done in parts, between which copies may
// be drawn, and no other kernel.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_EMULATEDDRIVER_QUEUE_H
#define K2C_LIB_EMULATEDDRIVER_QUEUE_H

#include "Work.h"

#include <functional>
#include <random>
#include <unordered_map>
#include <vector>

namespace k2c::emulated {

class Queue {
public:
  using OperationId = uint64_t;

  /// `run` does an operation, or of a kernel a part: whether it is done.
  Queue(uint64_t seed, std::function<bool(Work &)> run) : random(seed), run(std::move(run)) {}

  OperationId add(Work work, const std::vector<OperationId> &after);
  bool isDone(OperationId id) const { return pending.find(id) == pending.end(); }
  bool areDone(const std::vector<OperationId> &ids) const;
  /// Does operations, any that may go on, until these are done.
  void finish(const std::vector<OperationId> &ids);
  void finishAll();
  /// Does some, none or a few.
  void goOn();

  std::mt19937_64 random;

private:
  struct Pending {
    Work work;
    uint64_t waitsFor = 0;
    std::vector<OperationId> before;
  };

  void runOne();

  std::function<bool(Work &)> run;
  std::unordered_map<OperationId, Pending> pending;
  std::vector<OperationId> ready;
  OperationId last = 0;
  OperationId begun = 0; ///< a kernel of which a part is done; 0: none
};

} // namespace k2c::emulated

#endif // K2C_LIB_EMULATEDDRIVER_QUEUE_H
