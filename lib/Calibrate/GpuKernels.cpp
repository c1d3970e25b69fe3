//===- GpuKernels.cpp - Two linears to measure on a GPU -------------------===//
//
// Kernels go the way of a program's: description, tile, emitted module, PTX, cubin (of the same cache).
//
//===----------------------------------------------------------------------===//
#include "GpuKernels.h"

#include "Jobs.h"
#include "Probe.h"
#include "base/File.h"
#include "k2c/Kernels/Nvidia.h"

namespace k2c::calibration {

static GpuKernel linearOf(int64_t panels, int64_t k) {
  LinearDesc d;
  d.x = denseRows(k, DType::BF16);
  d.w.n = panels * panelColumns;
  d.w.k = k;
  d.y = denseRows(d.w.n, DType::BF16);
  d.order = {k, leafCount(k)};
  GpuKernel kernel;
  kernel.desc = {"linear", d};
  kernel.tile = chooseTile(kernel.desc, gpuTarget());
  kernel.entry = kernelSymbol(kernel.desc);
  return kernel;
}

GpuKernels gpuKernels(const NvidiaTarget &target, int64_t ctas, Bytes l2) {
  constexpr int64_t least = 128, most = 4096; // of k: a leaf of N1 for each warp of a CTA; as wide as models
  auto fits = [&](int64_t k) { return linearOf(ctas, k).bytesOfWeights() * 3 <= l2.value; };
  int64_t k = least;
  while (k < most && fits(2 * k))
    k *= 2;
  const int64_t bytes = linearOf(ctas, most).bytesOfWeights();
  const int64_t panels = std::max<int64_t>(1, (8 * l2.value + bytes - 1) / bytes);
  return {target, ctas, linearOf(ctas, k), linearOf(panels * ctas, most), fits(k)};
}

/// Whether the device takes machine code for `arch`.
static bool takesCubins(const GpuFacts &gpu, const std::string &arch) {
  const std::string capability = "sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor);
  return arch == capability || arch == capability + "a";
}

static Status addPtx(const std::vector<GpuKernel *> &kernels, const NvidiaTarget &target, const ObjectOptions &options,
                     std::vector<CubinJob> &texts) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadKernelDialects(context);
  std::vector<PtxJob> jobs;
  for (const GpuKernel *kernel : kernels) {
    auto emit = [kernel, &target](mlir::MLIRContext *in) {
      return emitWarpKernel(in, kernel->desc, kernel->tile, kernel->entry, target.workersPerCta());
    };
    Expected<ObjectJob> job = kernelJob(kernel->desc.name, emit, context);
    if (!job)
      return job.takeError();
    jobs.push_back({std::move(*job), kernel->entry, int64_t(operands(kernel->desc).size())});
  }
  Expected<std::vector<std::string>> paths = compilePtx(jobs, target, options);
  if (!paths)
    return paths.takeError();
  for (size_t i = 0; i < kernels.size(); ++i) {
    Expected<std::string> text = readUserFile((*paths)[i], int64_t(1) << 30);
    if (!text)
      return text.takeError();
    kernels[i]->ptx = std::move(*text);
    texts.push_back({kernels[i]->desc.name, (*paths)[i]});
  }
  return {};
}

Status compileForGpu(GpuKernels &kernels, const GpuFacts &gpu, const ObjectOptions &options) {
  Expected<TemporaryFolder> folder = folderOfJobs();
  if (!folder)
    return folder.takeError();
  ObjectOptions objects = options;
  objects.spareDir = folder->path("objects");
  const std::vector<GpuKernel *> all = {&kernels.near, &kernels.streamed};
  std::vector<CubinJob> texts;
  if (Status made = addPtx(all, kernels.target, objects, texts); !made)
    return made;
  const std::optional<std::string> ptxas = findPtxas();
  if (!ptxas || !takesCubins(gpu, kernels.target.arch))
    return {};
  Expected<std::string> version = toolVersion(*ptxas);
  if (!version)
    return version.takeError();
  Expected<std::vector<Cubin>> cubins = compileCubins(texts, kernels.target.arch, {*ptxas, *version}, objects);
  if (!cubins)
    return cubins.takeError();
  for (size_t i = 0; i < all.size(); ++i)
    all[i]->cubin = (*cubins)[i].code;
  return {};
}

} // namespace k2c::calibration
