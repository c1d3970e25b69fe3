//===- MatchAttentionTest.cpp - attentions that are none we know ----------------===//
#include "TinyDecoder.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

using Of = TinyDecoder;

/// Why a decoder of grouped-query attention is refused whose layer 0 has this part changed.
std::string changed(const std::string &part, TinyDecoder::Change change) {
  return failure(TinyOptions(), part, std::move(change));
}

bool has(const std::string &text, const std::string &words) { return text.find(words) != std::string::npos; }

TinyOptions latent() {
  TinyOptions options;
  options.isLatent = options.hasQueryLatent = true;
  return options;
}

TEST(MatchAttention, RefusesValuesThatNoSoftmaxWeighs) {
  const std::string text = changed("0.weights", [](Of &of, ValueId weights) { return of.op("Exp", {weights}); });
  EXPECT_TRUE(has(text, "expected values that a softmax weighs, found")) << text;
  const std::string twice = changed("0.weighted", [](Of &of, ValueId rows) { return of.times(rows, 2); });
  EXPECT_TRUE(has(twice, "expected values that a softmax weighs, found")) << twice;
}

TEST(MatchAttention, RefusesASoftmaxOverRows) {
  const std::string text =
      changed("0.weights", [](Of &of, ValueId) { return of.op("Softmax", {of["0.masked"]}, {{"axis", 2}}); });
  EXPECT_TRUE(has(text, "expected a softmax over keys, found")) << text;
}

TEST(MatchAttention, RefusesAMaskWithoutScores) {
  const std::string text =
      changed("0.masked", [](Of &of, ValueId) { return of.op("Add", {of["0.mask"], of["0.mask"]}); });
  EXPECT_TRUE(has(text, "expected products of queries and keys, and a mask, found") ||
              has(text, "expected a softmax over keys, found"))
      << text;
  const std::string bounded = changed("0.scores", [](Of &of, ValueId scores) { return of.op("Tanh", {scores}); });
  EXPECT_TRUE(has(bounded, "expected products of queries and keys, and a mask, found")) << bounded;
}

TEST(MatchAttention, RefusesBoundsThatAreNotEachOthersNegative) {
  const auto clipped = [](double least, double most) {
    TinyDecoder tiny;
    for (std::string part : {"0.query", "0.key", "0.value", "1.query", "1.key", "1.value"})
      tiny.changes[part] = [=](Of &of, ValueId rows) {
        return of.op("Clip", {rows, of.graph.number(least), of.graph.number(most)});
      };
    return tiny;
  };
  EXPECT_EQ(Imported(clipped(-2, 2)).attention().clip, 2);
  const std::string text = failure(clipped(-1, 2));
  EXPECT_TRUE(has(text, "expected rows between a bound and its negative, found")) << text;
}

TEST(MatchAttention, RefusesKeysOfHeadsThatTakeTurns) {
  const std::string text = changed(
      "0.keys.shared", [](Of &of, ValueId) { return of.op("Tile", {of["0.keys"], of.graph.list({1, 2, 1, 1})}); });
  EXPECT_TRUE(has(text, "expected keys and values of heads that follow each other, found")) << text;
}

TEST(MatchAttention, RefusesQueriesAndKeysOfOtherAngles) {
  const std::string text =
      changed("0.key.turned", [](Of &of, ValueId) { return of.turned(of["0.key.heads"], 4, 500); });
  EXPECT_TRUE(has(text, "expected queries and keys that are turned by the same angles, found")) << text;
  const std::string bare = changed("0.key.turned", [](Of &of, ValueId) { return of["0.key.heads"]; });
  EXPECT_TRUE(has(bare, "expected queries and keys that are turned by the same angles, found")) << bare;
}

TEST(MatchAttention, RefusesValuesOfOtherRows) {
  const std::string text = changed("0.value", [](Of &of, ValueId) { return of.linear("wv", of["embedded"], 8, 8); });
  EXPECT_TRUE(has(text, "expected queries, keys and values of the same rows, found")) << text;
}

/// The first or the last half of each head turned, the other as it is.
TinyDecoder::Change halfTurned(bool isFirst, double factor = 1) {
  return [=](Of &of, ValueId rows) {
    const bool isQuery = rows == of["0.query.turned"];
    const ValueId heads = of[isQuery ? "0.query.heads" : "0.key.heads"];
    const ValueId first = of.cut(heads, -1, 0, 4), second = of.cut(heads, -1, 4, 8);
    return isFirst ? of.op("Concat", {of.turned(first, 4, 10000), of.times(second, factor)}, {{"axis", -1}})
                   : of.op("Concat", {of.times(first, factor), of.turned(second, 4, 10000)}, {{"axis", -1}});
  };
}

TEST(MatchAttention, RefusesPartsThatAreTurnedFromElsewhere) {
  TinyOptions options;
  options.layers = 1;
  options.width = 8;
  TinyDecoder tiny(options);
  tiny.changes = {{"0.query.turned", halfTurned(true)}, {"0.key.turned", halfTurned(true)}};
  EXPECT_EQ(Imported(tiny).model.spec.ropes.at("rope").dims, 4);
  tiny.changes["0.key.turned"] = halfTurned(false);
  EXPECT_TRUE(has(failure(tiny), "expected queries and keys that are turned from the same element on, found"))
      << failure(tiny);
  tiny.changes["0.key.turned"] = [](Of &of, ValueId) {
    const ValueId first = of.cut(of["0.key.heads"], -1, 0, 4); // twice
    return of.op("Concat", {of.turned(first, 4, 10000), first}, {{"axis", -1}});
  };
  EXPECT_TRUE(has(failure(tiny), "expected rows that go on behind their turned part, found")) << failure(tiny);
}

/// A factor of all scores is one of the softmax, which cosines and sines of a part of the rows are not.
TEST(MatchAttention, FindsTheFactorsOfBothPartsOfRows) {
  TinyOptions options;
  options.layers = 1;
  options.width = 8;
  TinyDecoder tiny(options);
  tiny.changes = {{"0.query.turned", halfTurned(true)}, {"0.key.turned", halfTurned(true)}};
  tiny.changes["0.scores"] = [](Of &of, ValueId scores) { return of.times(scores, 1.25); };
  const RopeSpec all = Imported(tiny).model.spec.ropes.at("rope");
  EXPECT_NEAR(all.attentionScale, 1.25, 1e-6);
  EXPECT_EQ(all.cosSinScale, 1);
  tiny.changes.erase("0.scores");
  tiny.changes["0.key.turned"] = halfTurned(true, 0.25);
  const RopeSpec rest = Imported(tiny).model.spec.ropes.at("rope");
  EXPECT_NEAR(rest.attentionScale, 0.25, 1e-6);
  EXPECT_NEAR(rest.cosSinScale, 2, 1e-6);
}

TEST(MatchAttention, RefusesTwoPartsOfAHeadThatAreTurned) {
  TinyOptions options;
  options.layers = 1;
  options.width = 8;
  const std::string text = failure(options, "0.query.turned", [](Of &of, ValueId) {
    const ValueId first = of.cut(of["0.query.heads"], -1, 0, 4), second = of.cut(of["0.query.heads"], -1, 4, 8);
    return of.op("Concat", {of.turned(first, 4, 10000), of.turned(second, 4, 10000)}, {{"axis", -1}});
  });
  EXPECT_TRUE(has(text, "expected two elements of each pair that is turned, found")) << text;
}

TEST(MatchMask, FindsAWindow) {
  TinyOptions options;
  options.window = 5;
  EXPECT_EQ(Imported(TinyDecoder(options)).attention().window, 5);
}

TEST(MatchMask, RefusesMasksOfMoreThanDistances) {
  const std::string text = changed("0.mask", [](Of &of, ValueId mask) {
    const ValueId far = of.op("Cast", {of.op("Sub", {of["0.rows"], of["0.columns"]})}, {{"to", 1}});
    return of.op("Add", {mask, far}); // a bias that falls with distance
  });
  EXPECT_TRUE(has(text, "expected a mask of how far a key is behind its row, found")) << text;
  const std::string prefix = changed("0.seen", [](Of &of, ValueId seen) { // the first keys are seen by all
    return of.op("Or", {seen, of.op("Less", {of["0.columns"], of.graph.number(2, ElementType::I64)})});
  });
  EXPECT_TRUE(has(prefix, "expected a mask of how far a key is behind its row, found")) << prefix;
}

TEST(MatchMask, RefusesMasksThatAddLittle) {
  const std::string text = changed("0.mask", [](Of &of, ValueId) {
    return of.op("Where", {of["0.seen"], of.graph.number(0), of.graph.number(-1)});
  });
  EXPECT_TRUE(has(text, "expected a mask of 0 and very negative numbers, found")) << text;
}

TEST(MatchMask, RefusesRowsThatSeeWhatFollows) {
  const std::string text = changed("0.masked", [](Of &of, ValueId) { return of["0.scores"]; });
  EXPECT_TRUE(has(text, "expected a causal mask, found")) << text;
  const std::string next = changed("0.seen", [](Of &of, ValueId) {
    const ValueId after = of.op("Add", {of["0.rows"], of.graph.number(1, ElementType::I64)});
    return of.op("LessOrEqual", {of["0.columns"], after});
  });
  EXPECT_TRUE(has(next, "expected a causal mask, found")) << next;
}

TEST(MatchMask, RefusesRowsThatDoNotSeeThemselves) {
  const std::string text =
      changed("0.seen", [](Of &of, ValueId) { return of.op("Less", {of["0.columns"], of["0.rows"]}); });
  EXPECT_TRUE(has(text, "expected a causal mask, or one with a window, found")) << text;
  const std::string hole = changed("0.seen", [](Of &of, ValueId seen) { // all keys but one
    const ValueId far = of.op("Sub", {of["0.rows"], of.graph.number(3, ElementType::I64)});
    const ValueId before = of.op("Less", {of["0.columns"], far}), behind = of.op("Greater", {of["0.columns"], far});
    return of.op("And", {seen, of.op("Or", {before, behind})});
  });
  EXPECT_TRUE(has(hole, "expected a causal mask, or one with a window, found")) << hole;
}

TEST(MatchLatent, RefusesAWindow) {
  TinyOptions options = latent();
  options.window = 3;
  const std::string text = failure(TinyDecoder(options));
  EXPECT_TRUE(has(text, "expected queries and keys with equal parts that are turned, and others, found")) << text;
}

TEST(MatchLatent, RefusesHeadsOfOtherOrder) {
  const std::string text = failure(latent(), "0.value.heads", [](Of &of, ValueId) {
    const ValueId rows = of.linear("wv", of["0.latent.normed"], 6, 12);
    return of.op("Transpose", {of.reshaped(rows, {0, 0, 4, 3})}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  });
  EXPECT_TRUE(has(text, "expected the parts of a head one behind the other in one matrix, found")) << text;
}

TEST(MatchLatent, RefusesATurnedKeyOfAnotherMatrix) {
  const std::string text = failure(latent(), "0.key.rope", [](Of &of, ValueId) {
    return of.unsqueezed(of.linear("wkr", of["0.normed"], 8, 4), {1});
  });
  EXPECT_TRUE(has(text, "expected the latent and the turned key as rows of one matrix, found")) << text;
}

TEST(MatchLatent, RefusesLatentsOfQueriesOfOtherRows) {
  const std::string eps = failure(latent(), "0.query.norm.eps", [](Of &of, ValueId) { return of.graph.number(1e-3); });
  EXPECT_TRUE(has(eps, "expected latents of queries and of keys of the same rows, found")) << eps;
  const std::string rows =
      failure(latent(), "0.query.latent", [](Of &of, ValueId) { return of.linear("wqa", of["embedded"], 8, 5); });
  EXPECT_TRUE(has(rows, "expected latents of queries and of keys of the same rows, found")) << rows;
}

} // namespace
