// A row takes a millisecond of a large vocabulary, and a step of a GPU not many more: so rows are drawn side by side,
// by threads that live for the step. Denormals are zero, as on the workers of processors (N6).
#include "device/cuda/HostSampling.h"
#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <xmmintrin.h>

namespace k2c::runtime {

static constexpr unsigned mxcsrDazFtz = 0x8040;

/// Whether `row` of the step's samples is drawn.
static bool isDrawn(const k2rt_ir_step &step, int64_t row) {
  const auto *sampling = static_cast<const k2rt_ir_sampling *>(step.sampling);
  return sampling && sampling[row].temperature > 0.0f;
}

HostSampling::HostSampling(const k2rt_limits &limits) : vocab(limits.vocab) {
  const int64_t processors = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  const int64_t count = std::min(processors, k2rt_gpu_samplers(&limits));
  samplers.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    samplers.emplace_back(vocab);
}

bool HostSampling::draws(const k2rt_ir_step &step) {
  for (int64_t row = 0; row < step.output_rows; ++row)
    if (isDrawn(step, row))
      return true;
  return false;
}

void HostSampling::run(const k2rt_ir_step &step) {
  const auto *logits = static_cast<const float *>(step.logits);
  std::atomic<int64_t> next{0};
  const auto work = [&](Sampler &sampler) {
    const unsigned before = ::_mm_getcsr();
    ::_mm_setcsr(before | mxcsrDazFtz);
    for (int64_t row = next++; row < step.output_rows; row = next++)
      if (isDrawn(step, row))
        static_cast<int32_t *>(step.samples)[row] =
            sampler.sample(logits + row * vocab, static_cast<const k2rt_ir_sampling *>(step.sampling)[row]);
    ::_mm_setcsr(before);
  };
  const size_t count = std::min(samplers.size(), static_cast<size_t>(step.output_rows));
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < count; ++i)
      others.emplace_back(work, std::ref(samplers[i]));
  } catch (const std::system_error &) { // those that there are draw all rows
  }
  work(samplers[0]);
  for (std::thread &other : others)
    other.join();
}

} // namespace k2c::runtime
