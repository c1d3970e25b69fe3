// One NVIDIA GPU as a device: a driver that is opened at run time, all memory of the certificate in that of the GPU,
// and the program's step function as graphs, of which each step launches one. Two steps have places, so that one can be
// enqueued while the other runs.
//
// What the bundle needs and the machine has not, driver, device, architecture or memory, is refused before weights are
// read, with both.
#ifndef K2RT_DEVICE_CUDA_CUDADEVICE_H
#define K2RT_DEVICE_CUDA_CUDADEVICE_H

#include "device/cuda/CaptureArrays.h"
#include "device/cuda/CheckGpu.h"
#include "device/cuda/DeviceWeights.h"
#include "device/cuda/HostSampling.h"
#include "device/cuda/Modules.h"
#include "device/cuda/Recorder.h"
#include "device/cuda/StepMirror.h"
#include "device/cuda/StepOutcome.h"
#include "engine/Device.h"
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace k2c::runtime {

/// A driver's name that stands for the bundle's own, which interprets kernels.
inline constexpr char emulatedDriver[] = "emulated";

struct CudaOptions {
  std::string driver;                               ///< a library; "": libcuda.so.1; emulatedDriver
  int32_t device = 0;                               ///< its number in the driver
  std::optional<uint64_t> emulatedSeed;             ///< of the order in which the emulated driver runs warps
  std::optional<std::chrono::nanoseconds> deadline; ///< of a step; none: a minute, with the emulated driver no end
  bool trust = false;                               ///< leaves the hashes of the weights unchecked
  StepCaptures captures;                            ///< what steps will have
  std::optional<Error> *unreturned = nullptr;       ///< what the device's end fails with, which it outlives
};

/// The driver that a bundle in `folder` is to run on, of `device` as its manifest says.
Expected<std::unique_ptr<Driver>> openDriver(const std::string &folder, const DeviceFacts &device,
                                             const CudaOptions &options);

class CudaDevice : public Device {
public:
  /// `bundle`, whose manifest has a device, outlives it.
  static Expected<std::unique_ptr<CudaDevice>> create(const Bundle &bundle, const CudaOptions &options);
  ~CudaDevice() override;

  /// In a trace, one for each branch of the graph.
  int32_t workers() const override { return K2RT_GPU_BRANCHES; }
  Expected<std::byte *> allocate(int64_t bytes, const char *purpose, MemoryUse use) override;
  Status load(const RankMemory &memory, Trace *trace) override;
  void use(const void *const *weights) override;
  void upload(const k2rt_ir_step &step, bool wantsLogits) override;
  bool chains() const override { return true; }
  Status submit(k2rt_ir_step_fn entry) override;
  Status collect() override;
  StepResults results() const override { return last; }
  void interrupt() override { interrupted.store(true, std::memory_order_relaxed); }

  const GpuFacts &gpu() const { return context.gpu(); }
  /// Once it is loaded: why the driver compiled PTX; "": it did not.
  const std::string &whyCompiled() const { return modules->whyCompiled(); }

private:
  /// Memory of the GPU; zeroed, as kernels read whole vectors of rows of which some are not there.
  Expected<DeviceBytes> takeZeroed(int64_t bytes, const char *purpose);
  CudaDevice(const Bundle &bundle, const CudaOptions &options, std::unique_ptr<Driver> driver, GpuContext context);
  /// A step, where it lies and what of it is recorded.
  struct StepPlace {
    std::optional<StepMirror> mirror;
    RecordedStep fewRows, allRows;
    Event done; ///< its kernels and copies
    k2rt_ir_step step = {};
    bool draws = false;       ///< the host does, of its logits; what it samples by stays up to its end then
    bool wantsLogits = false; ///< somebody does
    int64_t begunNs = 0;      ///< when it was submitted
  };
  StepPlace &next() { return places[static_cast<size_t>(submitted % 2)]; }
  const StepPlace &first() const { return places[static_cast<size_t>(collected % 2)]; }
  Status addPlaces(const k2rt_ir_step &written);
  Status loadCode(const RankMemory &memory);
  Status launch(const StepPlace &place);
  Status clearOutcome();
  Status finishFirst();
  Status waitForKernels();
  Status endEarly(bool isLate);
  std::string progress(bool hasEnded) const;
  const RecordedStep &recordedOf(const StepPlace &place) const;
  Status outcome();

  const Bundle &bundle;
  const CudaOptions options;
  const std::unique_ptr<Driver> driver; ///< first: everything below is of it
  const GpuContext context;
  Stream stream, stopping; ///< the second reaches kernels that the first is running
  std::vector<DeviceBytes> ofProgram;
  std::vector<PinnedBytes> ofEngine;
  DeviceBytes scratch, logits;
  std::optional<DeviceWeights> weights;
  std::optional<Modules> modules;
  std::optional<CaptureArrays> captures;
  std::optional<StepOutcome> stepOutcome;
  std::array<StepPlace, 2> places;
  HostSampling sampling;
  Trace *trace = nullptr;
  bool hasEnded = false;                ///< a step, by a result in the status
  int64_t submitted = 0, collected = 0; ///< steps
  int64_t lastNs = 0;                   ///< when the last one was collected
  StepResults last;                     ///< of it
  std::optional<Error> refused;         ///< what the next step fails with
  std::atomic<bool> interrupted{false};
};

} // namespace k2c::runtime

#endif
