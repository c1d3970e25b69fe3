//===- AffinityTest.cpp - Experts chosen together on one node -------------===//
#include "k2c/Planner/Affinity.h"
#include "k2c/Formulas/Query.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace k2c;

namespace {

/// Tokens of one of `topics`; the experts of a topic lie `topics` apart, so that the plain order scatters them.
CoActivation scattered(int64_t experts, int64_t topics, int64_t topK, int64_t tokens) {
  std::mt19937 random(7);
  std::vector<std::vector<int32_t>> choices;
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t topic = random() % topics;
    std::vector<int32_t> choice;
    while (int64_t(choice.size()) < topK) {
      int32_t expert = int32_t(random() % (experts / topics) * topics + topic);
      if (std::find(choice.begin(), choice.end(), expert) == choice.end())
        choice.push_back(expert);
    }
    std::sort(choice.begin(), choice.end());
    choices.push_back(choice);
  }
  return coActivationOf(experts, choices, std::vector<double>(choices.size(), 1.0));
}

AffinityCapacity capacity(int64_t nodes, int64_t gpus, int64_t expertsPerGpu) {
  AffinityCapacity capacity;
  capacity.nodes = nodes;
  capacity.gpus = gpus;
  capacity.expertsPerGpu = expertsPerGpu;
  return capacity;
}

/// Fewest nodes over all placements, by trying them.
double fewestNodes(const CoActivation &co, const AffinityCapacity &capacity) {
  std::vector<int32_t> gpus = placeInOrder(co.experts, capacity);
  double best = 1e9;
  do
    best = std::min(best, nodesVisited(co, capacity, gpus).max);
  while (std::next_permutation(gpus.begin(), gpus.end()));
  return best;
}

std::string errorOf(const std::string &inputs) {
  Expected<JsonDocument> document = parseJson(inputs, "inputs");
  EXPECT_TRUE(document);
  Expected<nlohmann::ordered_json> answer = answerQuery("affinity_placement", *document);
  return answer ? "no error" : answer.error().text();
}

} // namespace

TEST(Affinity, TopicsComeTogether) {
  CoActivation co = scattered(64, 4, 6, 4000);
  AffinityCapacity at = capacity(4, 8, 8);
  EXPECT_GT(nodesVisited(co, at, placeInOrder(64, at)).max, 3);
  EXPECT_EQ(nodesVisited(co, at, placeByAffinity(co, at)).max, 1);
}

TEST(Affinity, PairsAloneBringTopicsTogetherToo) {
  CoActivation co = scattered(64, 4, 6, 4000);
  AffinityCapacity at = capacity(4, 8, 8);
  std::vector<int32_t> order = placeInOrder(64, at);
  double exact = nodesVisited(co, at, order).max;
  co.choices.clear();
  NodesVisited bounds = nodesVisited(co, at, order);
  EXPECT_LE(bounds.min, exact);
  EXPECT_GE(bounds.max, exact);
  EXPECT_EQ(nodesVisited(co, at, placeByAffinity(co, at)).max, 1);
}

TEST(Affinity, AsGoodAsTryingAllPlacements) {
  for (int64_t tokens : {5, 9, 14}) {
    CoActivation co = scattered(8, 1, 3, tokens);
    AffinityCapacity at = capacity(2, 2, 4);
    at.imbalance = 100;
    EXPECT_LE(nodesVisited(co, at, placeByAffinity(co, at)).max, 1.1 * fewestNodes(co, at)) << tokens;
  }
}

TEST(Affinity, NeverMoreNodesThanInOrderWhereLoadIsFree) {
  for (int64_t experts : {6, 24, 31}) {
    CoActivation co = scattered(experts, 1, 4, 300);
    AffinityCapacity at = capacity(3, 6, (experts + 5) / 6);
    at.imbalance = 100;
    EXPECT_LE(nodesVisited(co, at, placeByAffinity(co, at)).max, nodesVisited(co, at, placeInOrder(experts, at)).max);
  }
}

TEST(Affinity, RoomAndLoadAreKept) {
  CoActivation co = scattered(61, 1, 5, 3000);
  AffinityCapacity at = capacity(4, 8, 9);
  std::vector<int32_t> gpus = placeByAffinity(co, at);
  for (int32_t gpu = 0; gpu < 8; ++gpu)
    EXPECT_LE(std::count(gpus.begin(), gpus.end(), gpu), 9);
  std::vector<double> loads = affinityLoads(co, at, gpus);
  for (int64_t node = 0; node < 4; ++node)
    EXPECT_LE(loads[2 * node] + loads[2 * node + 1], 1.1 * 5 * 3000 / 4 + 1e-3);
  EXPECT_EQ(gpus, placeByAffinity(co, at));
}

TEST(Affinity, TablesThatAreNoHistogramAreRefused) {
  const std::string rest = R"(, "num_nodes": 2, "num_gpus": 2})";
  EXPECT_EQ(
      errorOf(R"({"topk": 2, "coactivation": [[1, 1], [0, 1]])" + rest),
      "inputs:1:13: 'coactivation' row 0, column 1 differs from its mirror image; give the tokens that chose both "
      "experts");
  EXPECT_EQ(
      errorOf(R"({"topk": 2, "coactivation": [[9, 1], [1, 9]])" + rest),
      "inputs:1:13: 'coactivation' row 0 has pairs of 1.0 in all, its load 9.0 times topk - 1 is 9.0; put the load "
      "of an expert on the diagonal");
  EXPECT_NE(errorOf(R"({"topk": 2, "coactivation": [[1, 1], [1]])" + rest).find("row 1 must have 2 numbers"),
            std::string::npos);
}

TEST(Affinity, ChoicesThatAreNoneAreRefused) {
  const std::string rest = R"(, "num_nodes": 2, "num_gpus": 2})";
  EXPECT_NE(errorOf(R"({"experts": 4, "choices": [[0, 4]])" + rest).find("choice 0 must name experts 0 to 3, got 4"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"experts": 4, "choices": [[1, 1]])" + rest).find("choice 0 names an expert twice"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"experts": 4, "choices": [[1]], "counts": [])" + rest).find("has 0 numbers for 1 choices"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"experts": 4, "choices": [[1]], "experts_per_gpu": 1)" + rest)
                .find("1 on each of 2 GPUs cannot hold 4 experts; give at least 2"),
            std::string::npos);
}
