// From the logits that came back from a GPU to the next tokens, on processors: the bits are those of Sampler.h. Of rows
// that are greedy the GPU has taken the samples.
#ifndef K2RT_DEVICE_CUDA_HOSTSAMPLING_H
#define K2RT_DEVICE_CUDA_HOSTSAMPLING_H

#include "k2rt/Sampler.h"
#include "k2rt/program.h"
#include "k2rt/reserve.h"

namespace k2c::runtime {

class HostSampling {
public:
  /// Has as many samplers as draw side by side on the processors that the process may use.
  explicit HostSampling(const k2rt_limits &limits);

  /// Whether a step has rows whose samples are drawn.
  static bool draws(const k2rt_ir_step &step);
  /// Fills these samples of a step, whose arrays are the host's, from its logits.
  void run(const k2rt_ir_step &step);

private:
  const int64_t vocab;
  std::vector<Sampler> samplers;
};

} // namespace k2c::runtime

#endif
