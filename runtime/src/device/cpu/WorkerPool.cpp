// The gate is passed twice per job: all threads leave the first wait into the job and meet again at the second.
#include "k2rt/WorkerPool.h"
#include "base/Processors.h"
#include <cerrno>

namespace k2c::runtime {

// Long enough for a barrier between kernels, short enough not to disturb a busy machine.
static constexpr int32_t ownProcessorSpins = 4000;
static constexpr int32_t sharedProcessorSpins = 16;
static constexpr size_t stackBytes = 1 << 20;
// Denormals are zero and flush to zero.
static constexpr unsigned mxcsrDazFtz = 0x8040;

Expected<std::unique_ptr<WorkerPool>> WorkerPool::start(int32_t threads, const Container &container,
                                                        const PoolSite &site) {
  const int32_t spins =
      threads <= container.defaultThreads && !site.isCrowded ? ownProcessorSpins : sharedProcessorSpins;
  std::unique_ptr<WorkerPool> pool(new WorkerPool(threads, spins));
  const int refused = pool->startThreads();
  if (refused != 0)
    return systemError("--threads " + std::to_string(threads),
                       "cannot start thread " + std::to_string(pool->threads.size() + 1), refused);
  pool->bindings = bindingsOfWorkers(container.nodes, threads, site.isApart);
  pool->bind();
  return pool;
}

int WorkerPool::startThreads() {
  threads.reserve(static_cast<size_t>(size) - 1);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, stackBytes);
  int refused = 0;
  {
    // New threads wait here until it is known whether the team is complete.
    std::lock_guard<std::mutex> hold(starting);
    for (int32_t index = 1; index < size && refused == 0; ++index) {
      threads.push_back(Thread{this, index, {}});
      refused = ::pthread_create(&threads.back().handle, &attributes, threadMain, &threads.back());
      if (refused != 0)
        threads.pop_back();
    }
    complete = refused == 0;
  }
  ::pthread_attr_destroy(&attributes);
  return refused;
}

void WorkerPool::bind() {
  if (bindings[0].processors.empty())
    return;
  callerProcessors = ownProcessors();
  if (callerProcessors.empty())
    return;
  // A refusal leaves the thread where the system wants it.
  for (int32_t index = 0; index < size; ++index)
    bindThread(index == 0 ? ::pthread_self() : threads[index - 1].handle, bindings[index].processors);
}

WorkerPool::~WorkerPool() {
  if (complete)
    runErased(nullptr, nullptr);
  for (Thread &thread : threads)
    ::pthread_join(thread.handle, nullptr);
  if (!callerProcessors.empty())
    bindThread(::pthread_self(), callerProcessors);
}

void *WorkerPool::threadMain(void *argument) {
  const Thread *self = static_cast<Thread *>(argument);
  ::_mm_setcsr(::_mm_getcsr() | mxcsrDazFtz);
  bool complete;
  {
    std::lock_guard<std::mutex> hold(self->pool->starting);
    complete = self->pool->complete;
  }
  if (complete)
    self->pool->serve(self->index);
  return nullptr;
}

void WorkerPool::serve(int32_t index) {
  for (;;) {
    gate.wait();
    if (!job)
      return;
    job(jobContext, index);
    gate.wait();
  }
}

void WorkerPool::runErased(Job work, void *context) {
  job = work;
  jobContext = context;
  gate.wait();
  if (!work)
    return;
  const unsigned before = ::_mm_getcsr();
  ::_mm_setcsr(before | mxcsrDazFtz);
  work(context, 0);
  gate.wait();
  ::_mm_setcsr(before);
}

} // namespace k2c::runtime
