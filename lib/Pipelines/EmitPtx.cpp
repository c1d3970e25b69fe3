//===- EmitPtx.cpp - Kernels of a GPU as PTX, and as cubins ------------------------===//
//
// A file a kernel, named by what it computes, as the objects of a processor are. Where ptxas is there the machine code
// lies beside: a driver takes it as it is, where it would compile the text when a program starts.
//
//   ptx/<hash>.ptx      what any driver compiles
//   cubin/<hash>.cubin  for the architecture alone
//   ptx/index.json      of each its kernel's name, and what ptxas says
//
// A folder of --emit ptx has these alone and is replaced as a whole, so that it never has files of two compiles; -o -
// prints the texts, each behind a line with the names of its kernels.
//
//===----------------------------------------------------------------------===//
#include "Stages.h"
#include "base/File.h"
#include "base/JsonText.h"
#include "k2c/Support/Join.h"
#include "k2c/Support/WriteFile.h"
#include "k2c/Target/TemporaryFolder.h"
#include "llvm/ADT/STLExtras.h"
#include <filesystem>
#include <nlohmann/json.hpp>

namespace fs = std::filesystem;
using nlohmann::json;
using namespace mlir;

namespace k2c {

namespace {

/// What to make of a kernel, and of which code it is.
struct Kernel {
  PtxJob job;
  const KernelCode *code;
};

/// The kernels of a module in the llvm form.
std::vector<Kernel> kernelsOf(ModuleOp module, const std::vector<KernelCode> &codes) {
  std::vector<Kernel> kernels;
  std::vector<ObjectJob> parts = programParts(module);
  for (ObjectJob &part : llvm::drop_begin(parts)) { // behind the host's
    const auto code = llvm::find_if(codes, [&](const KernelCode &each) { return each.symbol == part.name; });
    part.name = code->kernels.front();
    kernels.push_back({{std::move(part), code->function, code->arguments}, &*code});
  }
  return kernels;
}

/// What index.json says of a kernel; of what ptxas says nulls where it is not there.
json entryOf(const Kernel &kernel, const std::string &arch, const Cubin *cubin) {
  json entry = {{"name", kernel.code->kernels.front()}, {"arch", arch}, {"class", "warp"}};
  const std::pair<const char *, int64_t Cubin::*> numbers[] = {
      {"registers", &Cubin::registers}, {"spill_bytes", &Cubin::spillBytes}, {"shared_bytes", &Cubin::sharedBytes}};
  for (const auto &[name, number] : numbers)
    entry[name] = cubin ? json(cubin->*number) : json();
  return entry;
}

/// The ptxas of this machine; of none the path is "".
Expected<Ptxas> ptxasHere() {
  const std::optional<std::string> path = findPtxas();
  if (!path)
    return Ptxas();
  Expected<std::string> version = toolVersion(*path);
  return version ? Expected<Ptxas>(Ptxas{*path, *version}) : version.takeError();
}

/// Paths of their texts.
Expected<std::vector<std::string>> textsOf(const std::vector<Kernel> &kernels, const Inputs &inputs,
                                           const ObjectOptions &options) {
  std::vector<PtxJob> jobs;
  for (const Kernel &kernel : kernels)
    jobs.push_back(kernel.job);
  return compilePtx(jobs, *inputs.gpu, options);
}

/// The cubins of the texts at `paths`.
Expected<std::vector<Cubin>> cubinsOf(const std::vector<Kernel> &kernels, const std::vector<std::string> &paths,
                                      const std::string &arch, const Ptxas &ptxas, const ObjectOptions &options) {
  std::vector<CubinJob> jobs;
  for (const auto &[kernel, path] : llvm::zip_equal(kernels, paths))
    jobs.push_back({kernel.code->kernels.front(), path});
  return compileCubins(jobs, arch, ptxas, options);
}

Status writeIn(const fs::path &folder, const std::string &name, const std::string &bytes) {
  std::error_code error;
  fs::create_directories(folder, error);
  return writeFile((folder / name).string(), bytes);
}

} // namespace

Expected<std::string> writeGpuCode(CompilePipeline &pipeline, const Inputs &inputs, const CompileOptions &options,
                                   const std::string &folder) {
  Expected<Ptxas> ptxas = ptxasHere();
  if (!ptxas)
    return ptxas.takeError();
  const std::vector<Kernel> kernels = kernelsOf(pipeline.module(), pipeline.codes());
  const fs::path spare = fs::path(folder) / "ptx.objects";
  const ObjectOptions objects = objectOptions(options, spare.string());
  Expected<std::vector<std::string>> paths = textsOf(kernels, inputs, objects);
  if (!paths)
    return paths.takeError();
  Expected<std::vector<Cubin>> cubins = std::vector<Cubin>();
  if (!ptxas->path.empty())
    cubins = cubinsOf(kernels, *paths, inputs.gpu->arch, *ptxas, objects);
  if (!cubins)
    return cubins.takeError();
  json index = json::object();
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string &hash = kernels[i].job.symbol;
    const Cubin *const cubin = cubins->empty() ? nullptr : &(*cubins)[i];
    Expected<std::string> text = readUserFile((*paths)[i], int64_t(1) << 30);
    if (!text)
      return text.takeError();
    if (Status status = writeIn(fs::path(folder) / "ptx", hash + ".ptx", *text); !status)
      return status.takeError();
    if (cubin)
      if (Status status = writeIn(fs::path(folder) / "cubin", hash + ".cubin", cubin->code); !status)
        return status.takeError();
    index[hash] = entryOf(kernels[i], inputs.gpu->arch, cubin);
  }
  std::error_code error;
  fs::remove_all(spare, error);
  if (Status status = writeIn(fs::path(folder) / "ptx", "index.json", jsonText(index, 2) + "\n"); !status)
    return status.takeError();
  return ptxas->version;
}

Status printPtx(CompilePipeline &pipeline, const Inputs &inputs, const CompileOptions &options) {
  Expected<TemporaryFolder> spare = TemporaryFolder::make("k2c-ptx", "-o -", "set TMPDIR, or name a folder with -o");
  if (!spare)
    return spare.takeError();
  const std::vector<Kernel> kernels = kernelsOf(pipeline.module(), pipeline.codes());
  Expected<std::vector<std::string>> paths = textsOf(kernels, inputs, objectOptions(options, spare->path()));
  if (!paths)
    return paths.takeError();
  for (const auto &[kernel, path] : llvm::zip_equal(kernels, *paths)) {
    Expected<std::string> text = readUserFile(path, int64_t(1) << 30);
    if (!text)
      return text.takeError();
    options.print("// kernel " + joined(kernel.code->kernels) + "\n" + *text + "\n");
  }
  return {};
}

} // namespace k2c
