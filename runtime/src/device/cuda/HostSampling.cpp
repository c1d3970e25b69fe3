// One row behind the other: rows are as many as sequences. Denormals are zero, as on the workers of processors (N6).
#include "device/cuda/HostSampling.h"
#include <xmmintrin.h>

namespace k2c::runtime {

static constexpr unsigned mxcsrDazFtz = 0x8040;

void HostSampling::run(const k2rt_ir_step &step) {
  const auto *sampling = static_cast<const k2rt_ir_sampling *>(step.sampling);
  const auto *logits = static_cast<const float *>(step.logits);
  auto *samples = static_cast<int32_t *>(step.samples);
  const unsigned before = ::_mm_getcsr();
  ::_mm_setcsr(before | mxcsrDazFtz);
  for (int64_t row = 0; sampling && row < step.output_rows; ++row)
    samples[row] = sampler.sample(logits + row * vocab, sampling[row]);
  ::_mm_setcsr(before);
}

} // namespace k2c::runtime
