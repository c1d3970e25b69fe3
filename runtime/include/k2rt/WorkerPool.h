// A thread pool that runs one function on all its threads: worker 0 is the caller, the others wait between jobs.
#ifndef K2RT_WORKERPOOL_H
#define K2RT_WORKERPOOL_H

#include "base/Container.h"
#include "base/Error.h"
#include "k2rt/Barrier.h"
#include "k2rt/WorkerBinding.h"
#include <memory>
#include <mutex>
#include <pthread.h>
#include <vector>

namespace k2c::runtime {

/// What a pool is among others of its host.
struct PoolSite {
  bool isApart = false;   ///< its container has processors that others leave alone: workers stay on them
  bool isCrowded = false; ///< workers of all pools are more than the host's processors
};

class WorkerPool {
public:
  /// Starts `threads` - 1 threads and binds all workers where bindingsOfWorkers says; the caller gets its own affinity
  /// back at the end. A system that refuses leaves threads where it wants them.
  static Expected<std::unique_ptr<WorkerPool>> start(int32_t threads, const Container &container,
                                                     const PoolSite &site = {});
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  int32_t count() const { return size; }
  const WorkerBinding &binding(int32_t worker) const { return bindings[worker]; }
  /// Pauses before a waiting worker sleeps: few when there are more workers than processors.
  int32_t spins() const { return spinLimit; }

  /// Runs work(index) on every worker and returns when all are done. Flushes denormals in each (numerics N6).
  template <class Work> void run(Work work) {
    runErased([](void *context, int32_t index) { (*static_cast<Work *>(context))(index); }, &work);
  }

private:
  using Job = void (*)(void *context, int32_t index);
  WorkerPool(int32_t size, int32_t spinLimit) : size(size), spinLimit(spinLimit), gate(size, spinLimit) {}
  void runErased(Job work, void *context);
  void serve(int32_t index);
  static void *threadMain(void *argument);
  int startThreads();
  void bind();

  struct Thread {
    WorkerPool *pool;
    int32_t index;
    pthread_t handle;
  };
  const int32_t size;
  const int32_t spinLimit;
  Barrier gate; ///< passed before and after each job
  Job job = nullptr;
  void *jobContext = nullptr;
  std::vector<Thread> threads; ///< workers 1 .. size-1
  std::mutex starting;
  bool complete = false; ///< all threads run; guarded by `starting` while they start
  std::vector<WorkerBinding> bindings;
  std::vector<int> callerProcessors; ///< where the caller may run without this team; empty: it was not bound
};

} // namespace k2c::runtime

#endif
