//===- SpecTest.cpp - decoders that no spec says --------------------------------===//
#include "TinyDecoder.h"
#include <cmath>

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

using Of = TinyDecoder;

constexpr char alikeOnly[] = " (k2c compiles decoders whose layers differ in their kind alone)";

TinyDecoder::Change biased(const std::string &name, int64_t columns) {
  return [=](Of &of, ValueId rows) { return of.op("Add", {rows, of.weight(name, {columns})}); };
}

/// Biases of queries, keys and values of a layer.
void addBiases(TinyDecoder &tiny, const std::string &layer) {
  tiny.changes[layer + ".query"] = biased(layer + ".bq", 16);
  tiny.changes[layer + ".key"] = biased(layer + ".bk", 8);
  tiny.changes[layer + ".value"] = biased(layer + ".bv", 8);
}

TinyOptions latent() {
  TinyOptions options;
  options.isLatent = options.hasQueryLatent = true;
  return options;
}

TinyOptions experts() {
  TinyOptions options;
  options.experts = 4;
  return options;
}

TEST(Spec, RefusesTensorsOfOtherTypesInOtherLayers) {
  const std::string text = failure({}, "1.norm", [](Of &of, ValueId) {
    return of.op("Cast", {of.weight("norm of another type", {8}, ElementType::BF16)}, {{"to", 1}});
  });
  EXPECT_EQ(text, std::string("tensor 'norm of another type' for model.layers.1.input_layernorm.weight has another "
                              "shape or type than those of other layers") +
                      alikeOnly);
}

TEST(Spec, RefusesNormsOfOtherEpsilons) {
  const std::string text = failure({}, "1.norm.eps", [](Of &of, ValueId) { return of.graph.number(1e-5); });
  EXPECT_EQ(text, std::string("RMS norms have epsilons 0.000001 and 0.000010") + alikeOnly);
}

TEST(Spec, RefusesMlpsWithSomeBiases) {
  const std::string text = failure({}, "0.mlp.gate", biased("0.bgate", 6));
  EXPECT_EQ(text,
            std::string("layer 0: some of the matrices of its MLP have a bias, or its shared expert") + alikeOnly);
}

TEST(Spec, RefusesExpertsWithBiases) {
  const std::string text = failure(experts(), "0.wgates.rows", biased("0.bgates", 6));
  EXPECT_EQ(text, std::string("layer 0: biases of experts are not in this build") + alikeOnly);
}

TEST(Spec, RefusesDenseLayersOfOtherWidths) {
  TinyDecoder tiny;
  tiny.changes["1.mlp.down"] = [](Of &of, ValueId) {
    const ValueId rows = of["1.mlp.normed"], gate = of.linear("gate", rows, 8, 5);
    const ValueId both = of.op("Mul", {of.op("Mul", {gate, of.op("Sigmoid", {gate})}), of.linear("up", rows, 8, 5)});
    return of.linear("down", both, 5, 8);
  };
  EXPECT_EQ(failure(tiny), std::string("dense layers have widths 6 and 5") + alikeOnly);
}

TEST(Spec, RefusesExpertsThatAreRoutedOtherwise) {
  const std::string text =
      failure(experts(), "1.expert.weights", [](Of &of, ValueId weights) { return of.times(weights, 2); });
  EXPECT_EQ(text, std::string("layer 1: its experts are routed otherwise than those before") + alikeOnly);
}

TEST(Spec, RefusesLatentProjectionsWithBiases) {
  const std::string text = failure(latent(), "0.query", biased("0.bq", 32));
  EXPECT_EQ(text, std::string("layer 0: projections have other biases than latents") + alikeOnly);
}

TEST(Spec, RefusesLatentAttentionsOfOtherSizes) {
  const std::string text = failure(latent(), "0.mlp.normed", [](Of &of, ValueId rows) {
    of.options.latent = 7; // of the layers that follow
    return rows;
  });
  EXPECT_EQ(text, std::string("layer 1: its attention has other sizes than those before") + alikeOnly);
}

TEST(Spec, RefusesQueriesWithBiasesOfTheirOwn) {
  const std::string text = failure({}, "0.query", biased("0.bq", 16));
  EXPECT_EQ(text, std::string("layer 0: queries, keys and values have other biases, norms or bounds") + alikeOnly);
}

TEST(Spec, RefusesOtherFactorsOfScoresThatAreNotTurned) {
  TinyOptions options;
  options.isTurned = false;
  EXPECT_EQ(failure(TinyDecoder(options)), "");
  const std::string text = failure(options, "0.scores", [](Of &of, ValueId scores) { return of.times(scores, 2); });
  EXPECT_EQ(text, std::string("layer 0: scores are not multiplied by 1 / sqrt of 4") + alikeOnly);
}

TEST(Spec, RefusesScoresOfAFactorBelowZero) {
  const std::string text =
      failure(TinyOptions(), "0.scores", [](Of &of, ValueId scores) { return of.times(scores, -1); });
  EXPECT_EQ(text, std::string("scores are multiplied by a number that is not above 0") + alikeOnly);
}

TEST(Spec, RefusesLayersWithOtherBiases) {
  TinyDecoder tiny;
  addBiases(tiny, "0");
  TinyDecoder both = tiny;
  addBiases(both, "1");
  EXPECT_TRUE(Imported(both).attention().qkvBias);
  EXPECT_EQ(failure(tiny),
            std::string("layer 1: its attention has other biases or norms than those before") + alikeOnly);
}

TEST(Spec, RefusesNormsOfWhichSomeHaveNoEpsilon) {
  const std::string text = failure({}, "0.norm.eps", [](Of &of, ValueId) { return of.graph.number(0); });
  EXPECT_EQ(text, std::string("RMS norms have epsilons 0.000000 and 0.000001") + alikeOnly);
}

/// What multiplies cosines and sines where scores of rows of 6 elements are multiplied by a constant.
double factorOfTables(double constant, ElementType type) {
  TinyOptions options;
  options.width = 6;
  TinyDecoder tiny(options);
  for (const char *name : {"0.scale", "1.scale"})
    tiny.changes[name] = [=](Of &of, ValueId) { return of.graph.number(constant, type); };
  return Imported(tiny).model.spec.ropes.at("rope").cosSinScale;
}

constexpr double roundedRoot = 0x1.a2p-2; // 1 / sqrt(6) = 0.408248.. with 8 bits: 0.408203..

TEST(Spec, TakesFactorsOfScoresBeforeSixteenBitsRoundedThem) {
  EXPECT_EQ(factorOfTables(roundedRoot, ElementType::BF16), 1);
}

TEST(Spec, KeepsFactorsOfScoresThatNothingRounded) {
  EXPECT_NEAR(factorOfTables(roundedRoot, ElementType::F32), std::sqrt(roundedRoot * std::sqrt(6.0)), 1e-7);
}

TEST(Spec, KeepsFactorsOfScoresThatRoundingDoesNotExplain) {
  EXPECT_NEAR(factorOfTables(0x1.a6p-2, ElementType::BF16), std::sqrt(0x1.a6p-2 * std::sqrt(6.0)), 1e-7);
}

/// What scores are multiplied by is kept as the number that was rounded to the graph's float.
TEST(Spec, AFactorOfTurnedRowsHasFewDigits) {
  TinyDecoder tiny;
  for (const char *part : {"0.scores", "1.scores"})
    tiny.changes[part] = [](TinyDecoder &of, ValueId scores) { return of.times(scores, 1.44); };
  const Imported found(tiny);
  EXPECT_EQ(found.model.spec.ropes.at(firstRope).cosSinScale, 1.2);
}

} // namespace
