// Every worker runs the step's code with a struct of its own; a launch gives it a part of the grid, [grid * index /
// count, grid * (index + 1) / count), and a barrier ends the launch.
//
// All workers must leave a launch with the same result, or one would wait for the others for ever. So a failure only
// becomes visible at a barrier: the last worker to arrive copies it into `stop`, which nobody writes until all have
// arrived at the next one. Up to there, launches without a barrier run no kernel on what a failed one left.
//
// The first failure is kept and named with its kernel and worker; an interrupt takes the same way. While a worker
// waits it prefetches the lines that it reads after the barrier, a few at a time, so that it sees the barrier open at
// once. Sampling shares rows out by worker, with as many samplers as the reserve counts.
//
// Worker 0 speaks with the exchange. A wait that fails is a failure like that of a kernel: the barrier behind it shows
// it to all workers of the rank.
#include "device/cpu/Executor.h"
#include "k2rt/reserve.h"
#include "program/StepFailure.h"
#include <algorithm>
#include <immintrin.h>

namespace k2c::runtime {

static constexpr int32_t stopInterrupted = -1;
static constexpr int32_t stopFailed = -2;
static constexpr int64_t lineBytes = 64, linesAtOnce = 4;

Executor::Executor(const Bundle &bundle, WorkerPool &pool, const RankMemory &memory, const std::vector<void *> &scratch,
                   Trace *trace)
    : bundle(bundle), pool(pool), trace(trace), workers(pool.count()), launchBarrier(pool.count(), pool.spins()),
      collectives(bundle.program.description(), memory.exchange), arena(memory.arena) {
  api.launch = reinterpret_cast<void *>(&Executor::launch);
  api.barrier = reinterpret_cast<void *>(&Executor::barrier);
  api.sample = reinterpret_cast<void *>(&Executor::sample);
  api.launch_nowait = reinterpret_cast<void *>(&Executor::launchNowait);
  api.collective_start = reinterpret_cast<void *>(&Executor::collectiveStart);
  api.collective_wait = reinterpret_cast<void *>(&Executor::collectiveWait);
  const int64_t sampling = std::min<int64_t>(pool.count(), k2rt_samplers(&bundle.manifest.limits));
  samplers.reserve(sampling);
  for (int64_t i = 0; i < sampling; ++i)
    samplers.emplace_back(bundle.manifest.vocab);
  for (int32_t index = 0; index < pool.count(); ++index) {
    k2rt_ir_worker &worker = workers[index].ir;
    worker = {};
    worker.api = &api;
    worker.weights = const_cast<const void **>(memory.weights);
    worker.planes = const_cast<void **>(memory.planes.data());
    worker.scratch = scratch[index];
    worker.scratch_bytes = bundle.program.description().scratch_bytes;
    worker.index = index;
    worker.count = pool.count();
    worker.context = &workers[index];
    worker.rank = const_cast<k2rt_ir_rank *>(memory.rank);
    workers[index].executor = this;
  }
}

void Executor::use(const void *const *weights) {
  for (Worker &worker : workers)
    worker.ir.weights = const_cast<const void **>(weights);
}

void Executor::upload(const k2rt_ir_step &next) {
  step = next;
  step.arrived = collectives.arrived(Half::first);
  if (!next.second)
    return;
  second = *static_cast<const k2rt_ir_step *>(next.second);
  second.arrived = collectives.arrived(Half::second);
  step.second = &second;
}

void Executor::fail(const Failure &failure) {
  if (!failing.exchange(true))
    first = failure;
}

void Executor::fail(Error error) {
  if (!failing.exchange(true))
    ofExchange = std::move(error);
}

/// While a worker waits, the memory would be idle: it fetches the next lines of what it reads next.
static void prefetchWeights(k2rt_ir_worker &worker) {
  const auto *at = static_cast<const char *>(worker.prefetch);
  const char *end = std::min(static_cast<const char *>(worker.prefetch_end), at + linesAtOnce * lineBytes);
  if (at >= end)
    return _mm_pause();
  for (; at < end; at += lineBytes)
    _mm_prefetch(at, _MM_HINT_T1);
  worker.prefetch = const_cast<char *>(end);
}

int32_t Executor::waitAtBarrier(k2rt_ir_worker &worker) {
  launchBarrier.wait(
      [this] {
        if (failing.load(std::memory_order_relaxed))
          stop = stopFailed;
        else if (interrupted.load(std::memory_order_relaxed))
          stop = stopInterrupted;
      },
      [&worker] { prefetchWeights(worker); });
  return stop;
}

int32_t Executor::barrier(k2rt_ir_worker *worker) {
  return static_cast<Worker *>(worker->context)->executor->waitAtBarrier(*worker);
}

void Executor::runShare(k2rt_ir_worker &worker, int32_t kernel, k2rt_ir_kernel_fn function, int64_t grid,
                        void *const *args) {
  worker.begin = grid * worker.index / worker.count;
  worker.end = grid * (worker.index + 1) / worker.count;
  worker.variant = 0;
  if (worker.begin >= worker.end || failing.load(std::memory_order_relaxed))
    return;
  const int64_t begin = trace ? Trace::nowNs() : 0;
  const int32_t result = function(&worker, args);
  if (result != 0)
    fail({kernel, result, worker.index, worker.absent});
  if (trace) {
    const auto &step = *static_cast<const k2rt_ir_step *>(worker.step);
    trace->record(worker.index,
                  {begin, Trace::nowNs(), worker.begin, worker.end, step.token_rows, steps, kernel, worker.variant});
  }
}

int32_t Executor::launch(k2rt_ir_worker *worker, int32_t kernel, k2rt_ir_kernel_fn function, int64_t grid,
                         void *const *args) {
  Executor &self = *static_cast<Worker *>(worker->context)->executor;
  self.runShare(*worker, kernel, function, grid, args);
  return self.waitAtBarrier(*worker);
}

int32_t Executor::launchNowait(k2rt_ir_worker *worker, int32_t kernel, k2rt_ir_kernel_fn function, int64_t grid,
                               void *const *args) {
  static_cast<Worker *>(worker->context)->executor->runShare(*worker, kernel, function, grid, args);
  return 0;
}

int32_t Executor::collectiveStart(k2rt_ir_worker *worker, int32_t site, int64_t layer, void *const *buffers) {
  Executor &self = *static_cast<Worker *>(worker->context)->executor;
  if (worker->index == 0)
    self.collectives.start(self.halfOf(*worker), site, layer, self.steps,
                           *static_cast<const k2rt_ir_step *>(worker->step), buffers);
  return 0;
}

int32_t Executor::collectiveWait(k2rt_ir_worker *worker, int32_t site) {
  Executor &self = *static_cast<Worker *>(worker->context)->executor;
  if (worker->index == 0)
    if (Status done = self.collectives.wait(self.halfOf(*worker), site); !done)
      self.fail(done.takeError());
  return self.waitAtBarrier(*worker);
}

int32_t Executor::sample(k2rt_ir_worker *worker) {
  Executor &self = *static_cast<Worker *>(worker->context)->executor;
  const auto &step = *static_cast<const k2rt_ir_step *>(worker->step);
  const auto *sampling = static_cast<const k2rt_ir_sampling *>(step.sampling);
  const int64_t stride = static_cast<int64_t>(self.samplers.size());
  if (!sampling || worker->index >= stride)
    return 0;
  const int64_t vocab = self.bundle.manifest.vocab;
  const auto *logits = static_cast<const float *>(step.logits);
  auto *samples = static_cast<int32_t *>(step.samples);
  for (int64_t row = worker->index; row < step.output_rows; row += stride)
    samples[row] = self.samplers[worker->index].sample(logits + row * vocab, sampling[row]);
  return 0;
}

/// Both halves are one step; the second's sequences begin where its last samples do.
void Executor::traceStep(int64_t begin) {
  int64_t sequences = step.seq_rows, outputs = step.output_rows;
  if (step.second) {
    sequences = static_cast<const int32_t *>(second.last_sample) - static_cast<const int32_t *>(step.last_sample) +
                second.seq_rows;
    outputs += second.output_rows;
  }
  trace->record(pool.count(), {begin, Trace::nowNs(), sequences, outputs, step.layer_rows, steps, -1, 0});
}

Status Executor::run(k2rt_ir_step_fn entry) {
  failing = false;
  first = {};
  ofExchange.reset();
  stop = 0;
  std::vector<int32_t> results(workers.size(), 0);
  const int64_t begin = trace ? Trace::nowNs() : 0;
  pool.run([&](int32_t index) {
    k2rt_ir_worker &worker = workers[index].ir;
    worker.step = &step;
    worker.arena = arena;
    results[index] = entry(&worker);
  });
  if (trace)
    traceStep(begin);
  ++steps;
  return outcome(results);
}

StepResults Executor::results() const {
  const k2rt_ir_step &whole = step.gathered ? *static_cast<const k2rt_ir_step *>(step.gathered) : step;
  return {static_cast<const float *>(whole.logits), static_cast<const int32_t *>(whole.samples)};
}

Status Executor::outcome(const std::vector<int32_t> &results) const {
  if (stop == stopInterrupted || interrupted.load())
    return Error{K2RT_INTERRUPTED, "", "interrupted", ""};
  if (ofExchange)
    return *ofExchange;
  if (failing.load())
    return kernelFailed(bundle, first.kernel, first.result, first.absent, " on worker " + std::to_string(first.worker));
  for (size_t worker = 0; worker < results.size(); ++worker)
    if (results[worker] != 0)
      return Error{K2RT_KERNEL_FAILED, "program.so",
                   "the step failed with " + std::to_string(results[worker]) + " on worker " + std::to_string(worker),
                   ""};
  return {};
}

} // namespace k2c::runtime
