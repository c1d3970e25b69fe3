// What steps leave on the device: the status and the samples, in one piece, which no copy of a step writes over. So a
// word that ends a step does, whenever its own copy comes, and ends those that are enqueued behind it, too.
#ifndef K2RT_DEVICE_CUDA_STEPOUTCOME_H
#define K2RT_DEVICE_CUDA_STEPOUTCOME_H

#include "base/GpuHandles.h"
#include "k2rt/program.h"

namespace k2c::runtime {

class StepOutcome {
public:
  /// In memory of bytesOf(rows), for steps of `rows` output rows at most, which is zeros before the first of them runs.
  static Expected<StepOutcome> create(const Driver &driver, DeviceBytes zeroed);

  /// Addresses on the device.
  k2rt_ir_gpu_status *status() const { return reinterpret_cast<k2rt_ir_gpu_status *>(device.get()); }
  int32_t *samples() const { return reinterpret_cast<int32_t *>(device.get() + samplesOffset); }
  /// Where the pinned copy of a step, which has bytesOf() bytes, has them.
  static const k2rt_ir_gpu_status &statusIn(const void *copy) { return *static_cast<const k2rt_ir_gpu_status *>(copy); }
  static const int32_t *samplesIn(const void *copy) {
    return reinterpret_cast<const int32_t *>(static_cast<const std::byte *>(copy) + samplesOffset);
  }
  static int64_t bytesOf(int64_t rows) { return samplesOffset + (rows * 4 + 63) / 64 * 64; }
  /// The status and the samples of `rows` rows, into pinned memory, on a stream or into a graph.
  Status copyTo(void *copy, int64_t rows, CUstream stream) const;
  /// Ends kernels that have not begun: they find a result, `stopped`.
  Status stop(CUstream stream) const;
  /// Behind a step that has failed, so that kernels work again.
  Status clear(CUstream stream) const;

  static constexpr int32_t stopped = -1;

private:
  static constexpr int64_t samplesOffset = 64;

  const Driver *driver = nullptr;
  DeviceBytes device;
  PinnedBytes word; ///< `stopped`, to be copied
};

} // namespace k2c::runtime

#endif
