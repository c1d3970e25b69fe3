//===- GpuKernel.cpp - Compiles a kernel for a GPU, and runs it on an emulated one ---------------===//
#include "GpuKernel.h"
#include "Allocations.h"
#include "k2c/Kernels/Nvidia.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <optional>

namespace k2c::test {

namespace {

struct DeviceKernel {
  ptx::Module module;
  ptx::Kernel kernel;
  NvidiaTarget target;
};

std::optional<uint64_t> strictSeed; ///< of StrictLaunches, while there is one

TargetInfo tileTarget(WeightLayout weights) {
  TargetInfo info = gpuTarget();
  info.weights = weights;
  return info;
}

/// Where the rows of a space are in a step.
int64_t offsetOf(RowSpace space) {
  return int64_t(space == RowSpace::Output     ? offsetof(k2rt_ir_step, output_rows)
                 : space == RowSpace::Entering ? offsetof(k2rt_ir_step, entering_rows)
                                               : offsetof(k2rt_ir_step, token_rows));
}

k2rt_ir_gpu_launch launchOf(const Grid &grid) {
  k2rt_ir_gpu_launch launch = {};
  launch.rows = grid.rowsPerItem == 0 ? -1 : offsetOf(grid.space);
  launch.slots = grid.space == RowSpace::Slot ? grid.slotsPerToken : 1;
  launch.rows_per_item = grid.rowsPerItem;
  launch.items = grid.itemsPerBlock;
  launch.number = 7;
  return launch;
}

/// What a launch left, and what it did.
struct Executed {
  LaunchResult result;
  ptx::Counts counts;
};

Executed runCtas(const DeviceKernel &device, const CompiledKernel &kernel, const k2rt_ir_step &step,
                 const std::vector<void *> &args, int64_t ctas, const ptx::Options &options) {
  const uint64_t bytes = uint64_t(kernel.scratchBytes + 63) / 64 * 64,
                 workers = uint64_t(ctas * device.target.workersPerCta());
  const auto copy = std::make_unique<k2rt_ir_step>(step);
  const auto status = std::make_unique<k2rt_ir_gpu_status>();
  ptx::GlobalMemory memory;
  const auto usable = allocations();
  const Unlisted unlisted;
  for (const auto &[data, size] : usable)
    memory.add(data, size, "allocation", /*isWritten=*/true);
  const std::unique_ptr<char[]> scratch(new char[bytes * workers + 64]);
  char *const aligned = scratch.get() + (64 - reinterpret_cast<uintptr_t>(scratch.get()) % 64) % 64;
  memory.add(aligned, bytes * workers, "scratch", /*isWritten=*/true);
  k2rt_ir_gpu_launch first = launchOf(kernel.grid);
  first.step = copy.get();
  first.status = status.get();
  int32_t begun = 0;
  memory.add(&begun, sizeof begun, "progress", /*isWritten=*/true);
  first.begun = &begun;
  first.scratch = aligned;
  first.scratch_bytes = int64_t(bytes);
  std::vector<void *> given = args;
  std::replace(given.begin(), given.end(), static_cast<void *>(const_cast<k2rt_ir_step *>(&step)),
               static_cast<void *>(copy.get()));
  ptx::Launch launch;
  launch.grid = {uint32_t(ctas), 1, 1};
  launch.block = {uint32_t(device.target.threads), 1, 1};
  launch.parameters.push_back(&first);
  for (void *&argument : given)
    launch.parameters.push_back(&argument);
  Expected<ptx::Counts> counts = ptx::run(device.kernel, launch, memory, options);
  EXPECT_TRUE(counts) << counts.error().text();
  EXPECT_EQ(begun, first.number);
  EXPECT_EQ(status->launch, status->result == 0 ? 0 : first.number);
  EXPECT_LT(status->worker, status->result == 0 ? 1 : int32_t(workers));
  return {{status->result, -1, status->absent}, counts ? *counts : ptx::Counts()};
}

/// Fills in the kernel; what runs it is returned.
Expected<std::shared_ptr<DeviceKernel>> build(const KernelDesc &desc, const NvidiaTarget &target,
                                              const KernelChoice &choice, CompiledKernel &kernel) {
  kernel.target = target.arch;
  kernel.tile = chooseTile(desc, tileTarget(choice.weights));
  kernel.tile.splitTokens = choice.splitTokens;
  kernel.grid = gridOf(desc, kernel.tile);
  kernel.scratchBytes = scratchBytes(desc, kernel.tile);
  const auto emit = [&](mlir::MLIRContext *context) {
    return emitWarpKernel(context, desc, kernel.tile, "kernel", target.workersPerCta());
  };
  ObjectOptions options;
  options.cacheDir = temporaryFolder();
  const int64_t arguments = int64_t(operands(desc).size()) + (choice.splitTokens > 0 ? 2 : 0);
  Expected<std::vector<std::string>> files =
      compilePtx({{{desc.name, keyOf(desc, choice), emit}, "kernel", arguments}}, target, options);
  if (!files)
    return files.takeError();
  const Unlisted unlisted;
  const std::string text = (*llvm::MemoryBuffer::getFile(files->front()))->getBuffer().str();
  Expected<ptx::Module> module = ptx::parse(text, files->front());
  if (!module)
    return module.takeError();
  Expected<ptx::Kernel> decoded = ptx::Kernel::decode(*module, "kernel");
  if (!decoded)
    return decoded.takeError();
  return std::make_shared<DeviceKernel>(DeviceKernel{std::move(*module), std::move(*decoded), target});
}

} // namespace

StrictLaunches::StrictLaunches(uint64_t seed) { strictSeed = seed; }
StrictLaunches::~StrictLaunches() { strictSeed.reset(); }

Expected<CompiledKernel> compileForGpu(const KernelDesc &desc, const NvidiaTarget &target, const KernelChoice &choice) {
  CompiledKernel kernel;
  Expected<std::shared_ptr<DeviceKernel>> device = build(desc, target, choice, kernel);
  if (!device)
    return device.takeError();
  kernel.run = [device = *device](const CompiledKernel &self, const k2rt_ir_step &step, const std::vector<void *> &args,
                                  int64_t workers, void *) {
    ptx::Options options;
    options.seed = strictSeed.value_or(uint64_t(workers));
    // To look for races takes a kernel several times as long.
    options.isStrict = strictSeed || (workers == 1 && self.tile.splitTokens == 0);
    return runCtas(*device, self, step, args, workers, options).result;
  };
  return kernel;
}

Expected<ptx::Counts> countOnGpu(const KernelDesc &desc, const NvidiaTarget &target, const k2rt_ir_step &step,
                                 const std::vector<void *> &args, int64_t ctas) {
  CompiledKernel kernel;
  Expected<std::shared_ptr<DeviceKernel>> device = build(desc, target, {}, kernel);
  if (!device)
    return device.takeError();
  ptx::Options options;
  options.isTrafficCounted = true;
  return runCtas(**device, kernel, step, args, ctas, options).counts;
}

} // namespace k2c::test
