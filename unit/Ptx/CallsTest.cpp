// Functions that are called, and branches by a table.
#include "TestKernel.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

/// `out` of a kernel in front of whose text `functions` stand.
std::string run(const std::string &functions, const std::string &body, std::vector<uint32_t> &out) {
  TestKernel kernel("ld.param.u64 %d8, [out]; mov.u32 %r8, %tid.x; mul.wide.u32 %d0, %r8, 4; add.s64 %d9, %d8, %d0;\n" +
                    body + "\nst.global.b32 [%d9], %r0;");
  kernel.text.insert(kernel.text.find(".entry"), functions);
  kernel.launch.block = {32, 1, 1};
  std::string error = kernel.run();
  out.assign(kernel.out.begin(), kernel.out.begin() + 32);
  return error;
}

/// f(x, n): x halved n times, plus 1 each; it returns from the middle of a loop.
const std::string halved = ".func (.param .b32 y) f(.param .b32 x, .param .b32 n)\n{ .reg .b32 %r<3>; .reg .pred %p;\n"
                           "ld.param.b32 %r0, [x]; ld.param.b32 %r1, [n];\n"
                           "L: setp.eq.u32 %p, %r1, 0; @%p bra End; shr.u32 %r0, %r0, 1; add.u32 %r0, %r0, 1;\n"
                           "sub.u32 %r1, %r1, 1; bra L; End: st.param.b32 [y], %r0; ret; }\n";
const std::string call =
    "{ .param .b32 a; .param .b32 b; .param .b32 c;\nst.param.b32 [a], %r1; st.param.b32 [b], %r2;\n"
    "call.uni (c), f, (a, b);\nld.param.b32 %r0, [c]; }\n";

TEST(Calls, EachLaneHasParametersOfItsOwn) {
  std::vector<uint32_t> out;
  ASSERT_EQ(run(halved, "add.u32 %r1, %r8, 100; and.b32 %r2, %r8, 3;\n" + call + "mov.b32 %r1, %r0;\n" + call, out),
            "");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t expected = lane + 100;
    for (uint32_t i = 0; i < 2 * (lane & 3); ++i)
      expected = expected / 2 + 1;
    EXPECT_EQ(out[lane], expected);
  }
}

TEST(Calls, VariablesOfTheModuleStandBetweenFunctions) {
  std::vector<uint32_t> out;
  const std::string between = ".shared .b32 kept;\n.func g(.param .b32 x)\n{ .reg .b32 %r; ld.param.b32 %r, [x]; "
                              "st.shared.b32 [kept], %r; ret; }\n.shared .b32 other[3];\n";
  ASSERT_EQ(
      run(halved + between,
          "mov.b32 %r1, 100; mov.b32 %r2, 2;\n" + call +
              "{ .param .b32 a; st.param.b32 [a], %r0; call g, (a); }\nmov.b32 %r0, 0; ld.shared.b32 %r0, [kept];",
          out),
      "");
  EXPECT_EQ(out[31], 26u);
}

TEST(Calls, OnlyLanesThatCallDo) {
  std::vector<uint32_t> out;
  const std::string some =
      ".func g(.param .b64 at) { .reg .b64 %d; ld.param.b64 %d, [at]; st.global.b32 [%d+128], 3; }\n";
  ASSERT_EQ(run(some,
                "setp.eq.u32 %p0, %r8, 5; mov.b32 %r0, 1;\n{ .param .b64 a; st.param.b64 [a], %d9;\n"
                "@%p0 call g, (a); }\n",
                out),
            "");
  EXPECT_EQ(out[5], 1u);
}

TEST(Calls, WhatCannotBeCalledIsRefused) {
  std::vector<uint32_t> out;
  EXPECT_TRUE(says(run(".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n",
                       "{ .param .b64 a; .param .b32 c; call (c), vprintf, (a, a); }", out),
                   "'call' calls 'vprintf', which has no body here; leave it out; registers cannot be called"));
  EXPECT_TRUE(says(run(".func g() { call g; }\n", "call g;", out), "calls functions 32 deep; let none call itself"));
  EXPECT_TRUE(says(run(halved, "{ .param .b32 a; call f, (a, a); }", out),
                   "does not call 'f' with a .param variable for each of its own; let them agree"));
  EXPECT_TRUE(says(run(".func g() { ret; }\n", "call g, (%r1);", out), "does not call 'g' with a .param variable"));
}

TEST(Calls, AFunctionIsNotCalledTooOften) {
  std::string functions = ".func f0() { .reg .b32 %r; mov.b32 %r, 1; }\n";
  for (int i = 1; i < 24; ++i)
    functions += ".func f" + std::to_string(i) + "() { call f" + std::to_string(i - 1) + "; call f" +
                 std::to_string(i - 1) + "; }\n";
  std::vector<uint32_t> out;
  EXPECT_TRUE(says(run(functions, "call f23;", out),
                   "is call 65537 of the kernel, those of what it calls included, and there may be 65536; call fewer "
                   "functions"));
  std::string longer = ".func f0() { .reg .b32 %r;\n";
  for (int i = 0; i < 600; ++i)
    longer += "mov.b32 %r, 1;\n";
  longer += "}\n";
  for (int i = 1; i < 12; ++i)
    longer += ".func f" + std::to_string(i) + "() { call f" + std::to_string(i - 1) + "; call f" +
              std::to_string(i - 1) + "; }\n";
  EXPECT_TRUE(says(run(longer, "call f11; call f11;", out),
                   "makes the kernel longer than 1048576 instructions; call fewer functions"));
}

TEST(Calls, WhatFunctionsDeclareIsBounded) {
  std::vector<uint32_t> out;
  const std::string wide = ".func f() { .reg .b64 %w<100000>; ret; }\n";
  EXPECT_EQ(run(wide, "mov.b32 %r0, 1;\ncall f;", out), "");
  EXPECT_EQ(run(wide, "mov.b32 %r0, 1;\ncall f;\ncall f;", out),
            "test.ptx:12: 'k': 'call' brings the kernel to 200096 registers, and there may be 131072; call fewer "
            "functions");
  std::string many = ".func f() {\n";
  for (int i = 0; i < 1000; ++i)
    many += ".local .b8 v" + std::to_string(i) + "[0];\n";
  many += "}\n.func g() {\n";
  for (int i = 0; i < 132; ++i)
    many += "call f;\n";
  EXPECT_TRUE(says(run(many + "}\n", "call g;", out),
                   "'k': 'call' brings the kernel to 132000 variables, and there may be 131072; call fewer functions"));
}

const std::string table = "T: .branchtargets A, B, A, C;\n";
const std::string cases = "A: mov.b32 %r0, 10; bra End;\nB: mov.b32 %r0, 20; bra End;\nC: mov.b32 %r0, 30;\nEnd:\n";

TEST(Calls, ATableChoosesABranch) {
  std::vector<uint32_t> out;
  ASSERT_EQ(run("", "and.b32 %r1, %r8, 3;\n" + table + "brx.idx %r1, T;\n" + cases, out), "");
  EXPECT_EQ(out[0], 10u);
  EXPECT_EQ(out[1], 20u);
  EXPECT_EQ(out[2], 10u);
  EXPECT_EQ(out[31], 30u);
  EXPECT_TRUE(says(run("", "mov.b32 %r1, 4;\n" + table + "brx.idx %r1, T;\n" + cases, out),
                   "it takes a branch behind the 4 it has"));
  EXPECT_TRUE(
      says(run("", "mov.b32 %r1, 4;\nbrx.idx %r1, A;\n" + cases, out), "'brx.idx' needs a label of .branchtargets"));
  EXPECT_TRUE(says(run("", "T: .branchtargets %r1;", out), "'.branchtargets' needs labels"));
}

} // namespace
