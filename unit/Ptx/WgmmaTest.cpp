// Matrix products of a warpgroup, and matrices between registers and shared memory.
#include "TestKernel.h"

#include <cstring>

using namespace k2c;
using namespace k2c::ptx;

namespace {

/// m64n8k16 of bf16 without a swizzle: A at tile (2 KiB), B at tile + 2048 (256 bytes); all threads fill both with `a`
/// and `b`, which are two bf16 each.
std::string filled(const std::string &a, const std::string &b) {
  return "ld.param.u64 %d8, [out]; mov.u32 %r8, %tid.x; mov.u32 %r6, tile; shl.b32 %r5, %r8, 4; add.s32 %r6, %r6, "
         "%r5;\n"
         "mov.b32 %r0, " +
         a + "; mov.b32 %r1, " + b +
         ";\nst.shared.v4.b32 [%r6], {%r0, %r0, %r0, %r0};\n"
         "setp.ge.u32 %p0, %r8, 16;\n@%p0 bra Filled;\nst.shared.v4.b32 [%r6+2048], {%r1, %r1, %r1, %r1};\nFilled:\n"
         "mov.b32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; setp.eq.b32 %p1, %r8, %r8;\n";
}

const std::string fences = "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
/// Descriptors: chunks of 8 x 16 bytes, 128 bytes apart along k, 256 along lines.
const std::string descriptors =
    "mov.b64 %d0, 0x0000001000080040; mov.b64 %d1, 0x00000010000800c0;\nwgmma.fence.sync.aligned;\n";
const std::string product =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d0, %d1, %p1, 1, 1, 0, 0;\n";
const std::string wait = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
const std::string store = "mul.wide.u32 %d2, %r8, 4; add.s64 %d2, %d8, %d2; st.global.f32 [%d2], %f3;";

struct Result {
  std::string error;
  float first;
};

Result run(const std::string &body, bool isByWarp = true) {
  TestKernel kernel(body);
  kernel.launch.block = {128, 1, 1};
  kernel.options.isStrict = true;
  kernel.options.isByWarp = isByWarp;
  std::string error = kernel.run();
  Result result{std::move(error), 0};
  std::memcpy(&result.first, kernel.out.data(), sizeof result.first);
  return result;
}

TEST(Wgmma, AddsProductsToItsAccumulators) {
  const Result made =
      run(filled("0x40003f80", "0x40403f80") + fences + descriptors + product + wait + store); // (1, 2) x (1, 3)
  EXPECT_EQ(made.error, "");
  EXPECT_EQ(made.first, 1.0f + 8 * (1 * 1 + 2 * 3));
  EXPECT_EQ(run(filled("0x40003f80", "0x40403f80") + fences + descriptors + product + wait + store, false).first,
            57.0f);
}

TEST(Wgmma, AccumulatorsOfF16AreTwoInARegister) { // (1, 2) x (1, 3) of f16, added to (1, 0.5)
  const std::string ofHalves =
      "mov.b32 %r2, 0x38003c00; mov.b32 %r3, %r2;\n" + descriptors +
      "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r2, %r3}, %d0, %d1, %p1, 1, 1, 0, 0;\n" + wait +
      "mul.wide.u32 %d2, %r8, 4; add.s64 %d2, %d8, %d2; st.global.b32 [%d2], %r2;";
  const Result made = run(filled("0x40003c00", "0x42003c00") + fences + ofHalves);
  EXPECT_EQ(made.error, "");
  uint32_t bits = 0;
  std::memcpy(&bits, &made.first, sizeof bits);
  EXPECT_EQ(bits, 0x53105320u); // 57, 56.5
  EXPECT_TRUE(says(run("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r2}, %d0, %d1, %p1, 1, 1, 0, 0;").error,
                   "needs 2 accumulators"));
  EXPECT_TRUE(
      says(run("wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%r2, %r3}, %d0, %d1, %p1, 1, 1, 0, 0;").error,
           "'wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16' is not supported"));
}

TEST(Wgmma, WhatIsMissingIsFound) {
  const std::string fill = filled("0x3f803f80", "0x3f803f80");
  EXPECT_TRUE(says(run(fill + "bar.sync 0;\n" + descriptors + product + wait + store).error,
                   "it multiplies bytes at shared address"));
  EXPECT_TRUE(says(run(fill + "bar.sync 0;\n" + descriptors + product + wait + store).error,
                   ", and nothing orders it with 'st.shared.v4.b32'"));
  EXPECT_TRUE(says(run(fill + fences + descriptors + product + store).error,
                   "it touches a register of a wgmma that goes on; let wgmma.wait_group be before it"));
  EXPECT_TRUE(says(run(fill + fences + descriptors + "mov.f32 %f0, %f1;\n" + product + wait + store).error,
                   "its registers were written since the last wgmma.fence; fence before it"));
  EXPECT_TRUE(says(
      run(fill + fences + descriptors + product + wait + "@!%p0 st.shared.v4.b32 [%r6+2048], {%r0, %r0, %r0, %r0};")
          .error,
      "nothing orders it with"));
  EXPECT_EQ(
      run(fill + fences + descriptors + product + wait + "bar.sync 0;\nst.shared.v4.b32 [%r6], {%r0, %r0, %r0, %r0};")
          .error,
      "");
}

TEST(Wgmma, OneThreadThatGoesOnForItsWarpgroupIsFoundByWarp) {
  const std::string body = filled("0x3f803f80", "0x3f803f80") + fences + descriptors + product + wait +
                           "setp.ne.b32 %p2, %r8, 0;\n@%p2 ret;\nst.shared.v4.b32 [tile], {%r0, %r0, %r0, %r0};\n"
                           "st.shared.v4.b32 [tile+512], {%r0, %r0, %r0, %r0};";
  EXPECT_TRUE(says(run(body).error, "nothing orders it with"));
}

struct Finding {
  const char *body, *message;
};

TEST(Wgmma, WhatIsWrongIsSaid) {
  const std::string fill = filled("0x3f803f80", "0x3f803f80") + fences;
  const Finding all[] = {
      {"mov.b64 %d0, 0x0000001000080040; mov.b64 %d1, 0x0000001000082000;\nwgmma.fence.sync.aligned;\n",
       "its descriptor reaches shared address 131072, and there are 4096 bytes from 1024 on; stay within what the "
       "launch gives"},
      {"mov.b64 %d0, 0x0000001000080040; mov.b64 %d1, 0x0000001000080100;\nwgmma.fence.sync.aligned;\n",
       "that were never written; write them first"},
      {"mov.b64 %d0, 0x0000001000080040; mov.b64 %d1, 0x00020010000800c0;\nwgmma.fence.sync.aligned;\n",
       "its descriptor has a base offset, or lines that are contiguous without a swizzle; which is not supported"},
  };
  for (const Finding &one : all)
    EXPECT_TRUE(says(run(fill + one.body + product + wait).error, one.message)) << one.body;
  const Finding refused[] = {
      {"wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16 {%f0}, %d0, %d1, %p1, 1, 1, 0, 0;", "is not supported"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0}, %d0, %d1, %p1, 1, 1, 0, 0;",
       "needs 4 accumulators, and 4 registers where A is in registers"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d0, %d1, %p1, %r0, 1, 0, 0;",
       "the sign of an operand of"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d0, %d1, %p1, 1, 1, 0, %r0;",
       "the order of an operand of"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, {%r0, %r1, 5, %r3}, %d1, %p1, 1, 1, "
       "0;",
       "'wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16' needs registers"},
      {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0}, [%r6];",
       "'ldmatrix.sync.aligned.m8n8.x4.shared.b16' needs a vector of 4 registers"},
  };
  for (const Finding &one : refused)
    EXPECT_TRUE(says(run(one.body).error, one.message)) << one.body;
}

TEST(Wgmma, MatricesMoveBetweenRegistersAndRows) {
  TestKernel kernel(
      "ld.param.u64 %d8, [out]; mov.u32 %r8, %tid.x; mov.u32 %r6, tile; shl.b32 %r5, %r8, 4; and.b32 %r5, %r5, 127;\n"
      "add.s32 %r6, %r6, %r5;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r8};\nbar.warp.sync -1;\n"
      "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r0}, [%r6];\n"
      "mul.wide.u32 %d0, %r8, 4; add.s64 %d0, %d8, %d0; st.global.b32 [%d0], %r0;");
  kernel.launch.block = {32, 1, 1};
  kernel.options.isStrict = true;
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.out[0], 0u | 4u << 16); // column 0: the low halves of lanes 0 and 4
  EXPECT_EQ(kernel.out[4], 0u);            // column 1: high halves
  TestKernel few("mov.u32 %r6, tile; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r6};");
  few.launch.block = {16, 1, 1};
  EXPECT_TRUE(says(few.run(), "they are missing, and all lanes take part"));
}

} // namespace
