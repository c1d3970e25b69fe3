// Entry points of the driver that tests play which the runtime does not call, and the text of an error.
#include "base/CudaDriver.h"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

#ifndef FAKE_LACKS_A_SYMBOL
FAKE_EXPORT CUresult cuDeviceCanAccessPeer(int *, CUdevice, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; }
#endif
FAKE_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
FAKE_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
FAKE_EXPORT CUresult cuKernelGetAttribute(int *, CUfunction_attribute, CUkernel, CUdevice) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
FAKE_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
FAKE_EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *, CUtensorMapDataType, uint32_t, void *, const uint64_t *,
                                            const uint64_t *, const uint32_t *, const uint32_t *, CUtensorMapInterleave,
                                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
FAKE_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
FAKE_EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
  switch (error) {
#define K2C_CUDA_ERROR(name, number, text_)                                                                            \
  case name:                                                                                                           \
    *text = text_;                                                                                                     \
    return CUDA_SUCCESS;
#include "base/CudaErrors.def"
  }
  return CUDA_ERROR_INVALID_VALUE;
}
