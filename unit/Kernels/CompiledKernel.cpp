//===- CompiledKernel.cpp - Compiles a kernel for a CPU, and runs it in parts --------------------===//
#include "CompiledKernel.h"
#include "k2c/Kernels/Cpu.h"
#include "llvm/Support/FileSystem.h"
#include <dlfcn.h>
#include <xmmintrin.h>

namespace k2c::test {

namespace {

/// DAZ and FTZ, as in every worker.
struct FlushDenormals {
  unsigned saved = _mm_getcsr();
  FlushDenormals() { _mm_setcsr(saved | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(saved); }
};

LaunchResult runParts(k2rt_ir_kernel_fn function, const CompiledKernel &kernel, const k2rt_ir_step &step,
                      const std::vector<void *> &args, int64_t workers, void *scratch) {
  FlushDenormals flush;
  LaunchResult result;
  std::vector<char> own(scratch ? 0 : kernel.scratchBytes + 64);
  int64_t items = itemCount(kernel.grid, gridRows(kernel.grid, step));
  for (int64_t w = 0; w < workers; ++w) {
    k2rt_ir_worker worker = {};
    worker.step = const_cast<k2rt_ir_step *>(&step);
    worker.scratch = scratch ? scratch : own.data();
    worker.scratch_bytes = kernel.scratchBytes;
    worker.index = int32_t(w);
    worker.count = int32_t(workers);
    worker.begin = w * items / workers;
    worker.end = (w + 1) * items / workers;
    int32_t status = function(&worker, args.data());
    result.status = result.status ? result.status : status;
    result.variant = worker.variant;
    result.absent = worker.absent;
  }
  return result;
}

} // namespace

std::string temporaryFolder() {
  struct Folder {
    llvm::SmallString<128> path;
    Folder() { llvm::sys::fs::createUniqueDirectory("k2c-emit-test", path); }
    ~Folder() { llvm::sys::fs::remove_directories(path); }
  };
  static Folder folder;
  return folder.path.str().str();
}

std::string keyOf(const KernelDesc &desc, const KernelChoice &choice) {
  return canonicalKey(desc) + (choice.weights == WeightLayout::Rows ? " rows" : " panels") + " split " +
         std::to_string(choice.splitTokens);
}

Expected<CompiledKernel> compileForCpu(const KernelDesc &desc, const HostTarget &target, const KernelChoice &choice) {
  static int64_t serial = 0;
  CompiledKernel kernel;
  kernel.target = target.cpu;
  TargetInfo core = target.tileTarget();
  core.weights = choice.weights;
  kernel.tile = chooseTile(desc, core);
  kernel.tile.splitTokens = choice.splitTokens;
  kernel.grid = gridOf(desc, kernel.tile);
  kernel.scratchBytes = scratchBytes(desc, kernel.tile);
  ObjectJob job{desc.name, keyOf(desc, choice),
                [&](mlir::MLIRContext *context) { return emitKernel(context, desc, kernel.tile, "kernel"); }};
  ObjectOptions options;
  options.cacheDir = temporaryFolder();
  Expected<std::vector<std::string>> objects = compileObjects({job}, target, options);
  if (!objects)
    return objects.takeError();
  std::string path = options.cacheDir + "/" + std::to_string(serial++) + ".so";
  if (Status status = linkShared(*objects, {"kernel"}, path); !status)
    return status.takeError();
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error{desc.name, dlerror(), ""};
  auto function = reinterpret_cast<k2rt_ir_kernel_fn>(dlsym(library, "kernel"));
  kernel.run = [function](const CompiledKernel &self, const k2rt_ir_step &step, const std::vector<void *> &args,
                          int64_t workers,
                          void *scratch) { return runParts(function, self, step, args, workers, scratch); };
  return kernel;
}

Expected<CompiledKernel> compileForHost(const KernelDesc &desc) {
  Expected<HostTarget> host = HostTarget::detect();
  if (!host)
    return host.takeError();
  return compileForCpu(desc, *host, {});
}

int64_t gridRows(const Grid &grid, const k2rt_ir_step &step) {
  return grid.space == RowSpace::Output ? step.output_rows : step.token_rows;
}

} // namespace k2c::test
