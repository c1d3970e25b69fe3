// Whatever can be refused before a context is made is refused before; memory is counted in one, since what it takes
// itself is gone by then.
#include "device/cuda/CheckGpu.h"
#include "base/FormatBytes.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c::runtime {

static std::string placeOf(const GpuFacts &gpu) {
  return "device " + std::to_string(gpu.ordinal) + " (" + shortened(gpu.name) + ")";
}

Status checkGpu(const GpuFacts &gpu, const DeviceFacts &wanted) {
  const int64_t has = gpu.major * 10 + gpu.minor, needs = wanted.major * 10 + wanted.minor;
  if (wanted.isExact ? has == needs : has >= needs)
    return {};
  return Error{K2RT_DEVICE_FAILED, placeOf(gpu),
               "has compute capability " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor) +
                   ", the bundle is of " + wanted.arch + ", which needs " + std::to_string(wanted.major) + "." +
                   std::to_string(wanted.minor) + (wanted.isExact ? "" : " or a later one"),
               "choose another with --device, or compile for a topology of this GPU"};
}

/// The largest part of what is needed, by name.
static std::string largestOf(const DeviceNeeds &needs) {
  const std::pair<int64_t, const char *> parts[] = {{needs.weights, "weights"},   {needs.cache, "cache"},
                                                    {needs.arena, "arena"},       {needs.workspace, "workspace"},
                                                    {needs.captures, "captures"}, {needs.reserve, "reserve"}};
  const auto &[bytes, name] = *std::max_element(std::begin(parts), std::end(parts));
  return std::string(name) + " " + formatBytes(bytes);
}

/// With every digit: what is needed may exceed what there is by little.
static std::string exactly(int64_t bytes) { return formatBytes(bytes) + " = " + std::to_string(bytes) + " bytes"; }

Status checkMemory(const Driver &driver, const GpuFacts &gpu, const DeviceNeeds &needs) {
  size_t free = 0, total = 0;
  if (Status asked = driver.call<&Cuda::cuMemGetInfo_v2>(&free, &total); !asked)
    return asked;
  const std::string what =
      "the bundle needs " + exactly(needs.total()) + " of device memory, most of it " + largestOf(needs) + "; ";
  const std::string remedy =
      "compile with smaller --max-sequences, --max-context or --step-tokens, or for a GPU with more memory";
  if (needs.total() > static_cast<int64_t>(total))
    return Error{K2RT_DEVICE_FAILED, placeOf(gpu), what + "the device has " + exactly(static_cast<int64_t>(total)),
                 remedy};
  if (needs.total() - K2RT_GPU_CONTEXT_BYTES > static_cast<int64_t>(free)) // the context is there already
    return Error{K2RT_DEVICE_FAILED, placeOf(gpu),
                 what + exactly(static_cast<int64_t>(free)) + " of " + exactly(static_cast<int64_t>(total)) +
                     " are free, other processes have the rest",
                 "end them, choose another with --device, or " + remedy};
  return {};
}

} // namespace k2c::runtime
