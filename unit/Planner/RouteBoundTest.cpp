//===- RouteBoundTest.cpp - Binding the experts of a token to few nodes -------===//
#include "k2c/Planner/RouteBound.h"
#include "TestModels.h"

using namespace k2c;
using namespace k2c::test;

namespace {

/// A model of one layer with so many experts, of which a token takes some of some groups.
ModelSpec modelOf(int64_t experts, int64_t topK, int64_t groups = 1, int64_t topGroups = 1) {
  ModelSpec spec = published("olmoe-1b-7b");
  spec.moe->experts = experts;
  spec.moe->topK = topK;
  spec.moe->groups = groups;
  spec.moe->topGroups = topGroups;
  return spec;
}

/// One layer on four nodes.
ExpertNodes onFour(int64_t experts, const std::vector<int32_t> &expertOfSlot) {
  ExpertNodes nodes(experts, 4);
  nodes.addLayer(expertOfSlot.data(), static_cast<int64_t>(expertOfSlot.size()));
  return nodes;
}

/// The refusal of a limit, or nothing.
std::string refusal(const ModelSpec &spec, const ExpertNodes &nodes, int64_t limit, const char *topology = "cpu4x2") {
  Status bound = checkRouteBound(spec, *loadTopology(topology), nodes, {limit, 0});
  return bound ? "" : bound.error().text();
}

const std::vector<int32_t> inOrder = {0, 1, 2, 3, 4, 5, 6, 7};

} // namespace

TEST(RouteBound, KeepsAwayFromSomeNode) {
  const ExpertNodes nodes = onFour(8, inOrder);
  EXPECT_EQ(refusal(modelOf(8, 3), nodes, 0), "");
  EXPECT_EQ(refusal(modelOf(8, 3), nodes, 2), "");
  EXPECT_EQ(refusal(modelOf(8, 3), nodes, 3), "");
  EXPECT_EQ(refusal(modelOf(8, 3), nodes, 4),
            "--route-limit: is 4, topology 'cpu4x2' has 4 nodes, and there are others to keep away from on 5 or more; "
            "leave it out, or use at most 3");
  EXPECT_EQ(refusal(modelOf(8, 3), ExpertNodes(8, 2), 2),
            "--route-limit: is 2, topology 'cpu4x2' has 2 nodes a stage, and there are others to keep away from on 3 "
            "or more; leave it out, or use at most 1");
  EXPECT_EQ(refusal(modelOf(8, 3), ExpertNodes(8, 1), 1),
            "--route-limit: is 1, topology 'cpu4x2' has 1 node a stage, and there are others to keep away from on 2 or "
            "more; leave it out, or use a topology of several nodes");
}

TEST(RouteBound, TheNodesWithTheFewestExpertsAreEnough) {
  EXPECT_EQ(refusal(modelOf(8, 3), onFour(8, inOrder), 1),
            "--route-limit: 1 node has as few as 2 experts in layer 0, and a token takes 3; use --route-limit 2");
  // Nodes of 4, 2, 1 and 1.
  const ExpertNodes uneven = onFour(8, {0, 1, 2, 3, 4, 5, -1, -1, -1, 6, -1, -1, 7, -1, -1, -1});
  EXPECT_EQ(refusal(modelOf(8, 3), uneven, 2),
            "--route-limit: 2 nodes have as few as 2 experts in layer 0, and a token takes 3; use --route-limit 3");
  EXPECT_EQ(refusal(modelOf(8, 5), uneven, 1),
            "--route-limit: 1 node has as few as 1 expert in layer 0, and a token takes 5; leave it out");
  // A node without experts is none that a router takes while another has some.
  EXPECT_EQ(refusal(modelOf(8, 4), onFour(8, {0, 1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1}), 1), "");
}

TEST(RouteBound, WhateverGroupsARouterKeeps) {
  const ExpertNodes whole = onFour(8, inOrder), apart = onFour(8, {0, 2, 1, 4, 3, 6, 5, 7});
  EXPECT_EQ(refusal(modelOf(8, 3, 4, 2), whole, 1), "--route-limit: 1 node has as few as 2 experts of 2 of 4 groups in "
                                                    "layer 0, and a token takes 3; use --route-limit 2");
  EXPECT_EQ(refusal(modelOf(8, 4, 4, 2), whole, 2), "") << "both groups lie whole on the nodes that have some";
  // Of groups {0, 1} and {2, 3}, nodes 0 to 2 have 2, 1 and 1.
  EXPECT_EQ(refusal(modelOf(8, 3, 4, 2), apart, 2), "--route-limit: 2 nodes have as few as 2 experts of 2 of 4 groups "
                                                    "in layer 0, and a token takes 3; use --route-limit 3");
  EXPECT_EQ(refusal(modelOf(64, 2, 32, 16), ExpertNodes(64, 4), 1),
            "--route-limit: the router keeps 16 of 32 groups, which are more than the 20000 sets of groups that this "
            "build looks at; leave it out");
}

TEST(RouteBound, CopiesOfAnExpertStayOnItsNode) {
  const ExpertNodes twice = onFour(4, {0, 0, 1, 1, 2, 2, 3, 3});
  EXPECT_EQ(refusal(modelOf(4, 2), twice, 1),
            "--route-limit: 1 node has as few as 1 expert in layer 0, and a token takes 2; use --route-limit 2");
  const ExpertNodes apart = onFour(5, {0, 1, 0, 2, 0, 3, 4, -1});
  EXPECT_EQ(refusal(modelOf(5, 3), apart, 2),
            "--route-limit: expert 0 of layer 0 is on nodes 0, 1, 2, and under a limit an expert is on one node; leave "
            "out one of --route-limit and --placement, or keep copies of an expert on its node");
  EXPECT_TRUE(checkRouteBound(modelOf(5, 3), *loadTopology("cpu4x2"), apart, {0, 0.5})) << "a penalty bounds nothing";
}

TEST(RouteBound, EachLayerHasEnough) {
  ExpertNodes nodes = onFour(8, inOrder);
  nodes.addLayer(std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, -1, -1, 7, -1, -1}.data(), 12);
  EXPECT_EQ(refusal(modelOf(8, 2), nodes, 1),
            "--route-limit: 1 node has as few as 1 expert in layer 1, and a token takes 2; use --route-limit 2");
}

TEST(RouteBound, IsOfExpertsOnSeveralNodes) {
  ModelSpec dense = tinyLlama();
  dense.name = "dense";
  EXPECT_EQ(refusal(dense, ExpertNodes(0, 4), 2),
            "--route-limit: model 'dense' has no experts, and experts are what is bound to nodes; leave it out");
  EXPECT_EQ(
      refusal(modelOf(8, 2), ExpertNodes(8, 1), 1, "cpu1"),
      "--route-limit: is 1, topology 'cpu1' has 1 node, and there are others to keep away from on 2 or more; leave it "
      "out, or use a topology of several nodes");
  EXPECT_TRUE(checkRouteBound(modelOf(8, 2), *loadTopology("cpu4x2"), onFour(8, inOrder), {0, 0.5}));
  EXPECT_EQ(
      checkRouteBound(modelOf(8, 2), *loadTopology("cpu1"), ExpertNodes(8, 1), {0, 0.5}).error().text(),
      "--locality-penalty: topology 'cpu1' has 1 node, and there are others to keep away from on 2 or more; leave "
      "it out, or use a topology of several nodes");
}

TEST(ExpertNodes, HashNodesAndNotSlots) {
  const std::string hash = onFour(8, inOrder).hash();
  EXPECT_EQ(hash.size(), 8u);
  EXPECT_EQ(onFour(8, {1, 0, 3, 2, 5, 4, 7, 6}).hash(), hash);
  EXPECT_EQ(onFour(8, {0, 1, -1, 2, 3, 2, 4, 5, -1, 6, 7, 7}).hash(), hash) << "empty slots, and copies on a node";
  EXPECT_NE(onFour(8, {2, 1, 0, 3, 4, 5, 6, 7}).hash(), hash);
  EXPECT_NE(onFour(8, {0, 1, 7, 2, 3, -1, 4, 5, -1, 6, 7, -1}).hash(), hash) << "a copy on another node";
}

TEST(ExpertNodes, AreAPartOfTheNumbersOfABoundProgram) {
  EXPECT_EQ(boundNumerics(2, 0, "1a2b3c4d"), "/m2-1a2b3c4d");
  EXPECT_EQ(boundNumerics(0, 0.25, "1a2b3c4d"), "/p0.25-1a2b3c4d");
  EXPECT_EQ(boundNumerics(2, 0.25, "1a2b3c4d"), "/m2-p0.25-1a2b3c4d");
}
