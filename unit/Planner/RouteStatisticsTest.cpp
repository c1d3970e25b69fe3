//===- RouteStatisticsTest.cpp - Files of run --expert-stats ------------------===//
#include "k2c/Planner/RouteStatistics.h"
#include "base/ExpertPlacement.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

/// A document with this layer "3".
std::string withLayer(const std::string &layer) {
  return R"({"format":1,"model":"tiny","experts":8,"ranks":2,"compute":"bf16","layers":{"3":)" + layer + "}}";
}

std::string withEntry(const std::string &entry) { return withLayer("{\"prefill\":[" + entry + "],\"decode\":[]}"); }

/// What is refused, without the file in front and the remedy behind.
std::string refusal(const std::string &text) {
  Expected<RouteStatistics> read = parseStatistics(text, "s.json");
  if (read)
    return "";
  const std::string said = read.error().text(), remedy = "; write it with DIR/run COMMAND --expert-stats FILE";
  EXPECT_EQ(said.rfind("s.json: ", 0), 0u) << said;
  const size_t end = said.find(remedy);
  EXPECT_NE(end, said.npos) << said;
  return said.substr(8, end - 8);
}

} // namespace

TEST(RouteStatistics, AreReadAsTheyAreWritten) {
  Expected<RouteStatistics> read =
      parseStatistics(withLayer(R"({"prefill":[{"source":1,"experts":[0,7],"tokens":5},{"source":1,"experts":[],)"
                                R"("tokens":1}],"decode":[{"source":0,"experts":[3],"tokens":2}]})"),
                      "s.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->model, "tiny");
  EXPECT_EQ(read->experts, 8);
  EXPECT_EQ(read->ranks, 2);
  EXPECT_EQ(read->compute, "bf16");
  ASSERT_EQ(read->layers.size(), 1u);
  ASSERT_EQ(read->layers.at(3).prefill.size(), 2u);
  EXPECT_EQ(read->layers.at(3).prefill[0].source, 1);
  EXPECT_EQ(read->layers.at(3).prefill[0].experts, (std::vector<int32_t>{0, 7}));
  EXPECT_EQ(read->layers.at(3).prefill[0].tokens, 5);
  EXPECT_TRUE(read->layers.at(3).prefill[1].experts.empty());
  EXPECT_EQ(read->layers.at(3).decode[0].tokens, 2);
}

TEST(RouteStatistics, NumbersHaveRanges) {
  EXPECT_EQ(refusal(withEntry(R"({"source":2,"experts":[0],"tokens":1})")),
            "layers.3.prefill[0].source: is 2, must be within 0..1");
  EXPECT_EQ(refusal(withEntry(R"({"source":0,"experts":[8],"tokens":1})")),
            "layers.3.prefill[0].experts[0]: is 8, must be within 0..7");
  EXPECT_EQ(refusal(withEntry(R"({"source":0,"experts":[1,1],"tokens":1})")),
            "layers.3.prefill[0].experts: has 1 behind 1, must be ascending");
  EXPECT_EQ(refusal(withEntry(R"({"source":0,"experts":[4,1],"tokens":1})")),
            "layers.3.prefill[0].experts: has 1 behind 4, must be ascending");
  EXPECT_EQ(refusal(withEntry(R"({"source":0,"experts":[1],"tokens":0})")),
            "layers.3.prefill[0].tokens: is 0, must be within 1..68719476736");
  const std::string many = R"({"source":0,"experts":[1],"tokens":68719476736})";
  EXPECT_EQ(refusal(withEntry(many)), "");
  EXPECT_EQ(refusal(withEntry(many + "," + many)), "layers.3.prefill: has more than 68719476736 tokens");
  EXPECT_EQ(refusal(withLayer(R"({"prefill":[]})")), "layers.3.decode: is missing");
  EXPECT_EQ(refusal("{}"), "format: is missing");
}

TEST(RouteStatistics, OutputRowsAreOfAPhase) {
  const auto with = [](const std::string &outputs) {
    return R"({"format":1,"model":"tiny","experts":8,"ranks":2,"outputs":)" + outputs + R"(,"layers":{}})";
  };
  Expected<RouteStatistics> read = parseStatistics(with(R"({"prefill":3,"decode":68719476736})"), "s.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->outputs->prefill, 3);
  EXPECT_EQ(read->outputs->decode, 68719476736);
  EXPECT_FALSE(parseStatistics(withEntry(""), "s.json")->outputs) << "not stated";
  EXPECT_EQ(refusal(with(R"({"prefill":-1,"decode":0})")), "outputs.prefill: is -1, must be within 0..68719476736");
  EXPECT_EQ(refusal(with(R"({"prefill":0,"decode":68719476737})")),
            "outputs.decode: is 68719476737, must be within 0..68719476736");
  EXPECT_EQ(refusal(with(R"({"prefill":0})")), "outputs.decode: is missing");
  EXPECT_EQ(refusal(with("3")), "outputs: is 3, must be an object");
}

TEST(RouteStatistics, LayersAreNumbers) {
  const auto named = [](const std::string &key) {
    return R"({"format":1,"model":"tiny","experts":8,"ranks":2,"layers":{")" + key +
           R"(":{"prefill":[],"decode":[]}}})";
  };
  EXPECT_EQ(refusal(named("0")), "");
  for (const char *key : {"03", "-1", "x", "65536", ""})
    EXPECT_NE(refusal(named(key)).find("is no number of a layer, 0 to 65535"), std::string::npos) << key;
}

TEST(RouteStatistics, ATypeIsOneThatProgramsHave) {
  EXPECT_EQ(refusal(R"({"format":1,"model":"tiny","experts":8,"ranks":2,"compute":"fp8","layers":{}})"),
            "compute: is \"fp8\", must be f32 or bf16");
}

TEST(RouteStatistics, AreOfOneProgram) {
  Expected<RouteStatistics> read = parseStatistics(withEntry(""), "s.json");
  ASSERT_TRUE(read) << read.error().text();
  const PlacedModel model{"tiny", {3}, 8, 2, 4};
  const auto refused = [&](PlacedModel other) {
    Status right = checkStatistics(*read, "s.json", other, other.ranks, /*topK=*/0);
    const std::string remedy = "; write it with DIR/run COMMAND --expert-stats FILE of the program that is planned";
    const std::string said = right ? "" : right.error().text();
    EXPECT_TRUE(right || said.find(remedy) == said.size() - remedy.size()) << said;
    return said.substr(0, said.find(remedy));
  };
  PlacedModel other = model;
  EXPECT_EQ(refused(model), "");
  other.name = "large";
  EXPECT_EQ(refused(other), "s.json: model: is tiny, the statistics are needed of large");
  other = model;
  other.experts = 9;
  EXPECT_EQ(refused(other), "s.json: experts: is 8, the program has 9");
  other = model;
  other.ranks = 4;
  EXPECT_EQ(refused(other), "s.json: ranks: is 2, the program has 4");
  other = model;
  other.layers = {3, 4};
  EXPECT_EQ(refused(other), "s.json: layers: has no layer 4, which has experts");
  other.layers = {};
  EXPECT_EQ(refused(other), "s.json: layers: has 1 entries, the model has 0 layers of experts");
}

TEST(RouteStatistics, HaveTheExpertsThatATokenChooses) {
  Expected<RouteStatistics> read =
      parseStatistics(R"({"format":1,"model":"tiny","experts":8,"ranks":2,"layers":{"3":{"prefill":[],"decode":[)"
                      R"({"source":0,"experts":[],"tokens":1},{"source":1,"experts":[0,2,5],"tokens":4}]}}})",
                      "s.json");
  ASSERT_TRUE(read) << read.error().text();
  const PlacedModel model{"tiny", {3}, 8, 2, 4};
  EXPECT_TRUE(checkStatistics(*read, "s.json", model, 2, /*topK=*/0)) << "nobody knows";
  EXPECT_TRUE(checkStatistics(*read, "s.json", model, 2, /*topK=*/3));
  EXPECT_EQ(checkStatistics(*read, "s.json", model, 2, /*topK=*/2).error().text(),
            "s.json: layers.3.decode[1].experts: has 3, and a token of the program chooses 2; write it with DIR/run "
            "COMMAND --expert-stats FILE of the program that is planned");
}
