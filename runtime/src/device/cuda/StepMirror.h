// A step as kernels read it: the struct and its arrays in one piece of device memory, and the same piece in pinned
// memory, which is filled for each step and copied as a whole. Every array has its place, as large as it can get, so a
// recorded graph has the same copy and the same addresses for all steps. Behind it, pinned alone, what comes back.
#ifndef K2RT_DEVICE_CUDA_STEPMIRROR_H
#define K2RT_DEVICE_CUDA_STEPMIRROR_H

#include "base/GpuHandles.h"
#include "device/cuda/StepOutcome.h"
#include "k2rt/program.h"
#include "program/Manifest.h"
#include <array>
#include <vector>

namespace k2c::runtime {

class StepMirror {
public:
  /// `outcome` outlives it. `results`: a step of what kernels write beside that, the addresses of logits and captures
  /// in device memory; of the rest it has nothing.
  static Expected<StepMirror> create(const Driver &driver, const Manifest &manifest, const StepOutcome &outcome,
                                     const k2rt_ir_step &results);

  /// Fills the pinned piece with a step whose arrays are the host's. Captures and forced routes are the device's where
  /// the step has any.
  void fill(const k2rt_ir_step &step);
  /// The copy to the device, into a graph for at most `rows` rows; its end is a copy back of what they leave.
  Status copyToDevice(CUstream stream) const;
  Status copyBack(int64_t rows, CUstream stream) const;

  /// In device memory.
  const k2rt_ir_step *step() const { return at<k2rt_ir_step>(0); }
  k2rt_ir_gpu_status *deviceStatus() const { return outcome->status(); }
  /// Where launches of a branch leave their numbers: in pinned memory, which the host reads even where a kernel does
  /// not end or the context has failed.
  int32_t *begunPlace(int32_t branch) const { return pinnedAt<int32_t>(begunOffset) + branch; }
  /// What they have left there of the last step; 0: nothing.
  std::array<int32_t, K2RT_GPU_BRANCHES> begun() const;
  /// Of the last step, once they are back.
  const k2rt_ir_gpu_status &status() const { return StepOutcome::statusIn(pinnedAt<void>(outcomeOffset)); }
  const int32_t *samples() const { return StepOutcome::samplesIn(pinnedAt<void>(outcomeOffset)); }
  /// What the program sees while it is recorded: counts are `rows` or what they can be at most, arrays the device's.
  k2rt_ir_step recorded(int64_t rows) const;

private:
  explicit StepMirror(const Manifest &manifest) : limits(manifest.limits), outputRows(manifest.outputRows()) {}
  template <class T> T *at(int64_t offset) const { return reinterpret_cast<T *>(device.get() + offset); }
  template <class T> T *pinnedAt(int64_t offset) const {
    return reinterpret_cast<T *>(static_cast<std::byte *>(pinned.get()) + offset);
  }
  /// An array of the step, by the offset of its place in the piece.
  struct Array {
    void *k2rt_ir_step::*field;
    int64_t k2rt_ir_step::*count;
    int64_t more;  ///< elements beside that count
    int64_t bytes; ///< of an element
    int64_t offset;
  };
  /// One with an entry for each cache group: pointers, and what they point to.
  struct GroupArray {
    void *k2rt_ir_step::*field;
    int64_t k2rt_ir_step::*count;
    int64_t bytes; ///< for each of that count
    int64_t pointers;
    std::vector<int64_t> offsets;
  };
  int64_t layOut(int64_t groups);
  void setAddresses(k2rt_ir_step &step) const;

  int64_t outputRowsOf(int64_t rows) const;

  const Driver *driver = nullptr;
  const StepOutcome *outcome = nullptr;
  k2rt_limits limits;
  int64_t outputRows;
  int64_t bytes = 0;         ///< of the piece
  int64_t begunOffset = 0;   ///< behind it
  int64_t outcomeOffset = 0; ///< the same
  k2rt_ir_step results = {};
  DeviceBytes device;
  PinnedBytes pinned;
  std::vector<Array> arrays;
  std::vector<GroupArray> ofGroups;
};

} // namespace k2c::runtime

#endif
