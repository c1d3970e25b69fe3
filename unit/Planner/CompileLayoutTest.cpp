//===- CompileLayoutTest.cpp - Layouts that k2c compile accepts ---------------===//
#include "k2c/Planner/CompileLayout.h"
#include "TestModels.h"

using namespace k2c;
using namespace k2c::test;

namespace {

/// A model with so many experts a layer.
ModelSpec modelOf(int64_t experts) {
  ModelSpec spec = published("olmoe-1b-7b");
  spec.moe->experts = experts;
  for (WeightFamily &family : spec.weights)
    if (family.experts > 0)
      family.experts = experts;
  return spec;
}

/// The canonical text of what `--layout text` asks for, or the refusal.
std::string said(const ModelSpec &spec, const std::string &topology, const std::string &text) {
  Expected<ParallelLayout> layout = parseCompileLayout(text, spec, *loadTopology(topology));
  return layout ? compiledText(*layout) : layout.error().text();
}

} // namespace

TEST(CompileLayout, DefaultsDivideExpertsAndSequencesAmongAllRanks) {
  EXPECT_EQ(said(modelOf(64), "cpu1", ""), "dp=1");
  EXPECT_EQ(said(modelOf(64), "cpu4x2", ""), "ep=8,dp=8");
  EXPECT_EQ(said(modelOf(13), "cpu2x1", ""), "ep=2,dp=2,redundant=1") << "slots that fill the last rank";
  EXPECT_EQ(said(modelOf(5), "cpu4x2", ""), "ep=8,dp=8,redundant=3") << "fewer experts than ranks";
  EXPECT_EQ(said(tinyLlama(), "cpu1", ""), "dp=1");
}

TEST(CompileLayout, RedundantSlotsAreTheNearestThatCompile) {
  EXPECT_EQ(nearestRedundant(8, 9, 4), 1) << "of 1 and 10";
  EXPECT_EQ(nearestRedundant(8, 9, 6), 10);
  EXPECT_EQ(nearestRedundant(8, 9, 10), 10);
  EXPECT_EQ(nearestRedundant(8, 9, 1000), 64) << "each expert on each rank";
  EXPECT_EQ(nearestRedundant(13, 8, 1), 0) << "none compile as well, and 3";
  EXPECT_EQ(nearestRedundant(13, 2, 2), 3) << "of 1 and 3, equally far";
  EXPECT_EQ(nearestRedundant(13, 1, 5), 0);
}

TEST(CompileLayout, WhatIsAskedForIsKept) {
  EXPECT_EQ(said(modelOf(64), "cpu2x1", "ep=2"), "ep=2,dp=2");
  EXPECT_EQ(said(modelOf(13), "cpu2x1", "ep=2,dp=2"), "ep=2,dp=2") << "the last rank has a slot more";
  EXPECT_EQ(said(modelOf(64), "cpu2x1", "dp=2,ep=2,redundant=6,pp=1"), "ep=2,dp=2,redundant=6");
  EXPECT_EQ(said(modelOf(64), "cpu2x1", "ep=2,step=32"), "ep=2,dp=2") << "step is a limit";
  EXPECT_EQ(parseCompileLayout("ep=2,step=32", modelOf(64), *loadTopology("cpu2x1"))->stepTokens, 32);
}

TEST(CompileLayout, SlotsOfRanks) {
  const ModelSpec spec = modelOf(5);
  ParallelLayout layout;
  layout.ep = layout.dp = 4;
  EXPECT_EQ(expertSlots(spec, layout), 2);
  const PlacedModel model = placedModel(spec, layout);
  EXPECT_EQ(model.ranks, 4);
  EXPECT_EQ(model.slotsOfRank, 2);
  layout.ep = layout.etp = 2;
  EXPECT_EQ(placedModel(spec, layout).ranks, 2) << "groups that share experts";
  EXPECT_EQ(placedModel(spec, layout).slotsOfRank, 3);
  EXPECT_EQ(expertSlots(tinyLlama(), ParallelLayout()), 0);
}

TEST(CompileLayout, OtherWaysAreRefusedWithTheNearestThatCompiles) {
  const ModelSpec spec = modelOf(13);
  EXPECT_EQ(said(spec, "cpu2x1", "ep=2,dp=2,cp=2"),
            "--layout: cp is 2, in this build programs have cp=1; use ep=2,dp=2,redundant=1");
  EXPECT_EQ(said(spec, "cpu1", "dp=1,overlap=1"),
            "--layout: overlap is 1, and the ranks of ep=1 exchange nothing that could cross meanwhile; use dp=1");
  for (const char *text : {"ep=2,prefill.ep=2", "phase=decode,ep=2"})
    EXPECT_EQ(said(spec, "cpu2x1", text), "--layout: separate devices for prompts and for tokens are not in this "
                                          "build; use ep=2,dp=2,redundant=1");
  EXPECT_EQ(said(spec, "cpu2x1", "ep=3,dp=2"), "--layout: ep is 3, topology 'cpu2x1' has 2 ranks, and in this build "
                                               "programs are of all of them; use ep=2,dp=2,redundant=1");
  EXPECT_EQ(said(spec, "cpu1", "ep=1,dp=2"), "--layout: dp is 2, topology 'cpu1' has 1 rank, and in this build "
                                             "programs are of all of them; use dp=1");
}

TEST(CompileLayout, RedundantSlotsFillEveryRank) {
  const ModelSpec spec = modelOf(13);
  EXPECT_EQ(said(spec, "cpu2x1", "ep=2,redundant=2"), "--layout: redundant is 2, which makes 15 expert slots that 2 "
                                                      "ranks do not divide; use ep=2,dp=2,redundant=3");
  EXPECT_EQ(said(spec, "cpu2x1", "ep=2,redundant=15"), "--layout: redundant is 15, must be 0 to 13 for 13 experts on 2 "
                                                       "ranks; use ep=2,dp=2,redundant=13");
  EXPECT_EQ(said(spec, "cpu2x1", "ep=2,redundant=-1"), "--layout: redundant is -1, must be 0 to 13 for 13 experts on 2 "
                                                       "ranks; use ep=2,dp=2,redundant=1");
  EXPECT_EQ(said(spec, "cpu4x2", "ep=8,redundant=4"), "--layout: redundant is 4, which makes 17 expert slots that 8 "
                                                      "ranks do not divide; use ep=8,dp=8,redundant=3");
  EXPECT_EQ(said(spec, "cpu2x1", "ep=2,overlap=2"), "--layout: overlap is '2', must be 0 or 1; use "
                                                    "ep=2,dp=2,redundant=1");
  EXPECT_EQ(said(spec, "cpu1", "redundant=1"), "--layout: redundant is 1, must be 0 to 0 for 13 experts on 1 rank; use "
                                               "dp=1");
}

TEST(CompileLayout, WhatIsNoServingLayoutIsRefused) {
  const ModelSpec spec = modelOf(64);
  for (const char *key : {"schedule", "zero", "microbatch"})
    EXPECT_TRUE(has(said(spec, "cpu2x1", std::string("ep=2,") + key + "=2"),
                    std::string("--layout: '") + key + "' is not a key of a serving layout; use ep=2,dp=2"));
  EXPECT_EQ(said(spec, "cpu2x1", "ep"), "--layout: 'ep' is not KEY=VALUE; use ep=2,dp=2");
}

TEST(CompileLayout, ModelsWithoutExpertsHaveAStageOnEachRank) {
  EXPECT_EQ(said(tinyLlama(), "cpu2x1", ""), "pp=2");
  EXPECT_EQ(said(tinyLlama(), "cpu2x1", "dp=1"), "--layout: dp is 1, topology 'cpu2x1' has 2 ranks, and in this build "
                                                 "programs are of all of them; use pp=2");
  EXPECT_EQ(said(tinyLlama(), "cpu2x1", "dp=2"), "replicas=2");
  EXPECT_EQ(said(tinyLlama(), "cpu4x2", ""), "pp=2,replicas=4") << "two layers are two stages at most";
  EXPECT_EQ(said(tinyLlama(), "cpu4x2", "replicas=8"), "replicas=8");
  EXPECT_EQ(said(tinyLlama(), "cpu4x2", "replicas=4"),
            "--layout: dp is 1, topology 'cpu4x2' has 2 ranks of each replica, and in this build programs are of all "
            "of them; use pp=2,replicas=4");
}

TEST(CompileLayout, ReplicasDivideRanks) {
  const ModelSpec spec = modelOf(13);
  EXPECT_EQ(said(spec, "cpu4x2", "ep=4,dp=4,replicas=2,redundant=3"), "ep=4,dp=4,replicas=2,redundant=3");
  EXPECT_EQ(said(spec, "cpu4x2", "ep=2,dp=2,pp=2,replicas=2"), "ep=2,pp=2,dp=2,replicas=2");
  EXPECT_EQ(said(spec, "cpu4x2", "ep=2,dp=4,replicas=2"), "ep=2,dp=2,replicas=4") << "they share no experts";
  EXPECT_EQ(said(spec, "cpu4x2", "ep=2,dp=2,replicas=2"),
            "--layout: ep is 2, topology 'cpu4x2' has 4 ranks of each replica, and in this build programs are of all "
            "of them; use ep=4,dp=4,replicas=2,redundant=3");
  EXPECT_EQ(said(spec, "cpu4x2", "ep=2,dp=2,replicas=3"),
            "--layout: pp is 1 in each of 3 replicas, and topology 'cpu4x2' has 8 ranks on 4 nodes: stages have as "
            "many ranks each, which fill nodes or divide one; use ep=8,dp=8,redundant=3");
}

TEST(CompileLayout, StagesOfReplicasCrossNodes) {
  ParallelLayout layout;
  layout.pp = 2;
  layout.replicas = 3;
  EXPECT_EQ(hopsOfReplica(layout, 2, 0), (std::array<int64_t, 2>{1, 0})) << "ranks 0 and 1 of 3 on a node";
  EXPECT_EQ(hopsOfReplica(layout, 2, 1), (std::array<int64_t, 2>{0, 1})) << "ranks 2 and 3";
  EXPECT_EQ(hopsOfReplica(layout, 2, 2), (std::array<int64_t, 2>{1, 0})) << "ranks 4 and 5";
}

TEST(CompileLayout, StagesDivideRanksAndLayers) {
  const ModelSpec spec = modelOf(13);
  EXPECT_EQ(said(spec, "cpu4x2", "ep=4,pp=2"), "ep=4,pp=2,dp=4");
  EXPECT_EQ(said(spec, "cpu2x1", "pp=2"), "pp=2") << "a rank a stage has all experts of its layers";
  EXPECT_EQ(said(spec, "cpu4x2", "ep=2,dp=2,pp=2"),
            "--layout: ep is 2, topology 'cpu4x2' has 4 ranks a stage, and in this build programs are of all of them; "
            "use ep=4,pp=2,dp=4,redundant=3");
  EXPECT_EQ(said(spec, "cpu4x2", "ep=2,pp=3"),
            "--layout: pp is 3, and topology 'cpu4x2' has 8 ranks on 4 nodes: stages have as many ranks each, which "
            "fill nodes or divide one; use ep=8,dp=8,redundant=3");
  EXPECT_EQ(said(spec, "cpu4x2", "pp=32"), "--layout: pp is 32, and model 'olmoe-1b-7b' has 16 layers: every stage "
                                           "has one; use ep=8,dp=8,redundant=3");
}

TEST(CompileLayout, StagesHaveTheLayersThatAreNamed) {
  const ModelSpec spec = modelOf(13);
  EXPECT_EQ(said(spec, "cpu4x2", "ep=4,pp=2,layers=5+11"), "ep=4,pp=2,dp=4,layers=5+11");
  EXPECT_EQ(stageBounds(spec, *parseCompileLayout("ep=4,pp=2,layers=5+11", spec, *loadTopology("cpu4x2"))),
            (std::vector<int64_t>{0, 5, 16}));
  const std::string remedy = "; use ep=4,pp=2,dp=4,redundant=3";
  EXPECT_EQ(said(spec, "cpu4x2", "ep=4,pp=2,layers=4x4"), "--layout: layers are of 4 stages, pp 2 has 2" + remedy);
  EXPECT_EQ(said(spec, "cpu4x2", "ep=4,pp=2,layers=5+10"),
            "--layout: layers sum to 15, model 'olmoe-1b-7b' has 16" + remedy);
  EXPECT_EQ(said(spec, "cpu4x2", "ep=4,pp=2,layers=16+0"),
            "--layout: layers has a stage of 0 layers, and a stage that serves has one at least" + remedy);
}

TEST(CompileLayout, LayoutsOfManifestsAreNotTrusted) {
  EXPECT_TRUE(readCompiledLayout("ep=2,dp=2,pp=2,replicas=2,redundant=3,layers=1+2", 8, 3));
  EXPECT_TRUE(readCompiledLayout("dp=1", 1, 3));
  EXPECT_TRUE(readCompiledLayout("ep=4,dp=4,pp=2,vocab=4", 8, 3));
  EXPECT_TRUE(readCompiledLayout("ep=2,etp=2,dp=4,pp=2", 8, 3));
  EXPECT_TRUE(readCompiledLayout("etp=2,dp=2,pp=2,replicas=2", 8, 3));
  EXPECT_TRUE(readCompiledLayout("ep=3,etp=2,dp=6,pp=2", 12, 3));
  EXPECT_FALSE(readCompiledLayout("ep=2,etp=3,dp=6,pp=2", 12, 3)) << "no power of two";
  for (const char *text : {"ep=0,dp=2,pp=2,replicas=2",
                           "ep=2,dp=2,pp=-2,replicas=-2",
                           "ep=2,dp=2,pp=2",
                           "ep=2,dp=4,pp=2",
                           "dp=8,tp=1",
                           "ep=2,dp=2,pp=4",
                           "ep=4611686018427387904,dp=4,pp=4",
                           "ep=2,dp=2,pp=2,replicas=2,layers=3",
                           "ep=2,dp=2,pp=2,replicas=2,layers=1+1",
                           "ep=2,dp=2,pp=2,replicas=2,layers=3+0",
                           "ep=8,prefill.ep=8",
                           "x",
                           "ep=4,dp=4,pp=2,vocab=8",
                           "ep=4,dp=4,pp=2,vocab=0",
                           "ep=4,dp=4,pp=2,vocab=-1",
                           "ep=4,etp=2,dp=4,pp=2",
                           "ep=4,etp=0,dp=4,pp=2",
                           "ep=-2,etp=-2,dp=4,pp=2",
                           "etp=2,tp=4,pp=2",
                           "etp=-9223372036854775808,dp=4,pp=2"})
    EXPECT_FALSE(readCompiledLayout(text, 8, 3)) << text;
}

TEST(CompileLayout, RanksOfAStageDivideExperts) {
  ModelSpec spec = modelOf(13);
  spec.moe.reset();
  EXPECT_EQ(said(spec, "cpu4x2", "ep=4,pp=2"),
            "--layout: ep is 4, and model 'olmoe-1b-7b' has no experts; use pp=2,replicas=4");
  ParallelLayout layout;
  layout.dp = 8;
  EXPECT_EQ(checkCompiles(spec, *loadTopology("cpu4x2"), layout).error().text(),
            "--layout: a stage has 8 ranks, and model 'olmoe-1b-7b' no experts to divide among them; use pp=8");
}

TEST(CompileLayout, GroupsOfRanksDivideHeads) {
  const ModelSpec kimi = published("kimi-k2"), llama = published("llama-3.3-70b");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=8,tp=2"), "tp=2,ep=8,dp=4");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=4,tp=2,pp=2"), "tp=2,ep=4,pp=2,dp=2");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=4,tp=2,dp=4"), "tp=2,ep=4,dp=2,replicas=2") << "they share no experts";
  EXPECT_EQ(said(llama, "cpu4x2", "tp=2,pp=4"), "tp=2,pp=4");
  EXPECT_EQ(said(llama, "cpu4x2", "tp=2,dp=4"), "tp=2,replicas=4");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=8,tp=4"),
            "--layout: tp is 4, and topology 'cpu4x2' has 8 ranks a stage and 2 a node: groups divide both; use "
            "tp=2,ep=8,dp=4");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=4,dp=2,tp=2"),
            "--layout: ep is 4, topology 'cpu4x2' has 8 ranks in groups of 2, and in this build programs are of all of "
            "them; use tp=2,ep=8,dp=4");
  EXPECT_EQ(said(modelOf(64), "cpu4x2", "ep=8,tp=2"),
            "--layout: tp 2: 'q_norm' normalises all heads of a row together; use ep=8,dp=8");
}

TEST(CompileLayout, GroupsOfRanksShareExperts) {
  const ModelSpec kimi = published("kimi-k2");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=4,etp=2"), "ep=4,etp=2,dp=8");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=2,etp=2,pp=2"), "ep=2,etp=2,pp=2,dp=4");
  EXPECT_EQ(said(kimi, "cpu4x2", "etp=2,pp=4,dp=2,overlap=1"), "etp=2,pp=4,dp=2,overlap=1") << "one group a stage";
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=2,etp=2,tp=2,dp=4"), "tp=2,ep=2,etp=2,dp=2,replicas=2");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=4,etp=2,vocab=8,redundant=4"), "ep=4,etp=2,dp=8,vocab=8,redundant=4");
  EXPECT_EQ(said(published("mixtral-8x22b"), "cpu16x8", "ep=16,etp=8"), "ep=16,etp=8,dp=128") << "eight leaves";
}

TEST(CompileLayout, GroupsThatShareExpertsAreWithinANode) {
  const ModelSpec kimi = published("kimi-k2");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=2,etp=4"),
            "--layout: etp is 4, and topology 'cpu4x2' has 8 ranks a stage and 2 a node: groups divide both; use "
            "ep=4,etp=2,dp=8");
  EXPECT_EQ(said(kimi, "cpu16x8", "ep=128,etp=3"),
            "--layout: etp is 3, and topology 'cpu16x8' has 128 ranks a stage and 8 a node: groups divide both; use "
            "ep=64,etp=2,dp=128");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=8,dp=8,etp=0"),
            "--layout: etp is 0, and topology 'cpu4x2' has 8 ranks a stage and 2 a node: groups divide both; use "
            "ep=8,dp=8");
  EXPECT_EQ(said(kimi, "cpu4x2", "pp=8,etp=2,dp=1"),
            "--layout: etp is 2, and topology 'cpu4x2' has 1 rank a stage and 2 a node: groups divide both; use pp=8");
}

TEST(CompileLayout, GroupsThatShareExpertsAreAllRanksOfAStage) {
  EXPECT_EQ(said(published("kimi-k2"), "cpu4x2", "ep=8,etp=2,dp=8"),
            "--layout: ep is 8, topology 'cpu4x2' has 8 ranks in groups of 2, and in this build programs are of all of "
            "them; use ep=4,etp=2,dp=8");
  EXPECT_EQ(said(published("llama-3.3-70b"), "cpu4x2", "etp=2,pp=4,dp=2"),
            "--layout: etp is 2, and model 'llama-3.3-70b' has no experts; use pp=4,replicas=2");
}

TEST(CompileLayout, PartsOfExpertsHaveWholeLeaves) {
  EXPECT_EQ(said(published("kimi-k2"), "cpu16x8", "ep=16,etp=8"),
            "--layout: etp is 8: an expert's 'down' has 4 leaves of 2048 columns; use ep=32,etp=4,dp=128");
  EXPECT_EQ(said(published("deepseek-v2-lite"), "cpu4x2", "ep=4,etp=2"),
            "--layout: etp is 2: an expert's 'down' has 2 leaves of 1408 columns, the last one shorter than the "
            "others; use ep=8,dp=8");
}

TEST(CompileLayout, ExpertsInPartsStaySoWhereItIsLegal) {
  EXPECT_TRUE(has(said(published("kimi-k2"), "cpu4x2", "ep=4,etp=2,cp=2,vocab=16"), "; use ep=4,etp=2,dp=8,vocab=8"));
  EXPECT_TRUE(has(said(modelOf(13), "cpu4x2", "ep=2,etp=2,pp=2,redundant=2"), "; use ep=2,etp=2,pp=2,dp=4,redundant=3"))
      << "slots of two groups";
}

TEST(CompileLayout, RanksOfAStageDivideTheVocabulary) {
  const ModelSpec kimi = published("kimi-k2"), llama = published("llama-3.3-70b");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=8,vocab=8"), "ep=8,dp=8,vocab=8");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=8,vocab=1"), "ep=8,dp=8") << "whole on each";
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=8,tp=2,vocab=8"), "tp=2,ep=8,dp=4,vocab=8");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=4,pp=2,vocab=4"), "ep=4,pp=2,dp=4,vocab=4");
  EXPECT_EQ(said(llama, "cpu4x2", "tp=2,pp=4,vocab=2"), "tp=2,pp=4,vocab=2");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=8,vocab=4"),
            "--layout: vocab is 4, topology 'cpu4x2' has 8 ranks, and embedding and head are whole on each or divided "
            "among all of them; use ep=8,dp=8,vocab=8");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=2,dp=2,pp=2,replicas=2,vocab=4"),
            "--layout: vocab is 4, topology 'cpu4x2' has 2 ranks a stage of each replica, and embedding and head are "
            "whole on each or divided among all of them; use ep=2,pp=2,dp=2,replicas=2,vocab=2");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=8,vocab=0"),
            "--layout: vocab is 0, topology 'cpu4x2' has 8 ranks, and embedding and head are whole on each or divided "
            "among all of them; use ep=8,dp=8");
  EXPECT_EQ(said(llama, "cpu4x2", "pp=8,vocab=8"),
            "--layout: vocab is 8, topology 'cpu4x2' has 1 rank a stage, and embedding and head are whole on each or "
            "divided among all of them; use pp=8");
}

TEST(CompileLayout, VocabulariesWithoutPartsAreRefused) {
  ModelSpec spec = modelOf(64);
  spec.vocab = 32003;
  EXPECT_EQ(said(spec, "cpu4x2", "ep=8,vocab=8"),
            "--layout: vocab is 8, which does not divide the 32003 rows of the head; use ep=8,dp=8");
  spec.tiedEmbeddings = true;
  EXPECT_EQ(said(spec, "cpu4x2", "ep=8,vocab=8"),
            "--layout: vocab is 8, and embedding and head are one weight, which has no parts; use ep=8,dp=8");
}

TEST(CompileLayout, ADividedVocabularyStaysDividedWhereItIsLegal) {
  EXPECT_TRUE(has(said(published("kimi-k2"), "cpu4x2", "ep=4,dp=2,tp=2,vocab=8"), "; use tp=2,ep=8,dp=4,vocab=8"));
  EXPECT_TRUE(
      has(said(modelOf(13), "cpu4x2", "ep=4,pp=2,layers=4x4,vocab=4"), "; use ep=4,pp=2,dp=4,vocab=4,redundant=3"));
  ModelSpec spec = modelOf(64);
  spec.tiedEmbeddings = true;
  EXPECT_TRUE(has(said(spec, "cpu4x2", "ep=8,cp=2,vocab=8"), "; use ep=8,dp=8"));
}

TEST(CompileLayout, AVocabularyOfAllRanksIsThatOfAReplicasStage) {
  const ModelSpec kimi = published("kimi-k2"), llama = published("llama-3.3-70b");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=4,dp=8,vocab=8"), "ep=4,dp=4,replicas=2,vocab=4");
  EXPECT_EQ(said(kimi, "cpu4x2", "ep=4,dp=8,vocab=4"), "ep=4,dp=4,replicas=2,vocab=4");
  EXPECT_EQ(said(llama, "cpu4x2", "tp=2,dp=4,vocab=8"), "tp=2,replicas=4,vocab=2");
}

TEST(CompileLayout, OnlySeveralRanksDivideAVocabulary) {
  const ModelSpec kimi = published("kimi-k2");
  const Topology topology = *loadTopology("cpu4x2");
  EXPECT_EQ(withVocabularyParts(kimi, compileLayout(kimi, topology, 2))->vocab, 4);
  EXPECT_FALSE(withVocabularyParts(kimi, compileLayout(kimi, topology, 8))) << "a rank a stage";
  EXPECT_FALSE(withVocabularyParts(published("smollm3-3b"), compileLayout(kimi, topology))) << "one weight";
}

TEST(CompileLayout, FewestStagesComeFirst) {
  const Topology topology = *loadTopology("cpu4x2");
  EXPECT_EQ(nextStages(modelOf(13), topology, 1), 2);
  EXPECT_EQ(nextStages(modelOf(13), topology, 2), 4) << "three stages do not divide eight ranks";
  EXPECT_EQ(nextStages(modelOf(13), topology, 8), std::nullopt) << "as many as ranks";
}

TEST(CompileLayout, NodesOfAStage) {
  ParallelLayout layout;
  layout.pp = 2;
  EXPECT_EQ(nodesOfStage(layout, 4), 2);
  layout.pp = 8;
  EXPECT_EQ(nodesOfStage(layout, 4), 1) << "two stages on a node";
}
