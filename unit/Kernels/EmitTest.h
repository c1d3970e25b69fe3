//===- EmitTest.h - Compiles a kernel, runs it in parts, compares it with evaluate() -----------===//
//
// A test runs once for each target: vectors of 8 lanes, of 16, and, where it multiplies bf16 by bf16, those that take
// pairs; it is skipped for what the machine lacks. A check compiles a description for the target, runs the code on
// several partitions of the grid and demands the bits of the scalar reading.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_KERNELS_EMITTEST_H
#define K2C_UNIT_KERNELS_EMITTEST_H

#include "CompiledKernel.h"
#include "TestStep.h"
#include <gtest/gtest.h>
#include <string>

namespace k2c::test {

/// What emitted kernels are compiled for: x86-64-v3, x86-64-v4, or this machine's CPU with AVX512-BF16.
/// Rows: x86-64-v3 as a target that reads matrices in rows. GpuWarps: an emulated GPU; GpuRows: one that reads them so.
enum class EmitTarget { Avx2, Avx512, Avx512Bf16, Rows, GpuWarps, GpuRows };
std::string nameOf(EmitTarget target);

/// Makes `target` that of the running test. False: the machine lacks it.
bool useTarget(EmitTarget target);

/// How the matrices of the running test's target lie.
WeightLayout weightsOfTarget();

/// The fixture of tests that run emitted kernels; instantiate it with K2C_EMIT_TARGETS(Fixture), or with
/// K2C_EMIT_PAIRS(Fixture) where both factors of a product are bf16, which alone is other code with AVX512-BF16; where
/// kernels read matrices, with K2C_EMIT_ROWS(Fixture), too.
class EmitTest : public testing::TestWithParam<EmitTarget> {
protected:
  void SetUp() override;
};
#define K2C_EMIT_TARGETS(Fixture)                                                                                      \
  INSTANTIATE_TEST_SUITE_P(Emit, Fixture, testing::Values(EmitTarget::Avx2, EmitTarget::Avx512, EmitTarget::GpuWarps), \
                           [](const auto &info) { return nameOf(info.param); })

#define K2C_EMIT_PAIRS(Fixture)                                                                                        \
  INSTANTIATE_TEST_SUITE_P(                                                                                            \
      Emit, Fixture,                                                                                                   \
      testing::Values(EmitTarget::Avx2, EmitTarget::Avx512, EmitTarget::Avx512Bf16, EmitTarget::GpuWarps),             \
      [](const auto &info) { return nameOf(info.param); })

#define K2C_EMIT_ROWS(Fixture)                                                                                         \
  INSTANTIATE_TEST_SUITE_P(EmitInRows, Fixture, testing::Values(EmitTarget::Rows, EmitTarget::GpuRows),                \
                           [](const auto &info) { return nameOf(info.param); })

/// The kernel for the target of the running test. Kernels live as long as the process.
Expected<CompiledKernel> compileForTarget(const KernelDesc &desc, int64_t splitTokens = 0);

/// The launches of a kernel, of which split-KV attention has two, by `workers` workers, or CTAs of a GPU; their status.
/// The buffer that a split one has beside its arguments begins as NaN.
int32_t launchAll(const CompiledKernel &kernel, const KernelDesc &desc, const k2rt_ir_step &step,
                  std::vector<void *> args, int64_t workers);

/// Compares the compiled kernel with evaluate(), for teams of so many workers, on a GPU for a CTA and for three.
/// `arguments(results)` makes the argument list; results[i] starts as a copy of initial[i]. Attention is split in steps
/// of at most `splitTokens` tokens.
void expectSameBits(const KernelDesc &desc, const k2rt_ir_step &step, const std::vector<Array> &initial,
                    const std::function<std::vector<void *>(std::vector<Array> &)> &arguments,
                    const std::vector<int64_t> &teams = {1, 3}, int64_t splitTokens = 0);

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_EMITTEST_H
