//===- DescTest.cpp - Orders, layouts, arguments and keys of kernels ----------===//

#include "Lists.h"

#include <gtest/gtest.h>

using namespace k2c;

namespace {

LinearDesc linear(int64_t n, int64_t k) {
  LinearDesc d;
  d.x = {RowSpace::Token, k, k, DType::F32};
  d.y = {RowSpace::Token, n, n, DType::F32};
  d.w = {DType::BF16, 1, n, k, 1};
  d.order = {k, leafCount(k)};
  return d;
}

std::string names(const KernelDesc &desc) {
  std::string text;
  for (const Operand &operand : operands(desc))
    text += (text.empty() ? "" : " ") + operand.name;
  return text;
}

TEST(Orders, LeavesOfAContraction) {
  EXPECT_EQ(leafCount(1), 1);
  EXPECT_EQ(leafCount(1023), 1);
  EXPECT_EQ(leafCount(1024), 2);
  EXPECT_EQ(leafCount(2047), 2);
  EXPECT_EQ(leafCount(7168), 8);
  EXPECT_EQ(leafCount(18432), 8);
  EXPECT_EQ(leafLength(576, 1), 640);
  EXPECT_EQ(leafLength(7168, 8), 896);
  EXPECT_EQ(leafLength(1100, 2), 640);
  EXPECT_EQ(leafLength(4097, 8), 640); // 7 leaves hold 4097 elements, the eighth is empty
}

TEST(Orders, RestartsOfTheSoftmax) {
  EXPECT_EQ(softmaxRestart(0), 1024);
  EXPECT_EQ(softmaxRestart(16383), 1024);
  EXPECT_EQ(softmaxRestart(16384), 2048);
  EXPECT_EQ(softmaxRestart(131071), 8192);
}

TEST(Orders, LeavesOfTheCombine) {
  EXPECT_EQ(combineLeaves(384), 128);
  EXPECT_EQ(combineLeaves(160), 32);
  EXPECT_EQ(combineLeaves(256), 128);
  EXPECT_EQ(combineLeaves(12), 4);
  EXPECT_EQ(combineLeaves(7), 1);
}

TEST(Operands, FollowTheOrderOfTheDescription) {
  LinearDesc d = linear(64, 96);
  EXPECT_EQ(names({"", d}), "x w y");
  d.normEps = 1e-6;
  d.epilogue = test::epilogueOf(DType::F32, {LinearDesc::Bias, LinearDesc::SlotWeight, LinearDesc::Residual});
  d.grouped = true;
  d.slotsPerToken = 2;
  EXPECT_EQ(names({"", d}), "x norm w bias slot_weights residual permutation y");
  GqaAttentionDesc a;
  EXPECT_EQ(names({"", a}), "q k v step o");
  a.shape.maxLogit = true;
  EXPECT_EQ(names({"", a}), "q k v step layer o");
  RoutingDesc s;
  EXPECT_EQ(names({"", s}), "logits step layer experts weights");
  s.bias = true;
  EXPECT_EQ(names({"", s}), "logits bias step layer experts weights");
  s.bound.nodes = 2;
  EXPECT_EQ(names({"", s}), "logits bias step layer held experts weights");
  AppendDesc p;
  p.x.resize(2);
  p.planes.resize(2);
  EXPECT_EQ(names({"", p}), "x0 x1 plane0 plane1 step");
}

} // namespace
