//===- GpuKernel.h - Compiles a kernel for a GPU, and runs it on an emulated one -----------------===//
#ifndef K2C_UNIT_KERNELS_GPUKERNEL_H
#define K2C_UNIT_KERNELS_GPUKERNEL_H

#include "CompiledKernel.h"
#include "k2c/Ptx/Machine.h"
#include "k2c/Target/Nvidia.h"

namespace k2c::test {

/// The kernel as PTX. Launches draw what the PTX ISA leaves open from the number of CTAs, and one of one CTA looks for
/// races; what they find is a failure of the test. Kernels may use what operator new has given.
Expected<CompiledKernel> compileForGpu(const KernelDesc &desc, const NvidiaTarget &target, const KernelChoice &choice);

/// While it lives, launches draw from `seed`, and all of them look for races.
struct StrictLaunches {
  explicit StrictLaunches(uint64_t seed);
  ~StrictLaunches();
};

/// What a launch of the kernel on `ctas` CTAs does, loads and stores included.
Expected<ptx::Counts> countOnGpu(const KernelDesc &desc, const NvidiaTarget &target, const k2rt_ir_step &step,
                                 const std::vector<void *> &args, int64_t ctas);

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_GPUKERNEL_H
