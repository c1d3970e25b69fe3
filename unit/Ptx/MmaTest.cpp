// Matrix products of a warp, and of a warpgroup in formats that are rare.
#include "TestKernel.h"

#include <cstring>

using namespace k2c;
using namespace k2c::ptx;

namespace {

float number(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Each lane's registers %r1 to %r6 (A and B) are `a` and `b`, but for lane 0 and register 1 of A: `first`.
std::vector<uint32_t> products(const std::string &instruction, uint32_t a, uint32_t b, uint32_t first) {
  TestKernel kernel(
      "ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in]; mov.u32 %r8, %tid.x; ld.global.v4.b32 {%r1, %r5, %r7, %r9}, "
      "[%d9];\nmov.b32 %r2, %r1; mov.b32 %r3, %r1; mov.b32 %r4, %r1; mov.b32 %r6, %r5; setp.eq.u32 %p0, %r8, 0;\n"
      "@%p0 mov.b32 %r1, %r7;\nmov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;\n"
      "mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n" +
      instruction + "\nmul.wide.u32 %d0, %r8, 16; add.s64 %d0, %d8, %d0;\n" +
      (instruction.find("%f0") != std::string::npos ? "st.global.v4.f32 [%d0], {%f0, %f1, %f2, %f3};"
                                                    : "st.global.v4.b32 [%d0], {%r10, %r11, %r12, %r13};"));
  kernel.in = {a, b, first, 0};
  kernel.launch.block = {32, 1, 1};
  kernel.options.isStrict = true;
  EXPECT_EQ(kernel.run(), "") << instruction;
  return {kernel.out.begin(), kernel.out.begin() + 128};
}

#define F32 "{%f0, %f1, %f2, %f3}"
#define S32 "{%r10, %r11, %r12, %r13}"

TEST(Mma, AddsProducts) {
  struct Case {
    const char *shape;
    uint32_t a, b, first; ///< elements are ones, but for the first
    float sum, change;
  };
  const Case all[] = {{"m16n8k16.row.col.f32.bf16.bf16.f32", 0x3f803f80, 0x3f803f80, 0x3f804040, 17, 2},
                      {"m16n8k16.row.col.f32.f16.f16.f32", 0x3c003c00, 0x3c003c00, 0x3c004200, 17, 2},
                      {"m16n8k8.row.col.f32.tf32.tf32.f32", 0x3f800000, 0x3f801fff, 0x40400000, 9, 2},
                      {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 0x38383838, 0x3c3c3c3c, 0x38383844, 33, 2}};
  for (const Case &one : all) {
    const auto out =
        products("mma.sync.aligned." + std::string(one.shape) + " " F32 ", {%r1, %r2, %r3, %r4}, {%r5, %r6}, " F32 ";",
                 one.a, one.b, one.first);
    EXPECT_EQ(number(out[0]), one.sum + one.change) << one.shape; // row 0
    EXPECT_EQ(number(out[5]), one.sum + one.change) << one.shape; // lane 1: row 0, too
    EXPECT_EQ(number(out[2]), one.sum) << one.shape;              // row 8
    EXPECT_EQ(number(out[16]), one.sum) << one.shape;             // lane 4: row 1
  }
}

TEST(Mma, AddsShortProductsAndHalves) {
  const auto shorter =
      products("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 " F32 ", {%r1, %r2}, {%r5}, " F32 ";", 0x3f803f80,
               0x40004000, 0x3f803f80);
  EXPECT_EQ(number(shorter[0]), 1.0f + 8 * 2);
  const auto halves = products("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r10, %r11}, {%r1, %r2, %r3, %r4}, "
                               "{%r5, %r6}, {%r10, %r11};",
                               0x3c003c00, 0x3c003c00, 0x3c003c00);
  EXPECT_EQ(halves[0], 0x4c004c00u); // 16
}

TEST(Mma, AddsIntegers) {
  const std::string text =
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 " S32 ", {%r1, %r2, %r3, %r4}, {%r5, %r6}, " S32 ";";
  EXPECT_EQ(products(text, 0xffffffff, 0x03030303, 0xffffffff)[0], uint32_t(-96));
  const std::string saturated =
      "mov.b32 %r10, 0x7fffffff; mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32 " S32
      ", {%r1, %r2}, {%r5}, " S32 ";";
  EXPECT_EQ(products(saturated, 0x01010101, 0x01010101, 0x01010101)[0], 0x7fffffffu);
}

TEST(Mma, FragmentsGoThroughMemory) {
  TestKernel kernel(
      "ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in]; mov.b32 %r0, 16; mov.f32 %f0, 0f00000000;\n"
      "wmma.load.a.sync.aligned.row.m16n16k16.global.bf16 {%r1, %r2, %r3, %r4}, [%d9], %r0;\n"
      "wmma.load.b.sync.aligned.col.m16n16k16.global.bf16 {%r5, %r6, %r7, %r8}, [%d9+512], %r0;\n"
      "wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, {%r1, %r2, "
      "%r3, %r4}, {%r5, %r6, %r7, %r8}, {%f0, %f0, %f0, %f0, %f0, %f0, %f0, %f0};\n"
      "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%d8], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, %r0;");
  const auto bits = [](float value) {
    uint32_t made;
    std::memcpy(&made, &value, sizeof made);
    return static_cast<uint16_t>(made >> 16);
  };
  uint16_t *a = reinterpret_cast<uint16_t *>(kernel.in.data()), *b = a + 256;
  for (int i = 0; i < 256; ++i)
    a[i] = bits(float(i % 7)), b[i] = bits(float(i % 5));
  kernel.launch.block = {32, 1, 1};
  kernel.options.isStrict = true;
  ASSERT_EQ(kernel.run(), "");
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 16; ++column) {
      float sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += float((row * 16 + k) % 7) * float((column * 16 + k) % 5);
      EXPECT_EQ(number(kernel.out[size_t(row * 16 + column)]), sum);
    }
}

TEST(Mma, WarpgroupsMultiplyIntegersAndTf32) {
  struct Case {
    const char *product;
    uint32_t element, expected;
  };
  const Case all[] = {
      {"wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r10, %r11, %r12, %r13}, %d0, %d1, %p1;", 0xfefefefe, 128},
      {"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%r10, %r11, %r12, %r13}, %d0, %d1, %p1, 1, 1;", 0x40000000,
       0x42000000}};
  for (const Case &one : all) {
    TestKernel kernel(
        "ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in]; ld.global.b32 %r0, [%d9]; mov.u32 %r8, %tid.x;\n"
        "mov.u32 %r6, tile; shl.b32 %r5, %r8, 4; add.s32 %r6, %r6, %r5;\n"
        "st.shared.v4.b32 [%r6], {%r0, %r0, %r0, %r0};\nsetp.ge.u32 %p0, %r8, 16;\n"
        "@!%p0 st.shared.v4.b32 [%r6+2048], {%r0, %r0, %r0, %r0};\nfence.proxy.async;\nbar.sync 0;\n"
        "mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0; setp.ne.b32 %p1, %r8, %r8;\n"
        "mov.b64 %d0, 0x0000001000080040; mov.b64 %d1, 0x00000010000800c0;\nwgmma.fence.sync.aligned;\n" +
        std::string(one.product) +
        "\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        "setp.eq.u32 %p2, %r8, 77; @%p2 st.global.b32 [%d8], %r13;");
    kernel.in[0] = one.element;
    kernel.launch.block = {128, 1, 1};
    kernel.options.isStrict = true;
    ASSERT_EQ(kernel.run(), "") << one.product;
    EXPECT_EQ(kernel.out[0], one.expected) << one.product;
  }
}

TEST(Mma, WhatIsNoProductIsRefused) {
  const std::pair<const char *, const char *> all[] = {
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0}, {%r1}, {%r2}, {%f0};",
       "' has operands of 1, 1, 1 and 1 registers"},
      {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%e0, %e1}, {%e2}, {%e3}, {%e0, %e1};", "is not supported"},
      {"mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16 {%r0, %r1}, {%r1}, {%r2}, {%r0, %r1};", "is not supported"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%r0, %r1}, %d0, %d1, %p1, 1, 1, 0, 0;",
       "is not supported"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.global.s4 {%r1}, [%d9];", "is not supported"}};
  for (const auto &[body, message] : all)
    EXPECT_TRUE(says(TestKernel(body).run(), message)) << body;
  TestKernel few("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 " F32 ", {%r1, %r2}, {%r3}, " F32 ";");
  few.launch.block = {16, 1, 1};
  EXPECT_NE(few.run(), "");
}

} // namespace
