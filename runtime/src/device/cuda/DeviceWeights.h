// The weights of a bundle in the memory of a GPU, and the addresses that its program reads them by.
#ifndef K2RT_DEVICE_CUDA_DEVICEWEIGHTS_H
#define K2RT_DEVICE_CUDA_DEVICEWEIGHTS_H

#include "base/GpuHandles.h"
#include "program/Bundle.h"
#include <vector>

namespace k2c::runtime {

class DeviceWeights {
public:
  /// Bytes of all ranges as they lie in device memory.
  static int64_t bytesOf(const Weights &weights);
  /// Copies all of them over `stream`, through pinned memory that is given back, and compares their hashes unless
  /// `trust`. Returns when they are there.
  static Expected<DeviceWeights> upload(const Driver &driver, const Bundle &bundle, CUstream stream, bool trust);

  /// As Weights::slots, of the device: a base for each slot, of one of routed experts its table in device memory.
  const void *const *slots() const { return bases.data(); }
  /// The entry of a table of Weights that `entry`, the address of one in device memory, stands for; null: of none.
  const void *hostEntry(const void *entry) const;

private:
  struct Table {
    CUdeviceptr device;
    const void *const *host;
    size_t experts;
  };

  Status take(const Driver &driver, const Bundle &bundle);
  void addSlots(const Bundle &bundle, std::vector<CUdeviceptr> &entries);

  DeviceBytes memory, tableMemory;
  std::vector<int64_t> offsets; ///< of each range in `memory`, and of its end
  std::vector<const void *> bases;
  std::vector<Table> tables;
};

} // namespace k2c::runtime

#endif
