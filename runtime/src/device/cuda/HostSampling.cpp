// One row behind the other: rows are as many as sequences. Denormals are zero, as on the workers of processors (N6).
#include "device/cuda/HostSampling.h"
#include <xmmintrin.h>

namespace k2c::runtime {

static constexpr unsigned mxcsrDazFtz = 0x8040;

/// Whether `row` of the step's samples is drawn.
static bool isDrawn(const k2rt_ir_step &step, int64_t row) {
  const auto *sampling = static_cast<const k2rt_ir_sampling *>(step.sampling);
  return sampling && sampling[row].temperature > 0.0f;
}

bool HostSampling::draws(const k2rt_ir_step &step) {
  for (int64_t row = 0; row < step.output_rows; ++row)
    if (isDrawn(step, row))
      return true;
  return false;
}

void HostSampling::run(const k2rt_ir_step &step) {
  const auto *logits = static_cast<const float *>(step.logits);
  const unsigned before = ::_mm_getcsr();
  ::_mm_setcsr(before | mxcsrDazFtz);
  for (int64_t row = 0; row < step.output_rows; ++row)
    if (isDrawn(step, row))
      static_cast<int32_t *>(step.samples)[row] =
          sampler.sample(logits + row * vocab, static_cast<const k2rt_ir_sampling *>(step.sampling)[row]);
  ::_mm_setcsr(before);
}

} // namespace k2c::runtime
