// What inspection commands capture and force of a step, in the memory of a GPU: taken at load, as nothing is taken
// later.
#ifndef K2RT_DEVICE_CUDA_CAPTUREARRAYS_H
#define K2RT_DEVICE_CUDA_CAPTUREARRAYS_H

#include "base/GpuHandles.h"
#include "engine/CaptureChoice.h"
#include "k2rt/program.h"
#include <vector>

namespace k2c::runtime {

/// What steps will have: of a command, and `counts` of the engine's statistics, which capture chosen experts of all
/// rows.
struct StepCaptures {
  CaptureChoice choice;
  bool counts = false;
};

class CaptureArrays {
public:
  static int64_t bytesOf(const Manifest &manifest, const StepCaptures &captures);
  static Expected<CaptureArrays> allocate(const Driver &driver, const Manifest &manifest, const StepCaptures &captures);

  /// Sets the addresses of the arrays that there are in `step`.
  void setAddresses(k2rt_ir_step &step) const;
  /// Fails where `step` has an array that is not among these.
  Status checkKnown(const k2rt_ir_step &step) const;
  /// Copies what kernels read from the arrays of `step`, on a stream.
  Status copyToDevice(const k2rt_ir_step &step, CUstream stream) const;
  /// Whether kernels write any of them in `step`.
  bool areWritten(const k2rt_ir_step &step) const;
  /// Copies what kernels wrote into the arrays of `step`, on a stream.
  Status copyBack(const k2rt_ir_step &step, CUstream stream) const;

private:
  struct Array {
    void *k2rt_ir_step::*field;
    int64_t rowBytes; ///< 0: its size does not depend on rows
    int64_t fixedBytes;
    int64_t rows; ///< at most
    bool isRead, isWritten;
    DeviceBytes memory;

    int64_t bytes(int64_t ofRows) const { return rowBytes * ofRows + fixedBytes; }
  };
  static std::vector<Array> arraysOf(const Manifest &manifest, const StepCaptures &captures);

  const Driver *driver = nullptr;
  std::vector<Array> arrays;
};

} // namespace k2c::runtime

#endif
