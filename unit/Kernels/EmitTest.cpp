//===- EmitTest.cpp - Compiles a kernel, runs it in parts, compares it with evaluate() ---------===//
#include "EmitTest.h"
#include "GpuKernel.h"
#include <map>

namespace k2c::test {

namespace {

/// The target of the running test; `gpu`: null where it is a CPU.
const HostTarget *current = nullptr;
const NvidiaTarget *gpu = nullptr;
WeightLayout currentWeights = WeightLayout::Panels;

} // namespace

bool useTarget(EmitTarget target) {
  static const HostTarget narrow = *HostTarget::forCpu("x86-64-v3"), wide = *HostTarget::forCpu("x86-64-v4"),
                          host = *HostTarget::detect();
  current = target == EmitTarget::Avx512 ? &wide : target == EmitTarget::Avx512Bf16 ? &host : &narrow;
  static const NvidiaTarget warps = *NvidiaTarget::forArch("sm_90a");
  gpu = target == EmitTarget::GpuWarps || target == EmitTarget::GpuRows ? &warps : nullptr;
  const bool isInRows = target == EmitTarget::Rows || target == EmitTarget::GpuRows;
  currentWeights = isInRows ? WeightLayout::Rows : WeightLayout::Panels;
  return (target != EmitTarget::Avx512 || host.tileTarget().hasAvx512) &&
         (target != EmitTarget::Avx512Bf16 || host.tileTarget().hasAvx512Bf16);
}

void EmitTest::SetUp() {
  if (!useTarget(GetParam()))
    GTEST_SKIP() << "this machine has no " << nameOf(GetParam());
}

std::string nameOf(EmitTarget target) {
  constexpr const char *names[] = {"avx2", "avx512", "avx512bf16", "rows", "gpu_warps", "gpu_rows"};
  return names[size_t(target)];
}

WeightLayout weightsOfTarget() { return currentWeights; }

Expected<CompiledKernel> compileForTarget(const KernelDesc &desc, int64_t splitTokens) {
  static std::map<std::string, CompiledKernel> known;
  const KernelChoice choice{currentWeights, splitTokens};
  const std::string key = keyOf(desc, choice) + " for " + (gpu ? gpu->arch : current->cpu);
  if (auto found = known.find(key); found != known.end())
    return found->second;
  Expected<CompiledKernel> kernel = gpu ? compileForGpu(desc, *gpu, choice) : compileForCpu(desc, *current, choice);
  if (kernel)
    known[key] = *kernel;
  return kernel;
}

int32_t launchAll(const CompiledKernel &kernel, const KernelDesc &desc, const k2rt_ir_step &step,
                  std::vector<void *> args, int64_t workers) {
  if (kernel.tile.splitTokens == 0)
    return launch(kernel, step, args, workers).status;
  std::vector<float> partials(partialBytes(desc, kernel.tile) / sizeof(float), std::nanf(""));
  CompiledKernel merge = kernel;
  merge.grid = mergeGrid(desc);
  if (step.token_rows > kernel.tile.splitTokens)
    merge.grid.itemsPerBlock = 0;
  args.push_back(partials.data());
  args.push_back(ordinal(0));
  int32_t status = launch(kernel, step, args, workers).status;
  args.back() = ordinal(1);
  return status ? status : launch(merge, step, args, workers).status;
}

void expectSameBits(const KernelDesc &desc, const k2rt_ir_step &step, const std::vector<Array> &initial,
                    const std::function<std::vector<void *>(std::vector<Array> &)> &arguments,
                    const std::vector<int64_t> &teams, int64_t splitTokens) {
  std::vector<Array> expected = initial;
  std::vector<void *> args = arguments(expected);
  ASSERT_EQ(operands(desc).size(), args.size());
  Status status = evaluate(desc, args.data(), step, currentWeights);
  ASSERT_TRUE(status) << status.error().text();
  Expected<CompiledKernel> kernel = compileForTarget(desc, splitTokens);
  ASSERT_TRUE(kernel) << kernel.error().text();
  const auto *linear = std::get_if<LinearDesc>(&desc.body);
  std::vector<int64_t> ctas = {1, 3};
  if (linear && linear->grouped)
    ctas.push_back(40); // more than have an item
  for (int64_t workers : gpu ? ctas : teams) {
    std::vector<Array> results = initial;
    EXPECT_EQ(launchAll(*kernel, desc, step, arguments(results), workers), 0);
    for (size_t i = 0; i < results.size(); ++i) { // a NaN of a GPU has bits of its own
      int64_t differences = 0, first = -1;
      for (int64_t e = results[i].size() - 1; e >= 0; --e)
        if (float a = results[i][e], b = expected[i][e];
            std::memcmp(&a, &b, sizeof a) != 0 && !(gpu && std::isnan(a) && std::isnan(b))) {
          ++differences;
          first = e;
        }
      EXPECT_EQ(differences, 0) << desc.name << " for " << kernel->target << ", " << workers << " workers, result " << i
                                << ": element " << first << " is " << (first < 0 ? 0 : results[i][first])
                                << ", expected " << (first < 0 ? 0 : expected[i][first]);
    }
  }
}

} // namespace k2c::test
