//===- PlacementTest.cpp - Replicas against test/Planner/eplb_public.json -===//
#include "k2c/Planner/Placement.h"
#include "k2c/Formulas/Query.h"

#include <gtest/gtest.h>

using namespace k2c;
using nlohmann::json;

namespace {

Expected<nlohmann::ordered_json> eplb(const json &inputs) {
  Expected<JsonDocument> document = parseJson(inputs.dump(), "inputs");
  EXPECT_TRUE(document);
  return answerQuery("eplb", *document);
}

std::string errorOf(const json &inputs) {
  Expected<nlohmann::ordered_json> answer = eplb(inputs);
  return answer ? "no error" : answer.error().text();
}

json inputs() {
  return {{"weight", {{4, 3, 2, 1}}}, {"num_replicas", 8}, {"num_groups", 2}, {"num_nodes", 2}, {"num_gpus", 4}};
}

json with(const std::string &key, const json &value) {
  json changed = inputs();
  changed[key] = value;
  return changed;
}

} // namespace

TEST(Placement, EveryPublishedCase) {
  Expected<JsonDocument> golden = readJsonFile(std::string(K2C_SOURCE_DIR) + "/test/Planner/eplb_public.json");
  ASSERT_TRUE(golden) << golden.error().text();
  for (const json &item : golden->root()["cases"]) {
    Expected<nlohmann::ordered_json> answer = eplb(item["inputs"]);
    ASSERT_TRUE(answer) << item["id"] << answer.error().text();
    for (const char *output : {"logcnt", "phy2log", "log2phy"})
      EXPECT_EQ(json((*answer)[output]), item["outputs"][output]) << item["id"] << ": " << output;
  }
}

TEST(Placement, BalancednessOfThePublishedCases) {
  Expected<JsonDocument> golden = readJsonFile(std::string(K2C_SOURCE_DIR) + "/test/Planner/eplb_public.json");
  ASSERT_TRUE(golden);
  for (const json &item : golden->root()["cases"]) {
    const json &in = item["inputs"];
    ReplicaLayout layout = {in["num_replicas"], in["num_groups"], in["num_nodes"], in["num_gpus"]};
    for (size_t layer = 0; layer < in["weight"].size(); ++layer) {
      ExpertLoad load = in["weight"][layer].get<ExpertLoad>();
      ReplicaPlacement placement = rebalanceExperts(load, layout);
      EXPECT_NEAR(balancedness(gpuLoads(load, placement, layout.gpus)),
                  item["balancedness_mean_over_max"][layer]["gpu"].get<double>(), 1e-6)
          << item["id"];
    }
  }
}

TEST(Placement, WithoutLoadReplicasGoToTheFirstExpert) {
  EXPECT_EQ((*eplb(with("weight", {{0, 0, 0, 0}})))["logcnt"].dump(), "[[3,1,3,1]]");
}

TEST(Placement, LayoutsThatDoNotDivideAreRefused) {
  EXPECT_EQ(errorOf(with("num_replicas", 3)),
            "inputs:1:44: 'num_replicas' 3 is less than the experts 4; give a slot to each expert");
  EXPECT_EQ(errorOf(with("num_replicas", 6)),
            "inputs:1:44: 'num_replicas' 6 cannot be divided by the GPUs 4; give each GPU equally many slots");
  EXPECT_EQ(errorOf(with("num_groups", 6)),
            "inputs:1:15: 'num_groups' 6 does not divide the experts 4; give a divisor of the experts");
}

TEST(Placement, WeightsThatAreNoTableAreRefused) {
  EXPECT_EQ(errorOf(with("weight", {{1, 2, 3, 4}, {1, 2, 3}})),
            "inputs:1:61: 'weight' layer 1 has 3 experts, layer 0 has 4; give one load for each expert");
  EXPECT_NE(errorOf(with("weight", {{1, 2, 3, -4}})).find("'weight' layer 0, expert 3 must be 0 to 1e+30, got -4"),
            std::string::npos);
  EXPECT_NE(errorOf(with("weight", json::array())).find("must be a list of layers"), std::string::npos);
  EXPECT_NE(errorOf(with("weight", {1, 2, 3, 4})).find("layer 0 must be a list"), std::string::npos);
}

TEST(Placement, AnAnswerTooLargeIsRefused) {
  json wide = with("weight", json::array({json::array()}));
  for (int expert = 0; expert < 4096; ++expert)
    wide["weight"][0].push_back(expert == 0 ? 1 : 0);
  wide["num_replicas"] = 65536;
  EXPECT_NE(errorOf(wide).find("log2phy"), std::string::npos);
}
