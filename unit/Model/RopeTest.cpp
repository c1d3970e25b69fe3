//===- RopeTest.cpp - rotary tables against published implementations -----===//
//
// Expected frequencies are what transformers 5.23 computes for the published
// configurations; its float32 pow may differ from ours in the last place.
//
//===----------------------------------------------------------------------===//

#include "k2c/Model/Rope.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace k2c;

namespace {

struct Sample {
  size_t index;
  double frequency;
};

void expectFrequencies(const std::string &config, const std::vector<Sample> &samples) {
  Expected<ModelSpec> spec = loadModelSpec(K2C_SOURCE_DIR "/models/configs/" + config);
  ASSERT_TRUE(spec) << spec.error().text();
  std::vector<float> inverse = ropeInverseFrequencies(spec->ropes["rope"]);
  for (const Sample &sample : samples)
    EXPECT_NEAR(inverse[sample.index], sample.frequency, sample.frequency * 2.5e-7)
        << config << " pair " << sample.index;
}

TEST(Rope, Llama3Frequencies) {
  expectFrequencies("llama-3.1-405b", {{0, 0x1p+0},
                                       {1, 0x1.a11582p-1},
                                       {20, 0x1.0f5386p-6},
                                       {28, 0x1.a4ee40p-9},
                                       {30, 0x1.67a23ap-10},
                                       {32, 0x1.132ba4p-11},
                                       {34, 0x1.765ba4p-13},
                                       {36, 0x1.46831ap-14},
                                       {40, 0x1.1f91f0p-15},
                                       {63, 0x1.4985fep-22}});
}

TEST(Rope, YarnFrequenciesWithEqualRampEnds) {
  expectFrequencies("kimi-k2", {{0, 0x1p+0},
                                {1, 0x1.6d1ce6p-1},
                                {5, 0x1.79ac46p-3},
                                {10, 0x1.16966ep-5},
                                {15, 0x1.9aff04p-8},
                                {20, 0x1.2f2b10p-15},
                                {25, 0x1.bf4270p-18},
                                {31, 0x1.d6892cp-21}});
}

TEST(Rope, YarnFrequenciesWithARamp) {
  expectFrequencies("deepseek-v3", {{0, 0x1p+0},
                                    {1, 0x1.7ff222p-1},
                                    {10, 0x1.ccab84p-5},
                                    {12, 0x1.b86436p-6},
                                    {15, 0x1.111aeep-7},
                                    {20, 0x1.9e7c6ep-11},
                                    {25, 0x1.3a8746p-16},
                                    {31, 0x1.bf749ep-19}});
}

TEST(Rope, YarnMagnitudesOfLatentAttention) {
  Expected<ModelSpec> spec = loadModelSpec(K2C_SOURCE_DIR "/models/configs/deepseek-v3");
  ASSERT_TRUE(spec);
  double mscale = 0.1 * std::log(40.0) + 1;
  EXPECT_DOUBLE_EQ(spec->ropes["rope"].cosSinScale, 1.0);
  EXPECT_NEAR(spec->ropes["rope"].attentionScale, mscale * mscale, 1e-14);
  EXPECT_NEAR(spec->softmaxScale(spec->layers[0].kinds[0]), mscale * mscale / std::sqrt(192.0), 1e-15);
}

TEST(Rope, TableIsCosinesThenSines) {
  RopeSpec rope;
  rope.theta = 10000;
  rope.dims = 4;
  std::vector<float> table = ropeTable(rope, 3);
  ASSERT_EQ(table.size(), 12u);
  EXPECT_FLOAT_EQ(table[0], 1);
  EXPECT_FLOAT_EQ(table[2], 0);
  EXPECT_FLOAT_EQ(table[8], std::cos(2.0));
  EXPECT_FLOAT_EQ(table[9], std::cos(0.02));
  EXPECT_FLOAT_EQ(table[10], std::sin(2.0));
  EXPECT_FLOAT_EQ(table[11], std::sin(0.02));
}

TEST(Rope, RowsDoNotDependOnWhereTheTableBegins) {
  RopeSpec rope;
  rope.dims = 64;
  rope.scaling = RopeYarn{4, 32, 1, 64, false};
  std::vector<float> whole = ropeTable(rope, 100), part(64 * 3);
  ropeTableRows(rope, 97, 3, part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.end() - 64 * 3));
}

TEST(Rope, LinearDividesAndDynamicDoesNot) {
  RopeSpec rope;
  rope.dims = 8;
  std::vector<float> plain = ropeInverseFrequencies(rope);
  rope.scaling = RopeDynamic{2};
  EXPECT_EQ(ropeInverseFrequencies(rope), plain);
  rope.scaling = RopeLinear{2};
  EXPECT_FLOAT_EQ(ropeInverseFrequencies(rope)[1], plain[1] / 2);
}

} // namespace
