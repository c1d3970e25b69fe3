// A token of an expert that the bundle leaves out is no fault of a kernel: its message names layer and expert.
#include "program/StepFailure.h"
#include "base/Utf8.h"

namespace k2c::runtime {

Error kernelFailed(const Bundle &bundle, int32_t kernel, int32_t result, const void *absent, const std::string &who) {
  if (result == K2RT_STATUS_ABSENT_EXPERT)
    if (std::optional<AbsentExpert> wanted = bundle.weights.expertAt(absent))
      return {K2RT_KERNEL_FAILED, wanted->layer ? "layer " + std::to_string(*wanted->layer) : shortened(wanted->slot),
              "a token wants expert " + std::to_string(wanted->expert) + ", which the bundle leaves out of '" +
                  shortened(wanted->slot) + "'",
              "k2c pack with the checkpoint brings all experts in"};
  return {K2RT_KERNEL_FAILED, std::string("kernel ") + bundle.program.kernelName(kernel),
          "failed with " + std::to_string(result) + who, ""};
}

} // namespace k2c::runtime
