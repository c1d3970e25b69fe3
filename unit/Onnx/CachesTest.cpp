//===- CachesTest.cpp - what graphs keep of past tokens --------------------------===//
#include "TinyDecoder.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

using Of = TinyDecoder;

bool has(const std::string &text, const std::string &words) { return text.find(words) != std::string::npos; }

TEST(Caches, MayBeLeftOut) {
  TinyOptions options;
  options.hasPast = false;
  EXPECT_EQ(failure(TinyDecoder(options)), "");
}

TEST(Caches, RefusesOutputsAtEachOthersPlaces) {
  TinyDecoder tiny;
  Graph graph = tiny.build();
  ASSERT_EQ(graph.outputs.size(), 5u);
  std::swap(graph.outputs[0], graph.outputs[1]);
  const Expected<ImportedGraph> model = importGraph(graph);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message, "output 'present.0.value' goes on with input 'past.0.value', which does not stand "
                                   "at its place");
  EXPECT_EQ(model.error().remedy, "export the model with caches in one order");
}

TEST(Caches, RefusesKeysThatAreKeptOtherwise) {
  TinyDecoder tiny;
  tiny.changes["1.key.kept"] = [](Of &of, ValueId kept) { return of.times(kept, 2); };
  const std::string scaled = failure(tiny);
  EXPECT_TRUE(has(scaled, "output 'present.1.key' is neither logits nor a cache that goes on (export the model with "
                          "logits and caches alone)"))
      << scaled;
  const std::string read = failure({}, "1.key.past", [](Of &of, ValueId past) { return of.times(past, 2); });
  EXPECT_TRUE(has(read, "expected keys and values of past tokens of layer 1 that are as those of the step, found"))
      << read;
  const std::string left = failure({}, "1.value.kept", [](Of &, ValueId) { return noValue; });
  EXPECT_TRUE(has(left, "expected keys and values of past tokens of layer 1 that are as those of the step, found"))
      << left;
}

TEST(Caches, RefusesACacheThatNothingReads) {
  const std::string text = failure({}, "final", [](Of &of, ValueId value) {
    const ValueId past = of.graph.input("more", ElementType::F32, {"batch", 2, "past", 4});
    const ValueId kept = of.op("Concat", {past, of["1.value.heads"]}, {{"axis", 2}});
    of.graph.output(kept, "more.kept", {"batch", 2, "total", 4});
    return value;
  });
  EXPECT_EQ(text, "input 'more' is kept and read by no attention (export the model without it)");
}

TEST(Caches, RefusesAnInputThatNoOutputGoesOnWith) {
  const std::string text = failure({}, "final", [](Of &of, ValueId value) {
    of.graph.input("more", ElementType::F32, {"batch", 2, "past", 4});
    return value;
  });
  EXPECT_EQ(text, "5 inputs are caches, and 4 outputs go on with them (export the model with all of its caches as "
                  "outputs)");
}

} // namespace
