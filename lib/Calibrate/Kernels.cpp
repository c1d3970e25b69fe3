//===- Kernels.cpp - The probes' kernels, compiled and loaded -------------===//
//
// Kernels go the way of a program's: description, tile, emitted module, object (of the same cache), shared object.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include "Jobs.h"
#include <algorithm>
#include <dlfcn.h>

namespace k2c::calibration {

Expected<Kernels> Kernels::compile(const std::vector<Probe> &probes, const HostTarget &host,
                                   const CalibrateOptions &options) {
  Kernels kernels;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadKernelDialects(context);
  std::vector<ObjectJob> jobs;
  std::vector<std::string> symbols;
  for (const Probe &probe : probes) {
    if (probe.desc.name.empty() || llvm::is_contained(symbols, kernelSymbol(probe.desc)))
      continue; // a probe of the runtime itself, or of a kernel that is there
    symbols.push_back(kernelSymbol(probe.desc));
    kernels.scratch = std::max(kernels.scratch, scratchBytes(probe.desc, probe.tile));
    auto emit = [&probe, symbol = symbols.back()](mlir::MLIRContext *in) {
      return emitKernel(in, probe.desc, probe.tile, symbol);
    };
    Expected<ObjectJob> job = kernelJob(probe.desc.name, emit, context);
    if (!job)
      return job.takeError();
    jobs.push_back(std::move(*job));
  }
  ObjectOptions objects;
  objects.cacheDir = options.cacheFolder;
  if (options.progress)
    objects.progress = [&](int64_t done, int64_t total) { options.progress("kernels", done, total); };
  Expected<TemporaryFolder> folder = folderOfJobs();
  if (!folder)
    return folder.takeError();
  objects.spareDir = folder->path("objects");
  objects.note = options.note;
  Expected<std::vector<std::string>> paths = compileObjects(jobs, host, objects);
  if (!paths)
    return paths.takeError();
  std::string path = folder->path("kernels.so");
  Status linked = linkShared(*paths, symbols, path);
  void *library = linked ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  std::string problem = library || !linked ? "" : dlerror();
  if (!linked)
    return linked.takeError();
  if (!library)
    return Error{"calibration", problem, "set TMPDIR to a folder whose files may be executed"};
  for (const std::string &symbol : symbols)
    kernels.functions[symbol] = reinterpret_cast<k2rt_ir_kernel_fn>(dlsym(library, symbol.c_str()));
  return kernels;
}

} // namespace k2c::calibration
