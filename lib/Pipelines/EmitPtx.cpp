//===- EmitPtx.cpp - Kernels of a GPU as PTX files ------------------------===//
//
// A file a kernel, named by what it computes, as the objects of a processor are. The driver compiles them when a
// program starts. Where ptxas is there it is asked what the machine code needs, which index.json says; a kernel that
// does not fit into registers is refused.
//
//===----------------------------------------------------------------------===//
#include "Stages.h"
#include "base/File.h"
#include "base/JsonText.h"
#include "k2c/Support/WriteFile.h"
#include "llvm/ADT/STLExtras.h"
#include <filesystem>
#include <nlohmann/json.hpp>

namespace fs = std::filesystem;
using nlohmann::json;
using namespace mlir;

namespace k2c {

namespace {

/// What to make of the kernels of a module in the llvm form, and of which of `codes` each is.
std::vector<PtxJob> ptxJobs(ModuleOp module, const std::vector<KernelCode> &codes) {
  std::vector<PtxJob> jobs;
  std::vector<ObjectJob> parts = programParts(module);
  for (ObjectJob &part : llvm::drop_begin(parts)) { // behind the host's
    const auto code = llvm::find_if(codes, [&](const KernelCode &each) { return each.symbol == part.name; });
    jobs.push_back({std::move(part), code->function, code->arguments});
  }
  return jobs;
}

/// What index.json says of a kernel; null: ptxas is not there.
Expected<json> entryOf(const std::string &path, const KernelCode &code, const NvidiaTarget &target,
                       const std::optional<std::string> &ptxas) {
  json entry = {{"name", code.kernels.front()}, {"arch", target.arch},    {"class", "warp"},
                {"registers", nullptr},         {"spill_bytes", nullptr}, {"shared_bytes", nullptr}};
  if (!ptxas)
    return entry;
  Expected<PtxasReport> report = assemble(*ptxas, path, target.arch, path + ".cubin");
  std::error_code error;
  fs::remove(path + ".cubin", error);
  if (!report)
    return report.takeError();
  entry.update(
      {{"registers", report->registers}, {"spill_bytes", report->spillBytes}, {"shared_bytes", report->sharedBytes}});
  return entry;
}

} // namespace

Status writePtx(CompilePipeline &pipeline, const Inputs &inputs, const CompileOptions &options,
                const std::string &folder) {
  const std::vector<KernelCode> &codes = pipeline.codes();
  const std::vector<PtxJob> jobs = ptxJobs(pipeline.module(), codes);
  const fs::path root = fs::path(folder) / "ptx";
  std::error_code error;
  fs::create_directories(root, error);
  const std::string spare = (fs::path(folder) / "ptx.objects").string();
  Expected<std::vector<std::string>> paths = compilePtx(jobs, *inputs.gpu, objectOptions(options, spare));
  if (!paths)
    return paths.takeError();
  const std::optional<std::string> ptxas = findPtxas();
  json index = json::object();
  for (auto [job, path] : llvm::zip_equal(jobs, *paths)) {
    Expected<std::string> text = readUserFile(path, int64_t(1) << 30);
    if (!text)
      return text.takeError();
    const fs::path file = root / (job.symbol + ".ptx");
    if (Status status = writeFile(file.string(), *text); !status)
      return status;
    const auto code =
        llvm::find_if(codes, [&, &symbol = job.symbol](const KernelCode &each) { return each.function == symbol; });
    Expected<json> entry = entryOf(file.string(), *code, *inputs.gpu, ptxas);
    if (!entry)
      return entry.takeError();
    index[job.symbol] = std::move(*entry);
  }
  fs::remove_all(spare, error);
  return writeFile((root / "index.json").string(), jsonText(index, 2) + "\n");
}

} // namespace k2c
