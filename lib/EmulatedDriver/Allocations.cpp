//===- Allocations.cpp - Memory that a program asks for -------------------===//
#include "Driver.h"

#include <algorithm>

using namespace k2c::emulated;

namespace {

constexpr uint64_t granularity = 512; ///< of the bytes that an allocation takes

uint64_t takenBy(uint64_t bytes) { return (bytes + granularity - 1) / granularity * granularity; }

} // namespace

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  return enterContext(Entry::cuMemGetInfo_v2, [&](Driver &driver, Context &context) {
    if (!free || !total)
      return CUDA_ERROR_INVALID_VALUE;
    *total = driver.settings.memoryBytes;
    *free = driver.settings.memoryBytes - driver.devices[context.device].usedBytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  return enterContext(Entry::cuMemAlloc_v2, [&](Driver &driver, Context &context) {
    if (!address || bytes == 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = driver.checkUnsafe(); error != CUDA_SUCCESS)
      return error;
    if (driver.statistics.graphLaunches != 0) {
      ++driver.statistics.lateAllocations;
      if (!driver.settings.allowsLateAllocations)
        return refuse(CUDA_ERROR_NOT_PERMITTED, "memory is allocated behind the first launch of a graph; allocate it "
                                                "before, or set K2C_EMULATED_LATE_ALLOCATIONS=1");
    }
    Device &device = driver.devices[context.device];
    if (bytes > driver.settings.memoryBytes || takenBy(bytes) > driver.settings.memoryBytes - device.usedBytes)
      return CUDA_ERROR_OUT_OF_MEMORY;
    const Memory::Allocation *made = driver.memory.allocate(
        bytes, context.device, currentContext, "an allocation of " + std::to_string(bytes) + " bytes", false);
    if (!made)
      return CUDA_ERROR_OUT_OF_MEMORY;
    device.usedBytes += takenBy(bytes);
    device.peakBytes = std::max(device.peakBytes, device.usedBytes);
    *address = reinterpret_cast<CUdeviceptr>(made->data.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return enter(Entry::cuMemFree_v2, [&](Driver &driver) {
    if (address == 0)
      return CUDA_SUCCESS;
    const Memory::Allocation *found = driver.memory.find(address);
    if (!found || found->owner == hostOwner || found->context == 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = driver.checkUnsafe(); error != CUDA_SUCCESS)
      return error;
    const uint64_t context = found->context;
    driver.devices[found->owner].usedBytes -= takenBy(found->bytes);
    driver.memory.free(address);
    return driver.errorOf(context);
  });
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  return enterContext(Entry::cuMemHostAlloc, [&](Driver &driver, Context &) {
    if (!address || bytes == 0 || flags > 7) // portable, mapped, write-combined
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = driver.checkUnsafe(); error != CUDA_SUCCESS)
      return error;
    if (driver.statistics.graphLaunches != 0)
      ++driver.statistics.lateAllocations;
    const Memory::Allocation *made = driver.memory.allocate(
        bytes, hostOwner, currentContext, "pinned memory of " + std::to_string(bytes) + " bytes", true);
    if (!made)
      return CUDA_ERROR_OUT_OF_MEMORY;
    *address = made->data.get();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFreeHost(void *address) {
  return enter(Entry::cuMemFreeHost, [&](Driver &driver) {
    if (!address)
      return CUDA_SUCCESS;
    const Memory::Allocation *found = driver.memory.find(reinterpret_cast<uint64_t>(address));
    if (!found || found->owner != hostOwner)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = driver.checkUnsafe(); error != CUDA_SUCCESS)
      return error;
    const uint64_t context = found->context;
    driver.memory.free(reinterpret_cast<uint64_t>(address));
    return driver.errorOf(context);
  });
}
