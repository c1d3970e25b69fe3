//===- EmitTest.cpp - Compiles a kernel, runs it in parts, compares it with evaluate() ---------===//
#include "EmitTest.h"
#include "k2c/Kernels/Cpu.h"
#include "k2c/Target/Host.h"
#include "llvm/Support/FileSystem.h"
#include <dlfcn.h>
#include <map>
#include <xmmintrin.h>

namespace k2c::test {

namespace {

/// A folder that is removed when the process ends.
struct TemporaryFolder {
  llvm::SmallString<128> path;
  TemporaryFolder() { llvm::sys::fs::createUniqueDirectory("k2c-emit-test", path); }
  ~TemporaryFolder() { llvm::sys::fs::remove_directories(path); }
};

/// DAZ and FTZ, as in every worker.
struct FlushDenormals {
  unsigned saved = _mm_getcsr();
  FlushDenormals() { _mm_setcsr(saved | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(saved); }
};

/// The target of the running test.
const HostTarget *current = nullptr;
WeightLayout currentWeights = WeightLayout::Panels;

std::string keyOf(const KernelDesc &desc, WeightLayout weights, int64_t splitTokens) {
  return canonicalKey(desc) + (weights == WeightLayout::Rows ? " rows" : " panels") + " split " +
         std::to_string(splitTokens);
}

Expected<CompiledKernel> compile(const KernelDesc &desc, const HostTarget &target, WeightLayout weights,
                                 int64_t splitTokens) {
  static TemporaryFolder folder;
  static int64_t serial = 0;
  CompiledKernel kernel;
  kernel.target = target.cpu;
  TargetInfo core = target.tileTarget();
  core.weights = weights;
  kernel.tile = chooseTile(desc, core);
  kernel.tile.splitTokens = splitTokens;
  kernel.grid = gridOf(desc, kernel.tile);
  kernel.scratchBytes = scratchBytes(desc, kernel.tile);
  ObjectJob job{desc.name, keyOf(desc, weights, splitTokens),
                [&](mlir::MLIRContext *context) { return emitKernel(context, desc, kernel.tile, "kernel"); }};
  ObjectOptions options;
  options.cacheDir = folder.path.str().str();
  Expected<std::vector<std::string>> objects = compileObjects({job}, target, options);
  if (!objects)
    return objects.takeError();
  std::string path = options.cacheDir + "/" + std::to_string(serial++) + ".so";
  if (Status status = linkShared(*objects, {"kernel"}, path); !status)
    return status.takeError();
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error{desc.name, dlerror(), ""};
  kernel.function = reinterpret_cast<k2rt_ir_kernel_fn>(dlsym(library, "kernel"));
  return kernel;
}

} // namespace

void EmitTest::SetUp() {
  static const HostTarget narrow = *HostTarget::forCpu("x86-64-v3"), wide = *HostTarget::forCpu("x86-64-v4"),
                          host = *HostTarget::detect();
  current = GetParam() == EmitTarget::Avx512 ? &wide : GetParam() == EmitTarget::Avx512Bf16 ? &host : &narrow;
  currentWeights = GetParam() == EmitTarget::Rows ? WeightLayout::Rows : WeightLayout::Panels;
  if (GetParam() == EmitTarget::Avx512 && !host.tileTarget().hasAvx512)
    GTEST_SKIP() << "this machine has no AVX-512";
  if (GetParam() == EmitTarget::Avx512Bf16 && !host.tileTarget().hasAvx512Bf16)
    GTEST_SKIP() << "this machine has no AVX512-BF16";
}

std::string nameOf(EmitTarget target) {
  constexpr const char *names[] = {"avx2", "avx512", "avx512bf16", "rows"};
  return names[size_t(target)];
}

WeightLayout weightsOfTarget() { return currentWeights; }

Expected<CompiledKernel> compileForHost(const KernelDesc &desc) {
  Expected<HostTarget> host = HostTarget::detect();
  if (!host)
    return host.takeError();
  return compile(desc, *host, WeightLayout::Panels, /*splitTokens=*/0);
}

Expected<CompiledKernel> compileForTarget(const KernelDesc &desc, int64_t splitTokens) {
  static std::map<std::string, CompiledKernel> known;
  const std::string key = keyOf(desc, currentWeights, splitTokens) + " for " + current->cpu;
  if (auto found = known.find(key); found != known.end())
    return found->second;
  Expected<CompiledKernel> kernel = compile(desc, *current, currentWeights, splitTokens);
  if (kernel)
    known[key] = *kernel;
  return kernel;
}

int64_t gridRows(const Grid &grid, const k2rt_ir_step &step) {
  return grid.space == RowSpace::Output ? step.output_rows : step.token_rows;
}

LaunchResult launch(const CompiledKernel &kernel, const k2rt_ir_step &step, const std::vector<void *> &args,
                    int64_t workers, void *scratch) {
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
    int32_t status = kernel.function(&worker, args.data());
    result.status = result.status ? result.status : status;
    result.variant = worker.variant;
    result.absent = worker.absent;
  }
  return result;
}

/// The launches of a kernel; the buffer of a split one begins as NaN.
static int32_t launchAll(const CompiledKernel &kernel, const KernelDesc &desc, const k2rt_ir_step &step,
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
  for (int64_t workers : teams) {
    std::vector<Array> results = initial;
    EXPECT_EQ(launchAll(*kernel, desc, step, arguments(results), workers), 0);
    for (size_t i = 0; i < results.size(); ++i) {
      int64_t differences = 0, first = -1;
      for (int64_t e = results[i].size() - 1; e >= 0; --e)
        if (float a = results[i][e], b = expected[i][e]; std::memcmp(&a, &b, sizeof a) != 0) {
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
