//===- PlacementTest.cpp - What a bundle of several ranks says of them --------===//
#include "k2c/Planner/Planner.h"
#include "k2c/Target/Package.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace k2c;
using nlohmann::json;

namespace {

/// Seven experts in each of its layers, on two ranks.
class PlacementTest : public testing::Test {
protected:
  void SetUp() override {
    Expected<ModelSpec> loaded =
        loadModelSpec(std::string(K2C_SOURCE_DIR) + "/test/EndToEnd/oracle/odd_mixtral/config.json");
    ASSERT_TRUE(loaded);
    spec = *loaded;
    Expected<Topology> topology = loadTopology("cpu2x1");
    ASSERT_TRUE(topology);
    Limits limits = defaultLimits(spec);
    limits.maxSequences = 2;
    PlanOptions options;
    options.layout = compileLayout(spec, *topology);
    Expected<Plan> planned = planHost(spec, *topology, limits, options);
    ASSERT_TRUE(planned) << planned.error().text();
    plan = *planned;
    program.ranks = 2;
    program.layout = compiledText(plan.layout);
    program.weights = plan.memory.weights.value;
    bundle.nodes = 2;
    place(placedInOrder(placedModel(spec, plan.layout), /*hasCopies=*/true));
  }
  void place(const ExpertPlacement &placement) {
    bundle.placement = placement;
    bundle.placementText = placementText(placedModel(spec, plan.layout), placement);
  }
  /// All layers with experts in these slots.
  void place(int64_t slotsOfRank, const std::vector<int32_t> &experts) {
    bundle.placement.slotsOfRank = slotsOfRank;
    for (auto &[layer, placed] : bundle.placement.layers)
      placed = {experts, experts};
  }
  json manifest() { return json::parse(manifestText(spec, plan, program, bundle)); }

  ModelSpec spec;
  Plan plan;
  ProgramFacts program;
  BundleFacts bundle;
};

} // namespace

TEST_F(PlacementTest, ExpertsFillTheSlotsInOrderAndThenAgain) {
  const json placement = json::parse(bundle.placementText);
  EXPECT_EQ(placement.at("format"), 1);
  EXPECT_EQ(placement.at("model"), spec.name);
  EXPECT_EQ(placement.at("experts"), 7);
  EXPECT_EQ(placement.at("ranks"), 2);
  EXPECT_EQ(placement.at("layers").size(), spec.moeLayers().size());
  for (int64_t layer : spec.moeLayers())
    EXPECT_EQ(placement.at("layers").at(std::to_string(layer)).at("both"), json::parse("[[0,1,2,3],[4,5,6,0]]"));
}

TEST_F(PlacementTest, TheManifestSaysWhatEachRankHas) {
  place(4, {0, 1, 2, 3, 4, 5, 6, -1});
  const json said = manifest();
  EXPECT_EQ(said.at("topology").at("ranks"), 2);
  EXPECT_EQ(said.at("topology").at("nodes"), 2);
  EXPECT_EQ(said.at("layout"), "ep=2,dp=2,redundant=1");
  EXPECT_EQ(said.at("placement").at("file"), placementFile);
  EXPECT_EQ(said.at("placement").at("experts"), 7);
  EXPECT_EQ(said.at("placement").at("slots"), 8);
  EXPECT_EQ(said.at("placement").at("hash").get<std::string>().size(), 16u);
  EXPECT_EQ(said.at("memory").at("collectives"), plan.memory.collectives.value);
  const int64_t weights = plan.memory.weights.value;
  const json expected = json::array(
      {{{"rank", 0}, {"node", 0}, {"stage", 0}, {"slots", 4}, {"weights", weights}},
       {{"rank", 1}, {"node", 1}, {"stage", 0}, {"slots", 4}, {"weights", weights - plan.expertBytes.value}}});
  json ranks = said.at("ranks");
  for (json &rank : ranks) {
    EXPECT_EQ(rank.at("layers"), json::array({0, spec.layerCount()}));
    rank.erase("layers");
  }
  EXPECT_EQ(ranks, expected);
}

TEST_F(PlacementTest, TheManifestSaysWhatIsExchanged) {
  EXPECT_EQ(manifest().at("collectives"), json::array());
  program.collectives = {{0, "all_to_all_rows", "ep", 2, 272, 64}, {1, "all_to_all_rows", "ep", 2, 256, 0}};
  const json sites = manifest().at("collectives");
  ASSERT_EQ(sites.size(), 2u);
  EXPECT_EQ(sites[0], json::parse(R"({"site":0,"op":"all_to_all_rows","group":"ep","quota_rows":64,"row_bytes":272,
                                      "max_bytes":34816})"));
  EXPECT_EQ(sites[1].at("max_bytes"), 0) << "counted by the program";
}

TEST_F(PlacementTest, TheManifestSaysHowFarATokenGoes) {
  // One other node, of seven experts in one leaf: as many sums as choices, or as it has experts.
  place(4, {0, 1, 2, 3, 4, 5, 6, -1});
  program.collectives = {{0, "all_to_all_rows", "ep", 2, 272, 64}, {1, "all_to_all_rows", "ep", 2, 256, 0}};
  json said = manifest().at("dispersion");
  const int64_t layers = int64_t(spec.moeLayers().size()), sums = std::min<int64_t>(spec.moe->topK, 4);
  EXPECT_EQ(said.at("kind"), "none");
  EXPECT_EQ(said.at("nodes_per_token").at("max"), 2);
  EXPECT_EQ(said.at("inter_node_bytes_per_token").at("max"), layers * (272 + sums * 256));
}

TEST_F(PlacementTest, GroupsThatLieOnNodesBoundWhereATokenGoes) {
  spec.moe->experts = 16, spec.moe->topK = 8, spec.moe->groups = 4, spec.moe->topGroups = 2;
  program.ranks = 8, bundle.nodes = 4;
  std::vector<int32_t> inOrder(16);
  std::iota(inOrder.begin(), inOrder.end(), 0);
  place(2, inOrder);
  program.collectives = {{0, "all_to_all_rows", "rail", 4, 300, 64},
                         {1, "all_to_all_rows", "node", 2, 300, 256},
                         {2, "all_to_all_rows", "node", 2, 200, 0},
                         {3, "all_to_all_rows", "rail", 4, 200, 0}};
  json said = manifest().at("dispersion");
  EXPECT_EQ(said.at("kind"), "group-limited");
  EXPECT_EQ(said.at("nodes_per_token").at("max"), 2);
  EXPECT_EQ(said.at("inter_node_bytes_per_token").at("max"), int64_t(spec.moeLayers().size()) * 2 * (300 + 200));
  spec.moe->groups = spec.moe->topGroups = 1;
  said = manifest().at("dispersion");
  EXPECT_EQ(said.at("kind"), "none");
  EXPECT_EQ(said.at("inter_node_bytes_per_token").at("max"), int64_t(spec.moeLayers().size()) * 3 * (300 + 200));
  inOrder.resize(8 * 8, -1); // all on one of the nodes
  place(8, inOrder);
  said = manifest().at("dispersion");
  EXPECT_EQ(said.at("kind"), "placement");
  EXPECT_EQ(said.at("nodes_per_token").at("max"), 1);
}

TEST_F(PlacementTest, CopiesKeepATokenOnItsNode) {
  spec.moe->experts = 4, spec.moe->topK = 2;
  program.ranks = plan.layout.ep = plan.layout.dp = 4, bundle.nodes = 4;
  program.collectives = {{0, "all_to_all_rows", "ep", 4, 300, 64}, {1, "all_to_all_rows", "ep", 4, 200, 0}};
  place(4, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
  json said = manifest().at("dispersion");
  EXPECT_EQ(said.at("kind"), "placement");
  EXPECT_EQ(said.at("nodes_per_token").at("max"), 1);
  EXPECT_EQ(said.at("inter_node_bytes_per_token").at("max"), 0);
  // On each node but the last half of them: there a token may go to another for one choice, and to two for two.
  place(4, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, -1, -1, 2, 3, -1, -1});
  said = manifest().at("dispersion");
  EXPECT_EQ(said.at("nodes_per_token").at("max"), 2);
  EXPECT_EQ(said.at("inter_node_bytes_per_token").at("max"), int64_t(spec.moeLayers().size()) * (2 * 300 + 2 * 200));
}

TEST_F(PlacementTest, ABoundIsAPartOfTheNumbers) {
  const std::string free = manifest().at("numerics").at("id");
  EXPECT_FALSE(manifest().at("numerics").contains("expert_nodes"));
  program.bound = {1, 0};
  json said = manifest();
  const std::string hash = said.at("numerics").at("expert_nodes");
  EXPECT_EQ(hash, expertNodes(bundle.placement, &PlacedExperts::decode, 7, 2).hash());
  EXPECT_EQ(said.at("numerics").at("id"), free + "/m1-" + hash);
  EXPECT_EQ(said.at("numerics").at("route_limit"), 1);
  EXPECT_EQ(said.at("dispersion").at("kind"), "route-limit");
  EXPECT_EQ(said.at("dispersion").at("nodes_per_token").at("max"), 1);
  program.bound = {0, 0.25};
  said = manifest();
  EXPECT_EQ(said.at("numerics").at("id"), free + "/p0.25-" + hash);
  EXPECT_EQ(said.at("numerics").at("locality_penalty"), 0.25);
  EXPECT_EQ(said.at("dispersion").at("kind"), "penalty");
  EXPECT_EQ(said.at("dispersion").at("nodes_per_token").at("max"), 2) << "a penalty bounds nothing";
}

TEST_F(PlacementTest, NodesHaveTheExpertsOfTheirSlots) {
  place(4, {0, 1, 2, 3, 4, 5, 6, -1});
  const ExpertNodes nodes = expertNodes(bundle.placement, &PlacedExperts::decode, 7, 2);
  EXPECT_EQ(nodes.layerCount(), int64_t(spec.moeLayers().size()));
  for (int64_t expert = 0; expert < 7; ++expert) {
    EXPECT_EQ(nodes.has(0, expert, 0), expert < 4);
    EXPECT_EQ(nodes.has(0, expert, 1), expert >= 4);
  }
}

TEST_F(PlacementTest, OneRankHasNoPlacement) {
  program.ranks = 1;
  program.layout = oneRankLayout;
  plan.layout = ParallelLayout();
  plan.expertSlots = 7;
  bundle = BundleFacts();
  const json said = manifest();
  EXPECT_FALSE(said.contains("placement"));
  EXPECT_EQ(said.at("dispersion").at("nodes_per_token").at("max"), 1);
  EXPECT_EQ(said.at("layout"), "dp=1");
  EXPECT_EQ(said.at("ranks").size(), 1u);
  EXPECT_EQ(said.at("ranks")[0].at("weights"), program.weights);
}
