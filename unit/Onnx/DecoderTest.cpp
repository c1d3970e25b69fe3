//===- DecoderTest.cpp - residual streams that are no decoder's -----------------===//
#include "TinyDecoder.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

using Of = TinyDecoder;

bool has(const std::string &text, const std::string &words) { return text.find(words) != std::string::npos; }

TinyOptions allExperts() {
  TinyOptions options;
  options.experts = 4;
  options.runsAll = true;
  return options;
}

TEST(Decoder, RefusesAGraphWithoutLogits) {
  const std::string text = failure({}, "logits", [](Of &of, ValueId logits) { return of.reshaped(logits, {-1, 11}); });
  EXPECT_EQ(text, "no output is [batch, sequence, vocab] (export a model with logits)");
}

TEST(Decoder, RefusesLogitsWithABias) {
  const std::string text = failure(
      {}, "logits", [](Of &of, ValueId logits) { return of.op("Add", {logits, of.weight("head bias", {11})}); });
  EXPECT_TRUE(has(text, "expected logits without a bias, found")) << text;
}

constexpr int64_t behind = int64_t(1) << 40; // the end of any axis

TinyDecoder::Change rowsFrom(int64_t begin, int64_t end) {
  return [=](Of &of, ValueId rows) { return of.cut(rows, 1, begin, end); };
}

TEST(Decoder, TakesLogitsOfTheLastTokenForThoseOfAll) { EXPECT_EQ(failure({}, "final", rowsFrom(-1, behind)), ""); }

TEST(Decoder, RefusesLogitsOfTheFirstTokenAlone) {
  const std::string text = failure({}, "final", rowsFrom(0, 1));
  EXPECT_TRUE(has(text, ", found ")) << text;
}

TEST(Decoder, RefusesLogitsOfTheLastTokenInAllRows) {
  const std::string text = failure({}, "final", [](Of &of, ValueId rows) {
    const ValueId last = of.cut(rows, 1, -1, behind);
    return of.op("Expand", {last, of.op("Shape", {rows})});
  });
  EXPECT_TRUE(has(text, ", found ")) << text;
}

TEST(Decoder, RefusesTwoTables) {
  const std::string text = failure({}, "embedded", [](Of &of, ValueId rows) {
    return of.op("Add", {rows, of.op("Gather", {of.weight("second table", {11, 8}), of["positions"]})});
  });
  EXPECT_EQ(text, "2 tables of embeddings are added ()");
}

TEST(Decoder, RefusesATableOfOtherIds) {
  const std::string text = failure({}, "read ids", [](Of &of, ValueId ids) {
    const ValueId shape = of.op("Shape", {ids});
    const ValueId turned = of.op("Gather", {shape, of.graph.list({1, 0})});
    return of.op("Transpose", {of.op("Reshape", {ids, turned})}, {{"perm", std::vector<int64_t>{1, 0}}});
  });
  EXPECT_TRUE(has(text, "expected rows of the embedding by ids of tokens, found") ||
              has(text, "no input [batch, sequence] of token ids indexes a table of embeddings"))
      << text;
}

TEST(Decoder, RefusesAttentionsThatReadTheSameSum) {
  const std::string text = failure({}, "1.normed", [](Of &of, ValueId) { return of["0.normed"]; });
  EXPECT_EQ(text, "behind layer 0: no attention reads the sum of what stands before ()");
}

TEST(Decoder, RefusesALayerWithoutAFeedForwardPart) {
  const std::string text = failure({}, "0.stream", [](Of &of, ValueId) { return of["0.between"]; });
  EXPECT_EQ(text, "layer 0 has no feed-forward part ()");
}

TEST(Decoder, RefusesTwoFeedForwardParts) {
  const std::string text = failure({}, "0.mlp", [](Of &of, ValueId rows) {
    const ValueId up = of.linear("other up", of["0.mlp.normed"], 8, 6);
    const ValueId down = of.linear("other down", of.op("Mul", {of["0.mlp.silu"], up}), 6, 8);
    return of.op("Add", {rows, down});
  });
  EXPECT_EQ(text, "layer 0 has several feed-forward parts ()");
}

TEST(Decoder, RefusesExpertsThatAreLeftOut) {
  EXPECT_EQ(failure(TinyDecoder(allExperts())), "");
  const auto without = [](const std::string &expert) {
    return failure(allExperts(), expert, [](Of &, ValueId) { return noValue; });
  };
  EXPECT_EQ(without("0.expert2"), "layer 0: expert 2 is not there, or is weighed otherwise (export the model in a way "
                                  "that keeps all experts)");
  EXPECT_EQ(without("1.expert3"), "layer 1 has weights of 3 experts, and its router 4 (export the model in a way that "
                                  "keeps all experts)");
}

TEST(Decoder, RefusesExpertsOfOtherWeights) {
  const std::string text =
      failure(allExperts(), "0.expert1.weight", [](Of &of, ValueId weight) { return of.times(weight, 2); });
  EXPECT_EQ(text, "layer 0: expert 1 is not there, or is weighed otherwise (export the model in a way that keeps all "
                  "experts)");
}

TEST(Decoder, RefusesPartsThatReadOtherSumsOfAsManySummands) {
  const auto strange = [](const std::string &sum, const std::string &norm) {
    return [=](Of &of, ValueId) {
      return of.norm(norm, of.op("Add", {of[sum], of.linear("strange", of["embedded"], 8, 8)}), 8);
    };
  };
  EXPECT_EQ(failure({}, "1.normed", strange("0.between", "other")),
            "behind layer 1: no attention reads the sum of what stands before ()");
  EXPECT_EQ(failure({}, "0.mlp.normed", strange("embedded", "other")), "layer 0 has no feed-forward part ()");
}

} // namespace
