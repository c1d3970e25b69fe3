// What single instructions compute.
#include "TestKernel.h"

#include <cmath>
#include <cstring>

using namespace k2c;
using namespace k2c::ptx;

namespace {

constexpr uint32_t none = 0x7fffffff; // the canonical value of what is no number

uint32_t bits(float value) {
  uint32_t made;
  std::memcpy(&made, &value, sizeof made);
  return made;
}

uint64_t bits(double value) {
  uint64_t made;
  std::memcpy(&made, &value, sizeof made);
  return made;
}

struct Case {
  const char *instruction; ///< from %r1, %r2, %r3 or the same bits in %f, and %p1 = %r3 != 0, to %r0, %f0 or %p0
  uint32_t a, b, c;
  uint32_t expected;
};

std::string result(const std::string &instruction) {
  return instruction.find("%f0") != std::string::npos   ? "mov.b32 %r0, %f0;"
         : instruction.find("%p0") != std::string::npos ? "selp.b32 %r0, 1, 0, %p0;"
                                                        : "";
}

/// A failure is one of the instruction.
void check(const std::vector<Case> &cases) {
  for (const Case &one : cases) {
    TestKernel kernel("ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in];\n"
                      "ld.global.b32 %r1, [%d9]; ld.global.b32 %r2, [%d9+4]; ld.global.b32 %r3, [%d9+8];\n"
                      "mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3; setp.ne.b32 %p1, %r3, 0;\n" +
                      std::string(one.instruction) + "\n" + result(one.instruction) + "\nst.global.b32 [%d8], %r0;");
    kernel.in = {one.a, one.b, one.c};
    EXPECT_EQ(kernel.run(), "") << one.instruction;
    EXPECT_EQ(kernel.out[0], one.expected) << one.instruction << " of " << one.a << ", " << one.b << ", " << one.c;
  }
}

struct WideCase {
  const char *instruction; ///< from %d1, %d2, %r3 to %d0 or %e0
  uint64_t a, b;
  uint32_t c;
  uint64_t expected;
};

void check(const std::vector<WideCase> &cases) {
  for (const WideCase &one : cases) {
    const bool isFloat = std::string(one.instruction).find("%e0") != std::string::npos;
    TestKernel kernel("ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in];\n"
                      "ld.global.b64 %d1, [%d9]; ld.global.b64 %d2, [%d9+8]; ld.global.b32 %r3, [%d9+16];\n"
                      "cvt.u32.u64 %r1, %d1; mov.b32 %f1, %r1; mov.b64 %e1, %d1; mov.b64 %e2, %d2;\n" +
                      std::string(one.instruction) + (isFloat ? "mov.b64 %d0, %e0;" : "") +
                      "\nst.global.b64 [%d8], %d0;");
    std::memcpy(kernel.in.data(), &one.a, 8);
    std::memcpy(kernel.in.data() + 2, &one.b, 8);
    kernel.in[4] = one.c;
    EXPECT_EQ(kernel.run(), "") << one.instruction;
    uint64_t got;
    std::memcpy(&got, kernel.out.data(), sizeof got);
    EXPECT_EQ(got, one.expected) << one.instruction << " of " << one.a << ", " << one.b << ", " << one.c;
  }
}

TEST(Arithmetic, IntegersWrapAndSaturate) {
  check(std::vector<Case>{
      {"add.s32 %r0, %r1, %r2;", 0x7fffffff, 1, 0, 0x80000000},
      {"add.sat.s32 %r0, %r1, %r2;", 0x7fffffff, 1, 0, 0x7fffffff},
      {"sub.sat.s32 %r0, %r1, %r2;", 0x80000000, 1, 0, 0x80000000},
      {"sub.u32 %r0, %r1, 3;", 2, 0, 0, 0xffffffff},
      {"mul.lo.u32 %r0, %r1, %r2;", 0x10001, 0x10001, 0, 0x20001},
      {"mul.hi.s32 %r0, %r1, %r2;", 0xffffffff, 5, 0, 0xffffffff},
      {"mul.hi.u32 %r0, %r1, %r2;", 0xffffffff, 5, 0, 4},
      {"mad.lo.s32 %r0, %r1, %r2, %r3;", 7, 6, 0xffffffff, 41},
      {"mad.hi.u32 %r0, %r1, %r2, %r3;", 0x80000000, 4, 5, 7},
      {"neg.s32 %r0, %r1;", 0x80000000, 0, 0, 0x80000000},
      {"abs.s32 %r0, %r1;", uint32_t(-9), 0, 0, 9},
      {"min.s32 %r0, %r1, %r2;", uint32_t(-9), 3, 0, uint32_t(-9)},
      {"max.u32 %r0, %r1, %r2;", uint32_t(-9), 3, 0, uint32_t(-9)},
  });
}

TEST(Arithmetic, QuotientsTruncateAndZeroDivides) {
  check(std::vector<Case>{
      {"div.s32 %r0, %r1, %r2;", uint32_t(-7), 2, 0, uint32_t(-3)},
      {"rem.s32 %r0, %r1, %r2;", uint32_t(-7), 2, 0, uint32_t(-1)},
      {"div.u32 %r0, %r1, %r2;", 7, 0, 0, 0xffffffff},
      {"rem.u32 %r0, %r1, %r2;", 7, 0, 0, 7},
      {"div.s32 %r0, %r1, %r2;", 0x80000000, uint32_t(-1), 0, 0x80000000},
      {"rem.s32 %r0, %r1, %r2;", 0x80000000, uint32_t(-1), 0, 0},
  });
}

TEST(Arithmetic, WideIntegers) {
  check(std::vector<WideCase>{
      {"mul.wide.u32 %d0, %r1, %r3;", 0xffffffff, 0, 0xffffffff, 0xfffffffe00000001},
      {"mul.wide.s32 %d0, %r1, %r3;", 0xffffffff, 0, 7, uint64_t(-7)},
      {"mad.wide.s32 %d0, %r1, %r3, %d2;", 3, 100, uint32_t(-2), 94},
      {"mul.hi.u64 %d0, %d1, %d2;", uint64_t(1) << 63, 6, 0, 3},
      {"mul.hi.s64 %d0, %d1, %d2;", uint64_t(-1), 6, 0, uint64_t(-1)},
      {"mad.lo.s64 %d0, %d1, %d2, %d2;", 5, 6, 0, 36},
      {"div.s64 %d0, %d1, %d2;", uint64_t(-9), 2, 0, uint64_t(-4)},
      {"shl.b64 %d0, %d1, %r3;", 3, 0, 63, uint64_t(1) << 63},
      {"shr.s64 %d0, %d1, %r3;", uint64_t(1) << 63, 0, 99, uint64_t(-1)},
      {"bfe.u64 %d0, %d1, 60, 8;", 0xf000000000000000, 0, 0, 0xf},
      {"not.b64 %d0, %d1;", 5, 0, 0, ~uint64_t(5)},
      {"brev.b64 %d0, %d1;", 1, 0, 0, uint64_t(1) << 63},
  });
}

TEST(Arithmetic, BitsAndFields) {
  check(std::vector<Case>{
      {"and.b32 %r0, %r1, %r2;", 12, 10, 0, 8},
      {"or.b32 %r0, %r1, %r2;", 12, 10, 0, 14},
      {"xor.b32 %r0, %r1, %r2;", 12, 10, 0, 6},
      {"lop3.b32 %r0, %r1, %r2, %r3, 0xe8;", 12, 10, 6, 14}, // the majority
      {"shl.b32 %r0, %r1, %r2;", 1, 32, 0, 0},
      {"shr.u32 %r0, %r1, %r2;", 0x80000000, 31, 0, 1},
      {"shr.s32 %r0, %r1, %r2;", 0x80000000, 40, 0, 0xffffffff},
      {"shf.l.wrap.b32 %r0, %r1, %r2, %r3;", 0x80000000, 1, 33, 3},
      {"shf.r.clamp.b32 %r0, %r1, %r2, %r3;", 7, 9, 40, 9},
      {"bfe.s32 %r0, %r1, 4, 4;", 0x80, 0, 0, 0xfffffff8},
      {"bfe.u32 %r0, %r1, 28, 8;", 0xf0000000, 0, 0, 0xf},
      {"bfe.u32 %r0, %r1, 3, 0;", 0xf0000000, 0, 0, 0},
      {"bfe.s32 %r0, %r1, 40, 3;", 0x80000000, 0, 0, 0xffffffff},
      {"bfi.b32 %r0, %r1, %r2, 8, 8;", 0xab, 0xffffffff, 0, 0xffffabff},
      {"bfind.u32 %r0, %r1;", 0x500, 0, 0, 10},
      {"bfind.s32 %r0, %r1;", 0xffffffff, 0, 0, 0xffffffff},
      {"clz.b32 %r0, %r1;", 0, 0, 0, 32},
      {"popc.b32 %r0, %r1;", 0xf0f, 0, 0, 8},
      {"brev.b32 %r0, %r1;", 2, 0, 0, 0x40000000},
      {"prmt.b32 %r0, %r1, %r2, 0x7410;", 0x44332211, 0x88776655, 0, 0x88552211},
      {"prmt.b32 %r0, %r1, %r2, 0x000b;", 0xf0000000, 0, 0, 0x000000ff}, // the sign of byte 3
      {"not.pred %p0, %p1;", 0, 0, 0, 1},
      {"xor.pred %p0, %p1, %p1;", 0, 0, 1, 0},
  });
}

TEST(Arithmetic, FloatsRoundAndFlush) {
  const uint32_t small = 1, half = bits(0.5f);
  check(std::vector<Case>{
      {"add.f32 %f0, %f1, %f2;", bits(1.0f), bits(0x1p-24f), 0, bits(1.0f)},
      {"add.rn.f32 %f0, %f1, %f2;", small, small, 0, 2},
      {"add.ftz.f32 %f0, %f1, %f2;", small, small, 0, 0},
      {"sub.f32 %f0, %f1, %f2;", bits(INFINITY), bits(INFINITY), 0, none},
      {"mul.rn.f32 %f0, %f1, %f2;", bits(0x1p-126f), half, 0, 0x00400000},
      {"mul.rn.ftz.f32 %f0, %f1, %f2;", bits(-0x1p-126f), half, 0, 0x80000000},
      {"mul.sat.f32 %f0, %f1, %f2;", bits(3.0f), half, 0, bits(1.0f)},
      {"add.sat.f32 %f0, %f1, %f2;", none, half, 0, 0},
      {"fma.rn.f32 %f0, %f1, %f2, %f3;", bits(1 + 0x1p-23f), bits(1 + 0x1p-23f), bits(-1.0f),
       bits(0x1p-22f + 0x1p-46f)},
      {"div.rn.f32 %f0, %f1, %f2;", bits(1.0f), bits(3.0f), 0, bits(1.0f / 3.0f)},
      {"sqrt.rn.f32 %f0, %f1;", bits(2.0f), 0, 0, bits(std::sqrt(2.0f))},
      {"rcp.rn.f32 %f0, %f1;", bits(-0.0f), 0, 0, bits(-INFINITY)},
      {"neg.f32 %f0, %f1;", bits(1.0f), 0, 0, bits(-1.0f)},
      {"abs.ftz.f32 %f0, %f1;", 0x80000001, 0, 0, 0},
      {"min.f32 %f0, %f1, %f2;", bits(0.0f), bits(-0.0f), 0, bits(-0.0f)},
      {"max.f32 %f0, %f1, %f2;", none, bits(-1.0f), 0, bits(-1.0f)},
      {"max.NaN.f32 %f0, %f1, %f2;", none, bits(-1.0f), 0, none},
      {"ex2.approx.ftz.f32 %f0, %f1;", bits(3.0f), 0, 0, bits(8.0f)},
      {"lg2.approx.f32 %f0, %f1;", bits(8.0f), 0, 0, bits(3.0f)},
      {"rsqrt.approx.f32 %f0, %f1;", bits(4.0f), 0, 0, half},
  });
  check(std::vector<WideCase>{
      {"add.f64 %e0, %e1, %e2;", bits(1.0), bits(0x1p-52), 0, bits(1 + 0x1p-52)},
      {"fma.rn.f64 %e0, %e1, %e2, %e2;", bits(3.0), bits(5.0), 0, bits(20.0)},
  });
}

TEST(Arithmetic, ComparisonsKnowWhatIsNoNumber) {
  const uint32_t one = bits(1.0f), two = bits(2.0f);
  check(std::vector<Case>{
      {"setp.lt.f32 %p0, %f1, %f2;", one, two, 0, 1},
      {"setp.ne.f32 %p0, %f1, %f2;", one, none, 0, 0},
      {"setp.neu.f32 %p0, %f1, %f2;", one, none, 0, 1},
      {"setp.num.f32 %p0, %f1, %f2;", one, two, 0, 1},
      {"setp.nan.f32 %p0, %f1, %f2;", one, none, 0, 1},
      {"setp.gt.ftz.f32 %p0, %f1, %f2;", 1, 0, 0, 0},
      {"setp.lt.s32 %p0, %r1, %r2;", uint32_t(-1), 0, 0, 1},
      {"setp.lt.u32 %p0, %r1, %r2;", uint32_t(-1), 0, 0, 0},
      {"setp.hi.u32 %p0, %r1, %r2;", uint32_t(-1), 0, 0, 1},
      {"setp.eq.and.s32 %p0, %r1, %r2, !%p1;", 4, 4, 0, 1},
      {"setp.eq.and.s32 %p0, %r1, %r2, !%p1;", 4, 4, 1, 0},
      {"setp.eq.s32 %p2|%p0, %r1, %r2;", 4, 5, 0, 1},
      {"selp.f32 %f0, %f1, %f2, %p1;", one, two, 7, one},
  });
}

TEST(Arithmetic, ConversionsRoundAndClamp) {
  check(std::vector<Case>{
      {"cvt.rzi.s32.f32 %r0, %f1;", bits(-2.9f), 0, 0, uint32_t(-2)},
      {"cvt.rni.s32.f32 %r0, %f1;", bits(2.5f), 0, 0, 2},
      {"cvt.rpi.u32.f32 %r0, %f1;", bits(-7.0f), 0, 0, 0},
      {"cvt.rmi.f32.f32 %f0, %f1;", bits(-2.5f), 0, 0, bits(-3.0f)},
      {"cvt.rzi.s32.f32 %r0, %f1;", bits(1e20f), 0, 0, 0x7fffffff},
      {"cvt.rzi.s32.f32 %r0, %f1;", none, 0, 0, 0},
      {"cvt.rn.f32.s32 %f0, %r1;", 16777217, 0, 0, bits(16777216.0f)},
      {"cvt.rp.f32.s32 %f0, %r1;", 16777217, 0, 0, bits(16777218.0f)},
      {"cvt.rn.f32.u32 %f0, %r1;", 0xffffffff, 0, 0, bits(4294967296.0f)},
      {"cvt.rz.f32.u32 %f0, %r1;", 0xffffffff, 0, 0, bits(4294967040.0f)},
      {"cvt.s32.s8 %r0, %r1;", 0x80, 0, 0, 0xffffff80},
      {"cvt.sat.u8.s32 %r0, %r1;", 300, 0, 0, 255},
      {"cvt.sat.s8.s32 %r0, %r1;", uint32_t(-300), 0, 0, uint32_t(-128)},
      {"cvt.u16.u32 %h0, %r1; cvt.u32.u16 %r0, %h0;", 0x12345678, 0, 0, 0x5678},
      {"cvt.rn.bf16x2.f32 %r0, %f1, %f2;", bits(1.0f), bits(1 + 0x1p-8f), 0, 0x3f803f80},
      {"cvt.rn.f16x2.f32 %r0, %f1, %f2;", bits(65520.0f), bits(0x1p-25f), 0, 0x7c000000},
      {"cvt.rz.bf16x2.f32 %r0, %f1, %f2;", bits(3e38f), none, 0, 0x7f617fff},
      {"cvt.rn.f16.f32 %h0, %f1; cvt.f32.f16 %f0, %h0;", bits(1.0f / 3), 0, 0, bits(0.333251953125f)},
      {"cvt.rn.relu.bf16x2.f32 %r0, %f1, %f2;", bits(-1.0f), bits(2.0f), 0, 0x00004000},
      {"cvt.sat.f32.f32 %f0, %f1;", bits(-0.5f), 0, 0, 0},
  });
  check(std::vector<WideCase>{
      {"cvt.s64.s32 %d0, %r3;", 0, 0, uint32_t(-5), uint64_t(-5)},
      {"cvt.u64.u32 %d0, %r3;", 0, 0, uint32_t(-5), 0xfffffffb},
      {"cvt.f64.f32 %e0, %f1;", bits(0.1f), 0, 0, bits(double(0.1f))},
      {"cvt.rn.f32.f64 %f0, %e1; cvt.f64.f32 %e0, %f0;", bits(0.1), 0, 0, bits(double(0.1f))},
      {"cvt.rzi.u64.f64 %d0, %e1;", bits(1e30), 0, 0, ~uint64_t(0)},
  });
}

TEST(Arithmetic, RegistersArePackedAndUnpacked) {
  check(std::vector<Case>{
      {"mov.b32 {%h0, %h1}, %r1; mov.b32 %r0, {%h1, %h0};", 0x12345678, 0, 0, 0x56781234},
      {"mov.b64 %d0, {%r1, %r2}; mov.b64 {_, %r0}, %d0;", 1, 2, 0, 2},
  });
}

TEST(Arithmetic, WhatIsNotKnownIsRefusedByName) {
  const std::pair<const char *, const char *> all[] = {
      {"add.s32.wide %r0, %r1, %r2;", "'add.s32.wide' is not supported: '.wide' is not known there"},
      {"fma.f32 %f0, %f1, %f2, %f3;", "'fma.f32' is not supported: it needs .rn"},
      {"texture.1d %r0, %r1;", "instruction 'texture.1d' is not supported"},
      {"add.s32 %r0, %r1;", "'add.s32' has 2 operands and takes 3"},
      {"add.s32 %r0, %r1, %d2;", "register '%d2' has 64 bits, and 'add.s32' reads 32"},
      {"add.s32 %d0, %r1, %r2;", "register '%d0' has 64 bits, and 'add.s32' writes 32"},
      {"add.s32 %p0, %r1, %r2;", "register '%p0' has 1 bits"},
      {"add.s32 3, %r1, %r2;", "what 'add.s32' writes has to be a register"},
      {"shl.s32 %r0, %r1, %r2;", "'shl.s32' is not supported for its type"},
      {"cvt.f32.s32 %f0, %r1;", "'cvt.f32.s32' is not supported for its type"},
      {"cvt.rn.s32.f32 %r0, %f1;", "'cvt.rn.s32.f32' is not supported for its type"},
      {"setp.lo.f32 %p0, %f1, %f2;", "'setp.lo.f32' is not supported"},
      {"add.sat %r0, %r1, %r2;", "'add.sat' is not supported: its type is missing"},
      {"lop3.b32 %r0, %r1, %r2, %r3, %r4;", "the table of 'lop3.b32' has to be a number"},
      {"add.s32 %r0, %r1, Here; Here:", "an operand of 'add.s32' cannot be read as .s32"},
      {"div.f32 %f0, %f1, %f2;", "'div.f32' is not supported: it needs .rn or .approx"},
      {"cvta.surface.u64 %d0, %d1;", "'cvta.surface.u64' is not supported: its state space is not known"},
      {"mov.u32 %r0, %clock;", "special register '%clock' is not supported"},
      {"mov.b64 %d0, {%r1, %r2, %r3};", "'mov.b64' has a vector of 3 parts, which is not supported for its type"},
  };
  for (const auto &[instruction, message] : all)
    EXPECT_TRUE(says(TestKernel(instruction).run(), message));
}

} // namespace
