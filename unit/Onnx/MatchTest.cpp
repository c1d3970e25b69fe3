//===- MatchTest.cpp - linear layers, norms and whole decoders ------------------===//
#include "TinyDecoder.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

using Of = TinyDecoder;

bool has(const std::string &text, const std::string &words) { return text.find(words) != std::string::npos; }

TEST(MatchDecoder, FindsADecoderWithItsNumbers) {
  const Imported found((TinyDecoder()));
  const ModelSpec &spec = found.model.spec;
  EXPECT_EQ(spec.layerCount(), 2);
  EXPECT_EQ(spec.hidden, 8);
  EXPECT_EQ(spec.vocab, 11);
  EXPECT_EQ(spec.normEps, 1e-6);
  EXPECT_EQ(spec.mlp->inter, 6);
  EXPECT_EQ(found.attention().heads, 4);
  EXPECT_EQ(found.attention().kvHeads, 2);
  EXPECT_EQ(found.attention().headDim, 4);
  EXPECT_EQ(found.attention().window, 0);
  EXPECT_EQ(spec.ropes.at("rope").theta, 10000);
  EXPECT_EQ(found.tensor("model.layers.1.self_attn.q_proj.weight"), transposed("1.wq", 8, 16));
  EXPECT_EQ(found.tensor("model.layers.0.mlp.up_proj.weight"), transposed("0.mlp.wup", 8, 6));
  EXPECT_EQ(found.tensor("lm_head.weight"), transposed("head", 8, 11));
  EXPECT_EQ(found.tensor("model.embed_tokens.weight"), sampled("embedding", 88));
}

TEST(MatchDecoder, FindsLatentAttention) {
  for (bool hasQueryLatent : {false, true}) {
    TinyOptions options;
    options.isLatent = true;
    options.hasQueryLatent = hasQueryLatent;
    const Imported found((TinyDecoder(options)));
    const MlaSpec &spec = std::get<MlaSpec>(found.model.spec.attentions.at("attention"));
    EXPECT_EQ(spec.latent, 6);
    EXPECT_EQ(spec.queryLatent, hasQueryLatent ? 5 : 0);
    EXPECT_EQ(spec.nope, 4);
    EXPECT_EQ(spec.rope, 4);
    EXPECT_EQ(spec.value, 3);
  }
}

TEST(MatchDecoder, FindsLatentAttentionOfOneHead) {
  TinyOptions options;
  options.isLatent = true;
  options.heads = 1;
  const Imported found((TinyDecoder(options)));
  EXPECT_EQ(std::get<MlaSpec>(found.model.spec.attentions.at("attention")).heads, 1);
  EXPECT_EQ(found.tensor("model.layers.0.self_attn.q_proj.weight"), transposed("0.wq", 8, 8));
}

/// Norms read latents with their bias, a sum that several nodes read.
TEST(MatchDecoder, FindsLatentAttentionWithBiases) {
  TinyOptions options;
  options.layers = 1;
  options.isLatent = options.hasQueryLatent = true;
  TinyDecoder tiny(options);
  for (const auto &[part, size] : {std::pair{"0.query.latent", 5}, std::pair{"0.down", 10}, std::pair{"0.output", 8}})
    tiny.changes[part] = [name = std::string(part) + ".bias", size = int64_t(size)](TinyDecoder &of, ValueId rows) {
      return of.op("Add", {rows, of.weight(name, {size})});
    };
  const Imported found(tiny);
  EXPECT_TRUE(std::get<MlaSpec>(found.model.spec.attentions.at("attention")).bias);
  EXPECT_EQ(found.tensor("model.layers.0.self_attn.q_a_proj.bias"), sampled("0.query.latent.bias", 5));
}

TEST(MatchDecoder, FindsExperts) {
  for (bool runsAll : {false, true}) {
    TinyOptions options;
    options.experts = 4;
    options.runsAll = runsAll;
    const Imported found((TinyDecoder(options)));
    const MoeSpec &spec = *found.model.spec.moe;
    EXPECT_EQ(spec.experts, 4);
    EXPECT_EQ(spec.topK, 2);
    EXPECT_EQ(spec.inter, 6);
    EXPECT_EQ(spec.scoring, Scoring::Softmax);
    EXPECT_TRUE(spec.normalize);
  }
}

TEST(MatchDecoder, FindsExpertsOfGroups) {
  TinyOptions options;
  options.experts = 6;
  options.groups = 3;
  options.topGroups = 2;
  options.isSigmoid = options.hasChoiceBias = options.hasShared = true;
  const Imported found((TinyDecoder(options)));
  const MoeSpec &spec = *found.model.spec.moe;
  EXPECT_EQ(spec.groups, 3);
  EXPECT_EQ(spec.topGroups, 2);
  EXPECT_EQ(spec.groupScore, GroupScore::Top2Sum);
  EXPECT_EQ(spec.scoring, Scoring::Sigmoid);
  EXPECT_EQ(spec.sharedInter, 6);
  EXPECT_TRUE(spec.correctionBias);
}

TEST(MatchLinear, RefusesLayersWithMoreThanABias) {
  const std::string twice = failure({}, "logits", [](Of &of, ValueId logits) {
    const ValueId one = of.op("Add", {logits, of.weight("one bias", {11})});
    return of.op("Add", {one, of.weight("another bias", {11})});
  });
  EXPECT_TRUE(has(twice, "expected a linear layer, found")) << twice;
  EXPECT_TRUE(has(twice, "k2c compiles decoders; docs/Onnx.md says what is understood")) << twice;
  const std::string number = failure({}, "logits", [](Of &of, ValueId logits) { return of.plus(logits, 1); });
  EXPECT_TRUE(has(number, "expected a linear layer, found")) << number;
}

TEST(MatchLinear, RefusesWeightsThatAreComputed) {
  const std::string product = failure(
      {}, "head", [](Of &of, ValueId head) { return of.op("Mul", {head, of.weight("another head", {8, 11})}); });
  EXPECT_TRUE(has(product, "expected a product of weights and rows, found")) << product;
  const std::string repeated = failure({}, "head", [](Of &of, ValueId) {
    const ValueId half = of.op("Expand", {of.weight("half", {8, 6, 1}), of.graph.list({1, 1, 2})});
    return of.cut(of.reshaped(half, {8, 12}), 1, 0, 11);
  });
  EXPECT_TRUE(has(repeated, "expected a weight whose indices are those of its rows and columns, found")) << repeated;
}

TEST(MatchLinear, TakesWeightsThatAreQuantised) {
  EXPECT_EQ(failure({}, "head",
                    [](Of &of, ValueId) {
                      const ValueId stored = of.weight("head as bytes", {11, 8}, ElementType::I8);
                      const ValueId scales = of.weight("scales", {11});
                      return of.op("Transpose", {of.op("DequantizeLinear", {stored, scales}, {{"axis", 0}})},
                                   {{"perm", std::vector<int64_t>{1, 0}}});
                    }),
            "");
}

TEST(MatchLinear, RefusesWeightsThatAreQuantisedByHand) {
  const std::string text = failure({}, "head", [](Of &of, ValueId) {
    const ValueId stored = of.weight("head as bytes", {8, 11}, ElementType::I8);
    return of.op("Mul", {of.op("Cast", {stored}, {{"to", 1}}), of.weight("scales", {11})});
  });
  EXPECT_EQ(text, "is stored quantised, as INT8 with scales, in a form that is not understood (export the model in "
                  "FLOAT, FLOAT16 or BFLOAT16)");
}

TEST(MatchNorm, RefusesRowsWithoutANorm) {
  const std::string text = failure({}, "final", [](Of &of, ValueId) { return of["1.stream"]; });
  EXPECT_TRUE(has(text, "expected an RMS norm, found")) << text;
}

TEST(MatchNorm, RefusesOtherPowersThanSquares) {
  const std::string text = failure({}, "final.norm.squares",
                                   [](Of &of, ValueId squares) { return of.op("Mul", {squares, of["1.stream"]}); });
  EXPECT_TRUE(has(text, "expected the sum of squares of an RMS norm, found")) << text;
}

TEST(MatchNorm, RefusesSquaresOfOtherRows) {
  const std::string text =
      failure({}, "final.norm.squares", [](Of &of, ValueId) { return of.op("Mul", {of["embedded"], of["embedded"]}); });
  EXPECT_TRUE(has(text, "expected an RMS norm of what it divides by, found")) << text;
  const std::string twice = failure({}, "final", [](Of &of, ValueId rows) { return of.times(rows, 2); });
  EXPECT_TRUE(has(twice, "expected an RMS norm of what it divides by, found")) << twice;
}

TEST(MatchNorm, RefusesSquaresOfAPartOfTheRows) {
  const std::string text =
      failure({}, "final.norm.squares", [](Of &of, ValueId squares) { return of.cut(squares, -1, 0, 6); });
  EXPECT_TRUE(has(text, "expected an RMS norm of what it divides by, found")) << text;
}

} // namespace
