//===- GpuKernels.h - Two linears to measure on a GPU ---------------------===//
//
// Kernels of programs, of bf16: one whose weights stay in L2, and one whose weights L2 cannot hold.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_CALIBRATE_GPUKERNELS_H
#define K2C_LIB_CALIBRATE_GPUKERNELS_H

#include "base/Gpu.h"
#include "k2c/Kernels/TileConfig.h"
#include "k2c/Support/Units.h"
#include "k2c/Target/Nvidia.h"

namespace k2c::calibration {

/// A linear and its code.
struct GpuKernel {
  KernelDesc desc;
  TileConfig tile;
  std::string entry;      ///< its name in the code
  std::string ptx, cubin; ///< "": there is no cubin for the device

  const LinearDesc &linear() const { return std::get<LinearDesc>(desc.body); }
  int64_t bytesOfWeights() const { return weightBytes(linear().w, tile.weights); }
};

/// Of a device, on which so many CTAs run at once.
struct GpuKernels {
  NvidiaTarget target;
  int64_t ctas = 1;
  GpuKernel near;       ///< a panel for each CTA, in at most a third of L2 if `nearFits`
  GpuKernel streamed;   ///< as many panels for each CTA, with weights of at least eight times L2
  bool nearFits = true; ///< or else the narrowest panels are too large, and nothing is known of reads from L2
};

/// Without code. At most a third of L2: other data are there, too, and devices whose L2 is in two halves keep what both
/// read twice.
GpuKernels gpuKernels(const NvidiaTarget &target, int64_t ctas, Bytes l2);

/// Adds the code: PTX, and cubins where ptxas is found and `gpu` takes them. Errors: ptxas fails; no temporary folder.
Status compileForGpu(GpuKernels &kernels, const GpuFacts &gpu, const ObjectOptions &options);

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_GPUKERNELS_H
