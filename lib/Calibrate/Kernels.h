//===- Kernels.h - The probes' kernels, compiled and loaded ---------------===//
#ifndef K2C_LIB_CALIBRATE_KERNELS_H
#define K2C_LIB_CALIBRATE_KERNELS_H

#include "Probe.h"
#include "k2c/Calibrate/Calibrate.h"
#include "k2c/Kernels/Cpu.h"
#include "k2c/Target/Host.h"
#include "llvm/ADT/StringMap.h"

namespace k2c::calibration {

/// The probes' kernels, loaded. The library stays in the process.
class Kernels {
public:
  /// Errors: a kernel that cannot be emitted; no linker; a temporary folder whose files may not be executed.
  static Expected<Kernels> compile(const std::vector<Probe> &probes, const HostTarget &host,
                                   const CalibrateOptions &options);
  /// Null: a probe of the runtime itself.
  k2rt_ir_kernel_fn of(const Probe &probe) const { return functions.lookup(kernelSymbol(probe.desc)); }
  int64_t scratch = 0; ///< bytes that a worker needs at most

private:
  llvm::StringMap<k2rt_ir_kernel_fn> functions;
};

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_KERNELS_H
