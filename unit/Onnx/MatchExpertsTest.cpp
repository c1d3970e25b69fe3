//===- MatchExpertsTest.cpp - MLPs and experts that are none we know ------------===//
#include "TinyDecoder.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

using Of = TinyDecoder;

bool has(const std::string &text, const std::string &words) { return text.find(words) != std::string::npos; }

TinyOptions experts() {
  TinyOptions options;
  options.layers = 1;
  options.experts = 4;
  return options;
}

TinyOptions groups() {
  TinyOptions options = experts();
  options.experts = 6;
  options.groups = 3;
  options.topGroups = 2;
  options.isSigmoid = options.hasChoiceBias = true;
  return options;
}

TEST(MatchMlp, RefusesGatesThatAreNoSilu) {
  const std::string text = failure({}, "0.mlp.silu", [](Of &of, ValueId) { return of.op("Relu", {of["0.mlp.gate"]}); });
  EXPECT_TRUE(has(text, "expected silu(gate) * up, found")) << text;
}

TEST(MatchMlp, RefusesAGateAndRowsOfOtherInputs) {
  const std::string text =
      failure({}, "0.mlp.up", [](Of &of, ValueId) { return of.linear("other", of["0.between"], 8, 6); });
  EXPECT_TRUE(has(text, "expected a gated MLP of one input, found")) << text;
}

TEST(MatchExperts, FindsThemWithTheirNumbers) {
  const Imported found((TinyDecoder(experts())));
  const std::vector<double> all = sampled("0.wdowns", 4 * 6 * 8);
  const std::vector<double> third = found.tensor("model.layers.0.mlp.experts.2.down_proj.weight");
  ASSERT_EQ(third.size(), 48u);
  for (size_t column = 0; column < 8; column++)
    for (size_t row = 0; row < 6; row++)
      EXPECT_EQ(third[column * 6 + row], all[2 * 48 + row * 8 + column]);
  EXPECT_EQ(found.tensor("model.layers.0.mlp.gate.weight"), transposed("0.wrouter", 8, 4));
}

/// One expert a token: no sum over them is left of the graph, and no weight where weights sum to 1.
TEST(MatchExperts, FindsOneOfEachToken) {
  for (bool normalizes : {true, false})
    for (bool isSigmoid : {true, false})
      for (bool runsAll : {true, false}) {
        TinyOptions options = experts();
        options.topK = 1;
        options.normalizes = normalizes;
        options.isSigmoid = isSigmoid;
        options.runsAll = runsAll;
        const Imported found((TinyDecoder(options)));
        const MoeSpec &moe = found.model.spec.moe.value();
        EXPECT_EQ(moe.topK, 1);
        EXPECT_EQ(moe.experts, 4);
        EXPECT_EQ(moe.normalize, normalizes);
        EXPECT_EQ(moe.scoring, isSigmoid ? Scoring::Sigmoid : Scoring::Softmax);
      }
}

TEST(MatchExperts, FindsOneOfEachTokenWithAFactor) {
  TinyOptions options = experts();
  options.topK = 1;
  options.normalizes = false;
  options.runsAll = true;
  TinyDecoder tiny(options);
  tiny.changes["0.expert.weights"] = [](Of &of, ValueId weights) { return of.times(weights, 16); };
  EXPECT_EQ(Imported(tiny).model.spec.moe.value().scale, 16);
}

/// The weight is 1, and only the choice has scores.
TEST(MatchExperts, FindsOneOfEachTokenThatABiasChooses) {
  TinyOptions options = experts();
  options.topK = 1;
  options.isSigmoid = options.hasChoiceBias = true;
  const Imported found((TinyDecoder(options)));
  EXPECT_EQ(found.model.spec.moe.value().scoring, Scoring::Sigmoid);
  EXPECT_TRUE(found.model.spec.moe.value().correctionBias);
  const std::string text =
      failure(options, "0.expert.scores", [](Of &of, ValueId) { return of["0.router"]; }); // logits and a bias
  EXPECT_TRUE(has(text, "expected a sum over the experts of a token, found")) << text;
}

TEST(MatchExperts, RefusesAnythingButASumOfThem) {
  const std::string text = failure(experts(), "0.experts", [](Of &of, ValueId rows) { return of.op("Tanh", {rows}); });
  EXPECT_TRUE(has(text, "expected a sum over the experts of a token, found")) << text;
}

TEST(MatchExperts, RefusesAnExpertThatWasNotChosen) {
  TinyDecoder tiny(experts());
  for (std::string name : {"0.wgates.gathered", "0.wups.gathered", "0.wdowns.gathered"})
    tiny.changes[name] = [name](Of &of, ValueId) { return of.cut(of[name.substr(0, name.size() - 9)], 0, 0, 1); };
  EXPECT_TRUE(has(failure(tiny), "expected an expert that was chosen, found")) << failure(tiny);
}

TEST(MatchExperts, RefusesARouterOfOtherRows) {
  const std::string text = failure(experts(), "0.router.reads", [](Of &of, ValueId) { return of["0.between"]; });
  EXPECT_TRUE(has(text, "expected a router of what its experts read, found")) << text;
}

TEST(MatchExperts, RefusesWeightsOverOtherSums) {
  const std::string text =
      failure(experts(), "0.weights.sum", [](Of &of, ValueId sum) { return of.op("Mul", {sum, sum}); });
  EXPECT_TRUE(has(text, "expected the sum of the weights of the experts chosen, found") ||
              has(text, "expected scores of experts: softmax or sigmoid, found"))
      << text;
  const std::string twice =
      failure(experts(), "0.weights.sum", [](Of &of, ValueId sum) { return of.op("Add", {sum, sum}); });
  EXPECT_EQ(twice, ""); // weights times one half
  const std::string all = failure(experts(), "0.weights.sum", [](Of &of, ValueId) {
    return of.op("ReduceSum", {of["0.router"], of.graph.list({-1})});
  });
  EXPECT_TRUE(has(all, "expected the sum of the weights of the experts chosen, found")) << all;
}

TEST(MatchExperts, RefusesRouterLogitsWithABias) {
  const std::string text = failure(experts(), "0.router", [](Of &of, ValueId logits) {
    return of.op("Add", {logits, of.weight("router bias", {4})});
  });
  EXPECT_TRUE(has(text, "expected router logits without a bias, found")) << text;
}

TEST(MatchExperts, RefusesASoftmaxOverTokens) {
  TinyOptions options = experts();
  options.normalizes = false;
  const std::string text = failure(options, "0.expert.scores",
                                   [](Of &of, ValueId) { return of.op("Softmax", {of["0.router"]}, {{"axis", 1}}); });
  EXPECT_TRUE(has(text, "expected a softmax over experts, found")) << text;
}

TEST(MatchExperts, RefusesOtherScores) {
  const std::string text =
      failure(experts(), "0.expert.scores", [](Of &of, ValueId) { return of.op("Exp", {of["0.router"]}); });
  EXPECT_TRUE(has(text, "expected scores of experts: softmax or sigmoid, found")) << text;
}

TEST(MatchRouter, RefusesTheWorstExperts) {
  const std::string text = failure(experts(), "0.smallest", [](Of &, ValueId value) { return value; });
  EXPECT_TRUE(has(text, "expected the experts of the largest scores, found")) << text;
}

TEST(MatchRouter, RefusesAChoiceByOtherScores) {
  const std::string text =
      failure(experts(), "0.choice", [](Of &of, ValueId) { return of.linear("other", of["0.mlp.normed"], 8, 4); });
  EXPECT_TRUE(has(text, "expected a choice by the scores of experts, found")) << text;
}

TEST(MatchRouter, RefusesExpertsOutsideOfTheBestGroups) {
  EXPECT_EQ(failure(TinyDecoder(groups())), "");
  const std::string text = failure(groups(), "0.outside", [](Of &of, ValueId) { return of.graph.number(-1); });
  EXPECT_TRUE(has(text, "expected a choice that experts outside of the best groups cannot be, found")) << text;
}

TEST(MatchRouter, RefusesZeroOutsideOfTheBestGroupsWhereABiasMayBeBelow) {
  const std::string text = failure(groups(), "0.outside", [](Of &of, ValueId) { return of.graph.number(0); });
  EXPECT_TRUE(has(text, "expected biases of at least 0, where 0 stands for experts outside of the best groups, found"))
      << text;
}

// Older releases of transformers mask with 0.
TEST(MatchRouter, TakesZeroOutsideOfTheBestGroupsWhereNoBiasIsBelow) {
  TinyDecoder tiny(groups());
  tiny.changes["0.outside"] = [](Of &of, ValueId) { return of.graph.number(0); };
  tiny.changes["0.router.bias"] = [](Of &of, ValueId) {
    return of.graph.constant("bias", {6}, {0, 0.5, 0.25, 1, 0, 2});
  };
  EXPECT_EQ(failure(tiny), "");
}

TEST(MatchRouter, FindsOneGroupOfEachToken) {
  TinyOptions options = groups();
  options.topGroups = 1;
  const Imported found((TinyDecoder(options)));
  EXPECT_EQ(found.model.spec.moe.value().groups, 3);
  EXPECT_EQ(found.model.spec.moe.value().topGroups, 1);
  const std::string text = failure(options, "0.groups", [](Of &of, ValueId) {
    return of.op("ReduceMean", {of.reshaped(of["0.choice"], {0, 0, 3, 2}), of.graph.list({-1})}, {{"keepdims", 0}});
  });
  EXPECT_TRUE(has(text, "expected experts of the best groups, found")) << text;
}

TEST(MatchRouter, RefusesScoresThatOtherConditionsMask) {
  TinyOptions options = groups();
  options.normalizes = false;
  const std::string text = failure(options, "0.expert.weights", [](Of &of, ValueId) {
    const ValueId scores = of["0.expert.scores"], isHigh = of.op("Greater", {scores, of.graph.number(0.5)});
    const ValueId masked = of.op("Where", {isHigh, scores, of.graph.number(0)});
    return of.op("GatherElements", {masked, of["0.indices"]}, {{"axis", -1}});
  });
  EXPECT_TRUE(has(text, "expected scores of the groups that experts are chosen from, found")) << text;
}

TEST(MatchRouter, RefusesGroupsByOtherScores) {
  const std::string text = failure(groups(), "0.groups", [](Of &of, ValueId) {
    return of.op("ReduceMean", {of.reshaped(of["0.choice"], {0, 0, 3, 2}), of.graph.list({-1})}, {{"keepdims", 0}});
  });
  EXPECT_TRUE(has(text, "expected experts of the best groups, found")) << text;
}

TEST(MatchExperts, RefusesSomeOfThoseChosen) {
  TinyOptions options = experts();
  options.topK = 3;
  TinyDecoder tiny(options);
  tiny.changes["0.indices"] = [](Of &of, ValueId indices) { return of.cut(indices, -1, 0, 2); };
  tiny.changes["0.expert.weights"] = [](Of &of, ValueId weights) { return of.cut(weights, -1, 0, 2); };
  EXPECT_TRUE(has(failure(tiny), "expected all experts that were chosen, found")) << failure(tiny);
}

TEST(MatchExperts, RefusesTheBestExpertForAllSlots) {
  TinyOptions options = experts();
  options.normalizes = false;
  TinyDecoder tiny(options);
  const TinyDecoder::Change best = [](Of &of, ValueId all) {
    return of.op("Expand", {of.cut(all, -1, 0, 1), of.graph.list({1, 1, 2})});
  };
  tiny.changes = {{"0.indices", best}, {"0.expert.weights", best}};
  EXPECT_NE(failure(tiny), "");
}

TEST(MatchExperts, RefusesThoseChosenWithoutWeights) {
  TinyDecoder tiny(experts());
  tiny.changes["0.experts"] = [](Of &of, ValueId) {
    return of.op("Squeeze", {of["0.wdowns.rows"], of.graph.list({3})});
  };
  EXPECT_TRUE(has(failure(tiny), "expected scores of experts: softmax or sigmoid, found")) << failure(tiny);
}

} // namespace
