//===- Devices.cpp - Devices and their contexts ---------------------------===//
//
// Devices are those of one machine: all of one architecture, with the sizes of an H200, and each may access the memory
// of each other once its context says so. A context takes a part of the device's memory for itself.
//
//===----------------------------------------------------------------------===//
#include "Driver.h"
#include "Image.h"
#include "base/Gpu.h"

#include <algorithm>

using namespace k2c::emulated;

namespace {

/// CUDA 13.0, whose compiler of PTX knows 9.0.
constexpr int driverVersion = 13000;

int attributeOf(const Settings &settings, CUdevice_attribute attribute) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    return 1024;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    return 32;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    return 1980000;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return static_cast<int>(settings.multiprocessors);
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    return 3201000;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    return 6144;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    return static_cast<int>(settings.l2Bytes);
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    return 2048;
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    return 1;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return settings.arch.major;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return settings.arch.minor;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    return 65536;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return static_cast<int>(maxShared);
  }
  return -1;
}

template <class T> CUresult give(T *to, T value) {
  if (!to)
    return CUDA_ERROR_INVALID_VALUE;
  *to = value;
  return CUDA_SUCCESS;
}

template <class Body> CUresult enterDevice(Entry entry, CUdevice device, Body body) {
  return enter(entry, [&](Driver &driver) {
    return driver.isDevice(device) ? body(driver, driver.devices[static_cast<size_t>(device)])
                                   : CUDA_ERROR_INVALID_DEVICE;
  });
}

} // namespace

CUresult cuInit(unsigned flags) {
  return enterAlways(Entry::cuInit, [&](Driver &driver) { return driver.initialize(flags); });
}

CUresult cuDriverGetVersion(int *version) {
  return enterAlways(Entry::cuDriverGetVersion, [&](Driver &) { return give(version, driverVersion); });
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  return enterAlways(Entry::cuGetErrorName, [&](Driver &) {
    const CUresult given = give(name, errorName(error));
    return given == CUDA_SUCCESS && !*name ? CUDA_ERROR_INVALID_VALUE : given;
  });
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  return enterAlways(Entry::cuGetErrorString, [&](Driver &) {
    const CUresult given = give(text, errorText(error));
    return given == CUDA_SUCCESS && !*text ? CUDA_ERROR_INVALID_VALUE : given;
  });
}

CUresult cuDeviceGetCount(int *count) {
  return enter(Entry::cuDeviceGetCount,
               [&](Driver &driver) { return give(count, static_cast<int>(driver.settings.devices)); });
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  return enterDevice(Entry::cuDeviceGet, ordinal, [&](Driver &, Device &) { return give(device, ordinal); });
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
  return enterDevice(Entry::cuDeviceGetName, device, [&](Driver &driver, Device &) {
    if (!name || bytes <= 0)
      return CUDA_ERROR_INVALID_VALUE;
    const std::string text = k2c::emulatedGpu + driver.settings.archName;
    const size_t copied = text.copy(name, static_cast<size_t>(bytes) - 1);
    name[copied] = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  return enterDevice(Entry::cuDeviceGetAttribute, device, [&](Driver &driver, Device &) {
    const int known = attributeOf(driver.settings, attribute);
    if (known < 0)
      return refuse(CUDA_ERROR_INVALID_VALUE, "device attribute " + std::to_string(static_cast<int>(attribute)) +
                                                  " is not emulated; ask for one of base/CudaDriver.h");
    return give(value, known);
  });
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  return enterDevice(Entry::cuDeviceTotalMem_v2, device,
                     [&](Driver &driver, Device &) { return give(bytes, size_t(driver.settings.memoryBytes)); });
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  return enterDevice(Entry::cuDeviceCanAccessPeer, device, [&](Driver &driver, Device &) {
    return driver.isDevice(peer) ? give(can, device == peer ? 0 : 1) : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  return enterDevice(Entry::cuDevicePrimaryCtxRetain, device, [&](Driver &driver, Device &state) {
    if (!context)
      return CUDA_ERROR_INVALID_VALUE;
    if (state.context == 0) {
      Context made;
      made.device = static_cast<uint32_t>(device);
      state.context = driver.contexts.add(made);
      state.usedBytes = driver.settings.memoryBytes / contextPart;
      state.peakBytes = std::max(state.peakBytes, state.usedBytes);
    }
    ++driver.contexts.find(state.context)->retained;
    *context = handleOf<CUcontext>(state.context);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return enterDevice(Entry::cuDevicePrimaryCtxRelease_v2, device, [&](Driver &driver, Device &state) {
    Context *context = driver.contexts.find(state.context);
    if (!context)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->retained == 0)
      driver.endContext(state.context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return enter(Entry::cuCtxSetCurrent, [&](Driver &driver) {
    if (context && !driver.contexts.find(idOf(context)))
      return CUDA_ERROR_INVALID_CONTEXT;
    currentContext = idOf(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return enterContext(Entry::cuCtxSynchronize, [&](Driver &driver, Context &context) {
    for (auto &[id, capture] : driver.captures)
      if (capture.graph.context == currentContext)
        return driver.invalidate(id, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    driver.queue.finishAll();
    return context.error;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return enterContext(Entry::cuCtxEnablePeerAccess, [&](Driver &driver, Context &context) {
    const Context *other = driver.contexts.find(idOf(peer));
    if (flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (!other || other == &context)
      return CUDA_ERROR_INVALID_CONTEXT;
    const uint64_t bit = uint64_t(1) << other->device;
    if ((context.peers & bit) != 0)
      return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    context.peers |= bit;
    return CUDA_SUCCESS;
  });
}
