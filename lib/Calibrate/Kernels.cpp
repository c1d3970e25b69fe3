//===- Kernels.cpp - The probes' kernels, compiled and loaded -------------===//
//
// Kernels go the way of a program's: description, tile, emitted module, object (of the same cache), shared object.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <dlfcn.h>

namespace k2c::calibration {

static std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

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
    mlir::OwningOpRef<mlir::ModuleOp> module = emit(&context);
    if (!module)
      return Error{probe.desc.name, "no code could be emitted", ""};
    jobs.push_back({probe.desc.name, textOf(*module), emit});
  }
  ObjectOptions objects;
  objects.cacheDir = options.cacheFolder;
  if (options.progress)
    objects.progress = [&](int64_t done, int64_t total) { options.progress("kernels", done, total); };
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("k2c-calibrate", folder))
    return Error{"calibration", "cannot make a temporary folder: " + error.message(), "set TMPDIR"};
  llvm::scope_exit remove([&folder] { llvm::sys::fs::remove_directories(folder); });
  objects.spareDir = (folder + "/objects").str();
  objects.note = options.note;
  Expected<std::vector<std::string>> paths = compileObjects(jobs, host, objects);
  if (!paths)
    return paths.takeError();
  std::string path = (folder + "/kernels.so").str();
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
