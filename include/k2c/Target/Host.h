//===- Host.h - MLIR modules -> object files -> one shared object ------------------------===//
//
// Objects are named by the hash of what decides them and kept in a cache folder, so a kernel is compiled once for all
// models that use it. Compilation runs in forked child processes, several at a time: LLVM reports what it cannot do by
// ending the process, and here that becomes an error that names the kernel.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TARGET_HOST_H
#define K2C_TARGET_HOST_H

#include "base/Error.h"
#include "k2c/Kernels/TileConfig.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace k2c {

/// A CPU to compile for: x86-64 with FMA.
struct HostTarget {
  std::string cpu;                   ///< LLVM's name: znver4, x86-64-v3, ...
  std::vector<std::string> features; ///< every feature the CPU has, sorted: "avx512f", ...
  int64_t l1Bytes = TargetInfo().l1Bytes, l2Bytes = TargetInfo().l2Bytes; ///< data caches of a core

  /// The CPU this process runs on.
  static Expected<HostTarget> detect();
  /// "host" or a CPU name of LLVM's x86 target. Unknown names, 32-bit CPUs and CPUs without FMA are refused by name.
  static Expected<HostTarget> forCpu(const std::string &name);

  /// What tiles depend on.
  TargetInfo tileTarget() const;

  /// The features a machine must have to run what is compiled, for the manifest: those the code generator may use.
  bool has(const std::string &feature) const;
};

/// One object to make: `build` returns the module (any mix of LLVM, scf, cf, arith, math, vector); it is called in a
/// child process, on a fresh context, and only when the cache lacks the object.
struct ObjectJob {
  std::string name; ///< in errors
  std::string key;  ///< equal keys = equal objects (for one target and one k2c)
  std::function<mlir::OwningOpRef<mlir::ModuleOp>(mlir::MLIRContext *)> build;
};

/// Where compiles keep what other compiles can use: $XDG_CACHE_HOME/k2c, else $HOME/.cache/k2c; "" where neither is
/// set. A relative XDG_CACHE_HOME counts as not set, as the XDG specification says.
std::string userCacheFolder();

struct ObjectOptions {
  std::string cacheDir; ///< empty: userCacheFolder()
  std::string spareDir; ///< where objects go that the cache folder cannot keep; created when there is one;
                        ///< empty: such an object is an error
  int64_t jobs = 0;     ///< child processes at a time; 0: the processors of this machine
  /// Called when an object is there, with how many of all are; null: silent.
  std::function<void(int64_t done, int64_t total)> progress;
  /// Called once when the cache folder cannot keep an object, with the reason; null: silent.
  std::function<void(const std::string &)> note;
};

/// Paths of the objects, in the order of `jobs`. The first failure is the error; the others are finished or cancelled.
Expected<std::vector<std::string>> compileObjects(const std::vector<ObjectJob> &jobs, const HostTarget &target,
                                                  const ObjectOptions &options);

/// Assembly text of a module, for tests. Runs in this process; `module` is lowered in place.
Expected<std::string> assemblyOf(mlir::ModuleOp module, const HostTarget &target);

/// LLVM IR of a module as it enters the optimiser (`--emit llvm`). `module` is lowered in place.
Expected<std::string> llvmIrOf(mlir::ModuleOp module, const HostTarget &target);

/// Lowers scf, cf, arith, math, vector in `module` to the LLVM dialect, in place.
mlir::LogicalResult lowerToLLVMDialect(mlir::ModuleOp module);

/// Links objects to a shared object at `path` with ld.lld-22: every symbol defined, only `exported` visible.
Status linkShared(const std::vector<std::string> &objects, const std::vector<std::string> &exported,
                  const std::string &path);

} // namespace k2c

#endif // K2C_TARGET_HOST_H
