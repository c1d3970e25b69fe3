// The status first: it is what every step copies back.
#include "device/cuda/StepOutcome.h"
#include <cstddef>

namespace k2c::runtime {

static_assert(sizeof(k2rt_ir_gpu_status) <= 64);

Expected<StepOutcome> StepOutcome::create(const Driver &driver, DeviceBytes zeroed) {
  StepOutcome made;
  made.driver = &driver;
  made.device = std::move(zeroed);
  Expected<PinnedBytes> word = allocatePinned(driver, sizeof(int32_t), "the word that ends a step");
  if (!word)
    return word.takeError();
  made.word = std::move(*word);
  *static_cast<int32_t *>(made.word.get()) = stopped;
  return made;
}

Status StepOutcome::copyTo(void *copy, int64_t rows, CUstream stream) const {
  return driver->call<&Cuda::cuMemcpyDtoHAsync_v2>(copy, device.get(), static_cast<size_t>(samplesOffset + rows * 4),
                                                   stream);
}

Status StepOutcome::stop(CUstream stream) const {
  return driver->call<&Cuda::cuMemcpyHtoDAsync_v2>(device.get() + offsetof(k2rt_ir_gpu_status, result),
                                                   static_cast<const void *>(word.get()), sizeof(int32_t), stream);
}

Status StepOutcome::clear(CUstream stream) const {
  return driver->call<&Cuda::cuMemsetD8Async>(device.get(), static_cast<unsigned char>(0), sizeof(k2rt_ir_gpu_status),
                                              stream);
}

} // namespace k2c::runtime
