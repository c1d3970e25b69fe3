//===- Nvidia.h - MLIR modules of kernels -> PTX -> cubins ---------------------===//
//
// A kernel's module, as emitKernel() makes it, becomes a PTX text of one entry that a GPU's driver or ptxas takes. What
// the entry does with its parameters is docs/Gpu.md's contract. Where ptxas is there it makes machine code of a text, a
// cubin. Both are kept in the cache folder as objects are.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TARGET_NVIDIA_H
#define K2C_TARGET_NVIDIA_H

#include "k2c/Target/Host.h"
#include <optional>

namespace k2c {

/// A GPU to compile for. A worker is a warp, unless the kernel's code asks for all warps of a CTA.
struct NvidiaTarget {
  std::string arch;      ///< sm_80, sm_90a, ..
  int ptxVersion = 0;    ///< 78: PTX 7.8, the first version with all that `arch` has and k2c emits
  int64_t threads = 128; ///< of a CTA

  /// CTAs that run on a multiprocessor at once, at least.
  static constexpr int64_t ctasPerCore = 2;

  int64_t workersPerCta() const { return threads / 32; }

  /// sm_80, sm_89, sm_90a, sm_100, sm_120; other names are refused.
  static Expected<NvidiaTarget> forArch(const std::string &name);
};

/// The PTX of `code`: a module with one function `symbol`(ptr worker, ptr args) -> i32, which stays as it is. The entry
/// has the function's name and `arguments` parameters behind the launch. LLVM may end the process.
Expected<std::string> ptxOf(mlir::ModuleOp code, llvm::StringRef symbol, int64_t arguments, const NvidiaTarget &target);

/// One PTX text to make.
struct PtxJob {
  ObjectJob code;
  std::string symbol; ///< of its function
  int64_t arguments = 0;
};

/// Paths of PTX files, as compileObjects() gives those of objects.
Expected<std::vector<std::string>> compilePtx(const std::vector<PtxJob> &jobs, const NvidiaTarget &target,
                                              const ObjectOptions &options);

/// What ptxas makes of a PTX text.
struct Cubin {
  std::string code;        ///< for the architecture that it was made for, and no other
  int64_t registers = 0;   ///< of a thread
  int64_t spillBytes = 0;  ///< of a thread: stored and loaded
  int64_t sharedBytes = 0; ///< of a CTA
};

/// One of them to make.
struct CubinJob {
  std::string kernel; ///< in errors
  std::string ptx;    ///< path of the text
};

/// The ptxas of $K2C_PTXAS, else the first in $PATH, $CUDA_HOME/bin, /usr/local/cuda/bin; none: there is no such file.
std::optional<std::string> findPtxas();

/// The version of a program of NVIDIA's toolkit, as 13.0.88.
Expected<std::string> toolVersion(const std::string &tool);

/// A ptxas and its version.
struct Ptxas {
  std::string path, version;
};

/// What `ptxas` makes of texts for `arch`, in their order, as compileObjects() makes objects. Errors: what ptxas
/// refuses, and what checkCode() does.
Expected<std::vector<Cubin>> compileCubins(const std::vector<CubinJob> &jobs, const std::string &arch,
                                           const Ptxas &ptxas, const ObjectOptions &options);

/// Refuses code that spills registers, and, where `sass` is there (Sass.h), main loops that wait for memory or keep
/// registers there. `kernel` names it.
Status checkCode(const std::string &kernel, const Cubin &cubin, const std::optional<std::string> &sass);

} // namespace k2c

#endif // K2C_TARGET_NVIDIA_H
