// Numbers of 16 and 8 bits, and roundings other than to nearest.
#include "TestKernel.h"

#include <cstring>

using namespace k2c;
using namespace k2c::ptx;

namespace {

struct Case {
  const char *instruction; ///< from %r1, %r2, %r3, their low halves %h1, %h2, %h3, or %f of the same bits; to %r0
  uint32_t a, b, c, expected;
};

void check(const std::vector<Case> &cases) {
  for (const Case &one : cases) {
    TestKernel kernel("ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in];\nld.global.b32 %r1, [%d9]; mov.b32 %f1, %r1;\n"
                      "ld.global.b32 %r2, [%d9+4]; mov.b32 %f2, %r2; ld.global.b32 %r3, [%d9+8]; mov.b32 %f3, %r3;\n"
                      "cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; cvt.u16.u32 %h3, %r3; mov.b16 %h0, 0;\n" +
                      std::string(one.instruction) + "\nst.global.b32 [%d8], %r0;");
    kernel.in = {one.a, one.b, one.c};
    EXPECT_EQ(kernel.run(), "") << one.instruction;
    EXPECT_EQ(kernel.out[0], one.expected) << one.instruction;
  }
}

TEST(Formats, HalvesAreRoundedOnce) {
  check({
      {"add.bf16x2 %r0, %r1, %r2;", 0x3f804000, 0x3f803f80, 0, 0x40004040},   // 1 + 1, 2 + 1
      {"sub.f16x2 %r0, %r1, %r2;", 0x3c004000, 0x3c003c00, 0, 0x00003c00},    // 1 - 1, 2 - 1
      {"mul.rn.f16x2 %r0, %r1, %r2;", 0x3c004000, 0x42003800, 0, 0x42003c00}, // 1 * 3, 2 / 2
      {"fma.rn.bf16x2 %r0, %r1, %r2, %r3;", 0x3f803f80, 0x40004000, 0x3f80bf80, 0x40403f80},
      {"fma.rn.relu.f16x2 %r0, %r1, %r2, %r3;", 0x3c003c00, 0x3c00bc00, 0, 0x3c000000},
      {"fma.rn.sat.f16x2 %r0, %r1, %r2, %r3;", 0x3c003c00, 0x4000bc00, 0, 0x3c000000},
      {"fma.rn.f16 %h0, %h1, %h2, %h3; cvt.u32.u16 %r0, %h0;", 0x3c01, 0x3c01, 0x8001, 0x3c02}, // cut off below
      {"add.f16 %h0, %h1, %h2; cvt.u32.u16 %r0, %h0;", 0x7bff, 0x7bff, 0, 0x7c00},
      {"add.ftz.f16 %h0, %h1, %h2; cvt.u32.u16 %r0, %h0;", 0x0001, 0x0001, 0, 0},
      {"max.bf16x2 %r0, %r1, %r2;", 0x80007fff, 0x00003f80, 0, 0x00003f80}, // +0 over -0, a number over none
      {"min.NaN.f16 %h0, %h1, %h2; cvt.u32.u16 %r0, %h0;", 0x7e00, 0x3c00, 0, 0x7fff},
      {"neg.bf16x2 %r0, %r1;", 0x3f80bf80, 0, 0, 0xbf803f80},
      {"abs.f16x2 %r0, %r1;", 0xbc003c00, 0, 0, 0x3c003c00},
      {"ex2.approx.ftz.bf16x2 %r0, %r1;", 0x3f804000, 0, 0, 0x40004080},
      {"tanh.approx.f16 %h0, %h1; cvt.u32.u16 %r0, %h0;", 0x7c00, 0, 0, 0x3c00},
      {"setp.lt.bf16 %p0, %h1, %h2; selp.b32 %r0, 1, 0, %p0;", 0x3f80, 0x4000, 0, 1},
      {"setp.ge.f16x2 %p0|%p1, %r1, %r2; selp.b32 %r0, 1, 0, %p0; @%p1 add.u32 %r0, %r0, 2;", 0x3c004000, 0x40003c00, 0,
       1},
      {"set.lt.u32.f32 %r0, %f1, %f2;", 0x3f800000, 0x40000000, 0, 0xffffffff},
      {"set.gt.f32.f32 %f0, %f2, %f1; mov.b32 %r0, %f0;", 0x3f800000, 0x40000000, 0, 0x3f800000},
  });
}

TEST(Formats, SumsRoundAsTheySay) {
  const uint32_t one = 0x3f800000, tiny = 0x30000000; // 2^-31
  check({
      {"add.rn.f32 %f0, %f1, %f2; mov.b32 %r0, %f0;", one, tiny, 0, one},
      {"add.rp.f32 %f0, %f1, %f2; mov.b32 %r0, %f0;", one, tiny, 0, one + 1},
      {"add.rz.f32 %f0, %f1, %f2; mov.b32 %r0, %f0;", one, tiny | 0x80000000, 0, one - 1},
      {"sub.rm.f32 %f0, %f1, %f2; mov.b32 %r0, %f0;", one, tiny, 0, one - 1},
      {"mul.rp.f32 %f0, %f1, %f2; mov.b32 %r0, %f0;", one + 1, one + 1, 0, one + 3},
      {"fma.rm.f32 %f0, %f1, %f2, %f3; mov.b32 %r0, %f0;", one, one, tiny | 0x80000000, one - 1},
      {"div.rp.f32 %f0, %f1, %f2; mov.b32 %r0, %f0;", one, 0x40400000, 0, 0x3eaaaaab},
      {"rcp.rz.f32 %f0, %f1; mov.b32 %r0, %f0;", 0x40400000, 0, 0, 0x3eaaaaaa},
      {"sqrt.rp.f32 %f0, %f1; mov.b32 %r0, %f0;", 0x40000000, 0, 0, 0x3fb504f4},
      {"add.rz.sat.f32 %f0, %f1, %f2; mov.b32 %r0, %f0;", one, one, 0, one},
  });
}

TEST(Formats, BytesAndTf32) {
  check({
      {"cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f2; cvt.u32.u16 %r0, %h0;", 0x3f800000, 0x447a0000, 0,
       0x387e}, // 1, 1000
      {"cvt.rn.satfinite.e5m2x2.f32 %h0, %f1, %f2; cvt.u32.u16 %r0, %h0;", 0xc0000000, 0x7fc00000, 0, 0xc07f},
      {"cvt.rn.satfinite.e4m3x2.relu.f32 %h0, %f1, %f2; cvt.u32.u16 %r0, %h0;", 0xbf800000, 0x3d900000, 0, 0x0019},
      {"cvt.rn.f16x2.e4m3x2 %r0, %h1;", 0x38c0, 0, 0, 0x3c00c000},
      {"cvt.rna.tf32.f32 %r0, %f1;", 0x3f801000, 0, 0, 0x3f802000},
      {"cvt.rna.tf32.f32 %r0, %f1;", 0x3f800fff, 0, 0, 0x3f800000},
  });
}

TEST(Formats, HalvesAreAddedAtOnce) {
  TestKernel kernel("ld.param.u64 %d8, [out]; mov.b32 %r0, 0x3f803f80; mov.b16 %h0, 0x3c00;\n"
                    "red.global.add.noftz.bf16x2 [%d8], %r0; atom.global.add.noftz.f16 %h1, [%d8+4], %h0;\n"
                    "atom.global.cas.b16 %h2, [%d8+8], 0, 7;");
  kernel.launch.block = {4, 1, 1};
  kernel.memory.markWritten(kernel.out.data(), 64);
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.out[0], 0x40804080u);
  EXPECT_EQ(kernel.out[1], 0x4400u);
  EXPECT_EQ(kernel.out[2], 7u);
}

TEST(Formats, WhatIsNoFormIsRefused) {
  for (const char *body : {"fma.bf16 %h0, %h1, %h2, %h3;", "ex2.bf16 %h0, %h1;", "add.rz.sat.f64 %e0, %e1, %e2;",
                           "cvt.rz.satfinite.e4m3x2.f32 %h0, %f1, %f2;", "cvt.rn.tf32.f32 %r0, %f1;",
                           "set.lt.f32.f64 %f0, %e1, %e2;", "red.global.add.bf16x2 [%d8], %r0;"})
    EXPECT_TRUE(says(TestKernel(body).run(), "is not supported")) << body;
}

} // namespace
