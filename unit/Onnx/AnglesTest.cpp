//===- AnglesTest.cpp - rotary embeddings from their numbers ------------------===//
#include "Angles.h"
#include "k2c/Model/Rope.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::onnx;

namespace {

RopeSpec ropeWith(double theta, int64_t dims, RopeScaling scaling = RopeUnscaled()) {
  RopeSpec rope;
  rope.theta = theta;
  rope.dims = dims;
  rope.scaling = scaling;
  return rope;
}

/// What is found of frequencies.
Expected<RopeSpec> found(const std::vector<float> &frequencies, const std::vector<RopeSpec> &stated = {}) {
  Graph graph;
  graph.path = "m.onnx";
  Fold fold(graph, {});
  Rotation rotation;
  rotation.dims = 2 * int64_t(frequencies.size());
  rotation.frequencies = frequencies;
  return ropeOf(fold, rotation, stated);
}

/// The bytes of a number as a file stores it, cut to 16 bits in bfloat16.
std::string stored(float value, ElementType type) {
  const std::string bytes(reinterpret_cast<const char *>(&value), sizeof value);
  return type == ElementType::BF16 ? bytes.substr(2) : bytes;
}

/// What is found of tables of `positions` rows, of which one element is changed.
Expected<RopeSpec> foundOfTables(const RopeSpec &rope, int64_t positions, float change = 0,
                                 ElementType type = ElementType::F32) {
  Graph graph;
  graph.path = "m.onnx";
  const std::vector<float> table = ropeTable(rope, positions);
  const int64_t half = rope.dims / 2;
  for (ValueId side : {0, 1}) {
    std::string bytes;
    for (int64_t row = 0; row < positions; ++row)
      for (int64_t i = 0; i < half; ++i) {
        const float value = table[size_t(row * rope.dims + side * half + i)] +
                            (side == 1 && row == positions - 1 && i == half - 1 ? change : 0);
        bytes += stored(value, type);
      }
    Tensor tensor;
    tensor.type = type;
    tensor.shape = {positions, half};
    tensor.bytes = std::make_shared<std::string>(bytes);
    graph.values.push_back(side == 0 ? "cosines" : "sines");
    graph.constants[side] = tensor;
  }
  Fold fold(graph, {});
  Rotation rotation;
  rotation.dims = rope.dims;
  rotation.cosines = {0, 0, {positions, half}, {half, 1}};
  rotation.sines = {1, 0, {positions, half}, {half, 1}};
  return ropeOf(fold, rotation);
}

void expectSame(const Expected<RopeSpec> &found, const RopeSpec &rope) {
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->theta, rope.theta);
  EXPECT_EQ(found->dims, rope.dims);
  EXPECT_EQ(found->scaling.index(), rope.scaling.index());
  EXPECT_EQ(ropeInverseFrequencies(*found), ropeInverseFrequencies(rope));
}

TEST(OnnxAngles, ThetaIsThatOfFewDigits) {
  for (double theta : {10000.0, 500000.0, 1e6, 5e6, 150000.0, 5e4, 12345.0})
    for (int64_t dims : {4, 16, 64, 128}) {
      const RopeSpec rope = ropeWith(theta, dims);
      expectSame(found(ropeInverseFrequencies(rope)), rope);
    }
}

TEST(OnnxAngles, LinearScalingHasItsFactor) {
  for (double factor : {2.0, 2.5, 4.0, 8.0}) {
    const RopeSpec rope = ropeWith(10000, 64, RopeLinear{factor});
    const Expected<RopeSpec> same = found(ropeInverseFrequencies(rope));
    expectSame(same, rope);
    EXPECT_EQ(std::get<RopeLinear>(same->scaling).factor, factor);
  }
}

TEST(OnnxAngles, Llama3ScalingHasItsFactorAndContext) {
  const RopeSpec rope = ropeWith(500000, 128, RopeLlama3{8, 1, 4, 8192});
  const Expected<RopeSpec> same = found(ropeInverseFrequencies(rope));
  expectSame(same, rope);
  EXPECT_EQ(std::get<RopeLlama3>(same->scaling).factor, 8);
}

TEST(OnnxAngles, YarnHasItsFactorAndRamp) {
  for (double fast : {32.0, 1.0})
    for (bool truncate : {true, false}) {
      const RopeSpec rope = ropeWith(10000, 64, RopeYarn{40, fast, 1, 4096, truncate});
      expectSame(found(ropeInverseFrequencies(rope)), rope);
    }
}

// So that a file of very long heads does not take minutes.
TEST(OnnxAngles, ScalingsOfMorePairsThanModelsHaveStayNumbers) {
  for (int64_t dims : {512, 514}) {
    const RopeSpec rope = ropeWith(10000, dims, RopeYarn{40, 32, 1, 4096, true});
    const Expected<RopeSpec> same = found(ropeInverseFrequencies(rope));
    ASSERT_TRUE(same) << same.error().text();
    EXPECT_EQ(std::holds_alternative<RopeYarn>(same->scaling), dims == 512);
    EXPECT_EQ(std::holds_alternative<RopePublished>(same->scaling), dims == 514);
    EXPECT_EQ(ropeInverseFrequencies(*same), ropeInverseFrequencies(rope));
  }
}

TEST(OnnxAngles, TablesAreThoseOfTheirFrequenciesAndScale) {
  RopeSpec rope = ropeWith(500000, 32);
  expectSame(foundOfTables(rope, 64), rope);
  rope.cosSinScale = 1.25;
  const Expected<RopeSpec> same = foundOfTables(rope, 64);
  expectSame(same, rope);
  EXPECT_EQ(same->cosSinScale, 1.25);
}

TEST(OnnxAngles, TablesOfASmallFactorAreComparedAsExactly) {
  RopeSpec rope = ropeWith(500000, 32);
  rope.cosSinScale = 0x1p-24;
  expectSame(foundOfTables(rope, 64), rope);
  EXPECT_FALSE(foundOfTables(rope, 64, 0x1p-28f));
}

TEST(OnnxAngles, TablesMayBeLong) {
  const RopeSpec rope = ropeWith(500000, 128, RopeLlama3{8, 1, 4, 8192});
  expectSame(foundOfTables(rope, 20000), rope); // 1,280,000 elements
}

TEST(OnnxAngles, TablesOfFewBitsAreThoseOfTheirRoundedFormula) {
  for (double theta : {10000.0, 500000.0, 1e6})
    for (const RopeScaling &scaling : {RopeScaling(RopeUnscaled{}), RopeScaling(RopeLinear{4})}) {
      const RopeSpec rope = ropeWith(theta, 64, scaling);
      expectSame(foundOfTables(rope, 4096, 0, ElementType::BF16), rope);
    }
  EXPECT_FALSE(foundOfTables(ropeWith(10000, 64), 4096, 0.02f, ElementType::BF16));
}

TEST(OnnxAngles, AStatedFormulaIsTakenWhereItsNumbersAreThose) {
  const RopeSpec odd = ropeWith(12345.6, 64, RopeYarn{3.7, 21, 2, 100, false});
  const std::vector<float> frequencies = ropeInverseFrequencies(odd);
  expectSame(found(frequencies, {ropeWith(10000, 64), odd}), odd);
  for (const std::vector<RopeSpec> &others :
       {std::vector<RopeSpec>{}, {ropeWith(12345.6, 64)}, {ropeWith(12345.6, 32)}})
    EXPECT_TRUE(std::holds_alternative<RopePublished>(found(frequencies, others)->scaling));
}

// Up to its context it is no scaling at all.
TEST(OnnxAngles, AStatedDynamicScalingBoundsTheContext) {
  RopeSpec dynamic = ropeWith(10000, 64, RopeDynamic{2});
  dynamic.maxContext = 512;
  const std::vector<float> frequencies = ropeInverseFrequencies(dynamic);
  EXPECT_EQ(found(frequencies, {dynamic})->maxContext, 512);
  EXPECT_EQ(found(frequencies)->maxContext, 0);
  EXPECT_EQ(found(ropeInverseFrequencies(ropeWith(20000, 64)), {dynamic})->maxContext, 0);
}

// YaRN that keeps the first and divides the second is another theta, too.
TEST(OnnxAngles, OfTwoPairsTheStatedFormulaIsTaken) {
  const RopeSpec rope = ropeWith(10000, 4, RopeYarn{2.5, 32, 1, 48, true});
  const std::vector<float> frequencies = ropeInverseFrequencies(rope);
  expectSame(found(frequencies, {rope}), rope);
  EXPECT_TRUE(std::holds_alternative<RopeUnscaled>(found(frequencies)->scaling));
}

TEST(OnnxAngles, FrequenciesOfNoFormulaAreThosePublished) {
  std::vector<float> frequencies = ropeInverseFrequencies(ropeWith(10000, 64));
  frequencies[5] *= 1.001f;
  const Expected<RopeSpec> same = found(frequencies);
  ASSERT_TRUE(same) << same.error().text();
  EXPECT_EQ(ropeInverseFrequencies(*same), frequencies);
  EXPECT_EQ(same->maxContext, 0);
}

TEST(OnnxAngles, TablesOfNoFormulaBoundTheContext) {
  RopeSpec rope = ropeWith(10000, 32);
  std::vector<float> frequencies = ropeInverseFrequencies(rope);
  frequencies[3] *= 1.25f;
  rope.scaling = RopePublished{frequencies};
  const Expected<RopeSpec> same = foundOfTables(rope, 64);
  ASSERT_TRUE(same) << same.error().text();
  EXPECT_EQ(same->maxContext, 64);
  const std::vector<float> kept = ropeInverseFrequencies(*same);
  for (size_t i = 0; i < frequencies.size(); i++)
    EXPECT_NEAR(kept[i], frequencies[i], 1e-6 * double(frequencies[i]));
}

TEST(OnnxAngles, ATableWithAnElementOfNoAngleIsRefused) {
  const RopeSpec rope = ropeWith(10000, 32);
  EXPECT_TRUE(foundOfTables(rope, 64));
  const Expected<RopeSpec> wrong = foundOfTables(rope, 64, 1e-5f);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text(),
            "m.onnx: tables of the rotary embedding are not cosines and sines of positions times frequencies; "
            "frequencies are 0 to 1, and all pairs have one factor");
}

TEST(OnnxAngles, FrequenciesBeyondOneAreRefused) {
  const Expected<RopeSpec> wrong = found({1.5f, 0.01f});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text(),
            "m.onnx: frequencies of the rotary embedding are not all of 0 to 1; export the model again");
}

TEST(OnnxAngles, NumbersThatAreNoneEndInARefusal) {
  for (float odd : {-1.0f, std::nanf(""), HUGE_VALF})
    for (const std::vector<float> &frequencies :
         {std::vector<float>{odd}, std::vector<float>{1, odd}, std::vector<float>{odd, odd, odd, odd}})
      EXPECT_FALSE(found(frequencies)) << odd;
}

} // namespace
