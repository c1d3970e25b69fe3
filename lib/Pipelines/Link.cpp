//===- Link.cpp - Objects of the program, linked --------------------------===//
#include "Stages.h"
#include "k2c/Kernels/Cpu.h"
#include "k2rt/program.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace k2c {

/// The text of a module decides its object: equal text, equal object.
static std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

std::vector<ObjectJob> programParts(ModuleOp module) {
  std::vector<ObjectJob> parts;
  auto host = std::make_shared<OwningOpRef<ModuleOp>>(cast<ModuleOp>(module->clone()));
  for (auto code : llvm::make_early_inc_range((*host)->getOps<ModuleOp>()))
    code.erase();
  parts.push_back(
      {"host", textOf(host->get()), [host](MLIRContext *) { return OwningOpRef<ModuleOp>(host->get().clone()); }});
  for (auto code : module.getOps<ModuleOp>())
    parts.push_back({code.getSymName()->str(), textOf(code),
                     [code](MLIRContext *) mutable { return OwningOpRef<ModuleOp>(code.clone()); }});
  return parts;
}

ObjectOptions objectOptions(const CompileOptions &options, const std::string &spareDir) {
  ObjectOptions objects;
  objects.cacheDir = options.cacheFolder;
  objects.jobs = options.jobs;
  objects.spareDir = spareDir;
  objects.note = options.note;
  if (options.progress)
    objects.progress = [&](int64_t done, int64_t total) { options.progress("kernels", done, total); };
  return objects;
}

Status linkProgram(CompilePipeline &pipeline, const Inputs &inputs, const CompileOptions &options,
                   const std::string &path) {
  std::vector<ObjectJob> jobs = programParts(pipeline.module());
  if (inputs.gpu)
    jobs.resize(1); // the host's: kernels are PTX
  ObjectOptions objects = objectOptions(options, path + ".objects");
  Expected<std::vector<std::string>> paths = compileObjects(jobs, inputs.target, objects);
  if (!paths)
    return paths.takeError();
  Status linked = linkShared(*paths, {K2RT_PROGRAM_QUERY_NAME}, path);
  llvm::sys::fs::remove_directories(objects.spareDir);
  return linked;
}

} // namespace k2c
