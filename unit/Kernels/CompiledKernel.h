//===- CompiledKernel.h - A kernel that was compiled, and how it is launched ---------------------===//
#ifndef K2C_UNIT_KERNELS_COMPILEDKERNEL_H
#define K2C_UNIT_KERNELS_COMPILEDKERNEL_H

#include "base/Error.h"
#include "k2c/Kernels/TileConfig.h"
#include "k2c/Target/Host.h"
#include "k2rt/program.h"
#include <functional>
#include <string>
#include <vector>

namespace k2c::test {

/// The first status that is not 0, and variant and absent expert of the last part; a GPU keeps no variant.
struct LaunchResult {
  int32_t status = 0;
  int32_t variant = -1;
  const void *absent = nullptr;
};

struct CompiledKernel {
  std::string target;
  TileConfig tile;
  Grid grid;
  int64_t scratchBytes = 0;
  /// See launch().
  std::function<LaunchResult(const CompiledKernel &, const k2rt_ir_step &, const std::vector<void *> &, int64_t,
                             void *)>
      run;
};

/// Runs the grid in `workers` parts, of a GPU on so many CTAs. `scratch`: at least kernel.scratchBytes, which the parts
/// use in turn; null: taken for this launch.
inline LaunchResult launch(const CompiledKernel &kernel, const k2rt_ir_step &step, const std::vector<void *> &args,
                           int64_t workers, void *scratch = nullptr) {
  return kernel.run(kernel, step, args, workers, scratch);
}

/// Rows of the grid's row space.
int64_t gridRows(const Grid &grid, const k2rt_ir_step &step);

/// How a kernel is compiled, beside its target.
struct KernelChoice {
  WeightLayout weights = WeightLayout::Panels;
  int64_t splitTokens = 0; ///< attention is split in steps of at most so many
};
/// Equal keys, equal kernels for one target.
std::string keyOf(const KernelDesc &desc, const KernelChoice &choice);
/// A folder of the process, which is removed when it ends.
std::string temporaryFolder();

/// The kernel for a CPU. Kernels live as long as the process.
Expected<CompiledKernel> compileForCpu(const KernelDesc &desc, const HostTarget &target, const KernelChoice &choice);

/// The kernel for this machine.
Expected<CompiledKernel> compileForHost(const KernelDesc &desc);

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_COMPILEDKERNEL_H
