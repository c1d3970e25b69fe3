//===- DisassemblyTest.cpp - Which loop of a function is its main loop ----===//
#include "k2c/Target/Disassembly.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

const std::string fma = "  vfmadd231ps   %ymm0, %ymm1, %ymm2\n";

TEST(DisassemblyTest, TheLoopWithMostMultiplyAddsIsTheMainLoop) {
  const std::string tail = "<L0>:\n" + fma + "  jb            <L0>\n",
                    full = "<L1>:\n" + fma + fma + "  jb            <L1>\n";
  const AssemblyPart loop = mainLoop("  pushq         %rbp\n" + tail + full + "  retq\n");
  EXPECT_EQ(loop.text, full);
  EXPECT_EQ(loop.instructions, 3);
  EXPECT_EQ(loop.multiplyAdds, 2);
}

TEST(DisassemblyTest, ALoopAroundAnotherIsNot) {
  const std::string inner = "<L1>:\n" + fma + "  jne           <L1>\n";
  EXPECT_EQ(mainLoop("<L0>:\n" + fma + inner + fma + "  jne           <L0>\n").text, inner);
  // Two branches to one label: the second has the first inside.
  EXPECT_EQ(mainLoop("<L1>:\n" + fma + "  jne           <L1>\n" + fma + "  jmp           <L1>\n").text, inner);
}

TEST(DisassemblyTest, BranchesForwardAndToElsewhereAreNoLoops) {
  const AssemblyPart loop =
      mainLoop("  je            <L0>\n" + fma + "<L0>:\n  jmpq          *%rdx\n  jmp           <L9>\n");
  EXPECT_EQ(loop.text, "");
  EXPECT_EQ(loop.instructions, 0);
}

TEST(DisassemblyTest, WithoutMultiplyAddsVectorsDecide) {
  const std::string scalar =
      "<L0>:\n  addq          $1, %rax\n  vfmadd231ss   %xmm0, %xmm1, %xmm2\n  jb            <L0>\n";
  const std::string vectors =
      "<L1>:\n  vaddps        %ymm0, %ymm1, %ymm2\n  vmulps        %ymm0, %ymm1, %ymm2\n  jb            <L1>\n";
  const AssemblyPart loop = mainLoop(scalar + vectors);
  EXPECT_EQ(loop.text, vectors);
  EXPECT_EQ(loop.multiplyAdds, 0);
}

TEST(DisassemblyTest, DotProductsOfPairsCount) {
  EXPECT_EQ(wholeFunction("  vdpbf16ps     %zmm0, %zmm1, %zmm2\n  retq\n").multiplyAdds, 1);
}

} // namespace
