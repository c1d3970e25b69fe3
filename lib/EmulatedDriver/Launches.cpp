//===- Launches.cpp - Launches of kernels ---------------------------------===//
//
// What a device can tell from the launch alone is an error of the call: sizes of grid, block and cluster, shared
// memory, what the kernel says of them. Parameters are copied by their sizes in the text.
//
//===----------------------------------------------------------------------===//
#include "Driver.h"
#include "Image.h"

#include <cstring>

using namespace k2c::emulated;
namespace ptx = k2c::ptx;

namespace {

/// Of blocks in a cluster, without an attribute that k2c does not use.
constexpr uint64_t maxCluster = 8;

/// Sets the cluster from attributes, of which none may be another.
CUresult readAttributes(const CUlaunchConfig &config, ptx::Extent &cluster) {
  if (config.numAttrs != 0 && !config.attrs)
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute &attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      cluster = {attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z};
      if (ptx::product(cluster) == 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    } else if (attribute.id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      return refuse(CUDA_ERROR_NOT_SUPPORTED, "launch attribute " + std::to_string(static_cast<int>(attribute.id)) +
                                                  " is not emulated; leave it out");
    }
  }
  return CUDA_SUCCESS;
}

CUresult checkShape(const ptx::Function &function, const KernelLaunch &launch) {
  const ptx::Extent &grid = launch.grid, &block = launch.block;
  if (ptx::product(grid) == 0 || grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535 ||
      ptx::product(block) == 0 || ptx::product(block) > 1024 || block[2] > 64)
    return CUDA_ERROR_INVALID_VALUE;
  const uint64_t maximal = ptx::product(function.maximalThreads);
  if ((ptx::product(function.requiredThreads) != 0 && block != function.requiredThreads) ||
      (maximal != 0 && ptx::product(block) > maximal))
    return CUDA_ERROR_INVALID_VALUE;
  const ptx::Extent &required = function.requiredCluster;
  const ptx::Extent &cluster = ptx::product(launch.cluster) != 0 ? launch.cluster : required;
  if (ptx::product(cluster) == 0)
    return CUDA_SUCCESS;
  const bool isWhole = grid[0] % cluster[0] == 0 && grid[1] % cluster[1] == 0 && grid[2] % cluster[2] == 0;
  if (!isWhole || ptx::product(cluster) > maxCluster || (ptx::product(required) != 0 && cluster != required))
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return CUDA_SUCCESS;
}

CUresult launch(Driver &driver, Stream &stream, const CUlaunchConfig &config, const LoadedKernel &loaded,
                void **parameters) {
  const uint32_t device = driver.contexts.find(stream.context)->device;
  KernelLaunch made;
  made.image = loaded.image;
  made.kernel = &loaded.image->kernel(loaded.index, device);
  made.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
  made.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
  made.sharedBytes = config.sharedMemBytes;
  if (const CUresult error = readAttributes(config, made.cluster); error != CUDA_SUCCESS)
    return error;
  const ptx::Function &function = made.kernel->function();
  if (const CUresult error = checkShape(function, made); error != CUDA_SUCCESS)
    return error;
  if (config.sharedMemBytes > loaded.dynamicShared(device) || (!function.parameters.empty() && !parameters))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    if (!parameters[i])
      return CUDA_ERROR_INVALID_VALUE;
    const auto *first = static_cast<const std::byte *>(parameters[i]);
    made.parameters.emplace_back(first, first + function.parameters[i].bytes());
  }
  return driver.enqueue(stream, {stream.context, std::move(made)});
}

} // namespace

uint64_t LoadedKernel::dynamicShared(uint32_t device) const {
  if (const auto found = maxDynamicShared.find(device); found != maxDynamicShared.end())
    return found->second;
  const uint64_t staticBytes = image->kernel(index, device).sharedBytes();
  return staticBytes < defaultShared ? defaultShared - staticBytes : 0;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
  const CUstream handle = config ? config->hStream : nullptr;
  return enterContext(Entry::cuLaunchKernelEx, [&](Driver &driver, Context &) {
    if (!config)
      return CUDA_ERROR_INVALID_VALUE;
    CUresult error = CUDA_SUCCESS;
    Stream *stream = driver.stream(handle, error);
    if (!stream)
      return error;
    const LoadedKernel *kernel = driver.kernels.find(idOf(function));
    if (!kernel || stream->context != currentContext)
      return CUDA_ERROR_INVALID_HANDLE;
    if (extra)
      return refuse(CUDA_ERROR_NOT_SUPPORTED, "parameters in a buffer are not emulated; give an array of them");
    return launch(driver, *stream, *config, *kernel, parameters);
  });
}
