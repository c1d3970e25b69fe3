//===- TensorPartsTest.cpp - What tensor-parallel ranks have of a layer ---------===//
#include "k2c/Planner/TensorParts.h"
#include "TestModels.h"

using namespace k2c;
using namespace k2c::test;

namespace {

/// "o columns, q_b rows, ..; gathers 1536 576 ..; scatters 7168 .." of the layers of a kind, or the refusal.
std::string said(const ModelSpec &spec, FeedForward feedForward, int64_t tp) {
  for (const LayerKind &kind : layerKinds(spec)) {
    if (kind.feedForward != feedForward)
      continue;
    Expected<LayerParts> parts = layerParts(spec, kind, tp);
    if (!parts)
      return parts.error().text();
    std::string text;
    for (const auto &[family, cut] : parts->cuts)
      text += family + (cut == MatrixCut::Rows ? " rows, " : " columns, ");
    text += "gathers";
    for (const int64_t width : parts->gathered)
      text += " " + std::to_string(width);
    text += ", scatters";
    for (const int64_t width : parts->scattered)
      text += " " + std::to_string(width);
    return text;
  }
  return "no such layers";
}

/// One whose heads are so wide together.
ModelSpec llamaOf(int64_t heads, int64_t keyHeads) {
  ModelSpec spec = published("llama-3.3-70b");
  GqaSpec &gqa = std::get<GqaSpec>(spec.attentions.begin()->second);
  gqa.heads = heads;
  gqa.kvHeads = keyHeads;
  return spec;
}

} // namespace

TEST(TensorParts, LatentAttentionGathersLatentsAndQueriesOfAllRows) {
  const std::string attention = "kv_b rows, o columns, q_b rows, ";
  EXPECT_EQ(said(published("kimi-k2"), FeedForward::Dense, 2),
            "down columns, gate_up rows, " + attention + "gathers 1536 576 7168, scatters 7168 7168");
  EXPECT_EQ(said(published("kimi-k2"), FeedForward::Moe, 2), attention + "shared_down columns, shared_gate_up rows, "
                                                                         "gathers 1536 576 7168, scatters 7168 7168");
}

TEST(TensorParts, GroupedQueriesGatherOnce) {
  EXPECT_EQ(said(published("llama-3.3-70b"), FeedForward::Dense, 8),
            "down columns, gate_up rows, k rows, o columns, q rows, v rows, gathers 8192 8192, scatters 8192 8192");
}

TEST(TensorParts, MlpsWhoseLeavesDoNotComeOutEvenStayWhole) {
  EXPECT_EQ(said(published("kimi-k2"), FeedForward::Moe, 8), "kv_b rows, o columns, q_b rows, gathers 1536 576, "
                                                             "scatters 7168")
      << "the shared expert has four leaves";
}

TEST(TensorParts, ARankAloneDividesNothing) {
  EXPECT_EQ(said(published("kimi-k2"), FeedForward::Dense, 1), "gathers, scatters");
  EXPECT_TRUE(tensorCuts(published("kimi-k2"), 1).empty());
}

TEST(TensorParts, RanksThatDivideBothHavePartsOfTheVocabulary) {
  const auto said = [](const ModelSpec &spec, int64_t ranks) {
    Status parts = checkVocabularyParts(spec, ranks);
    return parts ? "" : parts.error().text();
  };
  EXPECT_EQ(said(published("kimi-k2"), 64), "");
  EXPECT_EQ(said(tinyLlama(), 4), "") << "64 columns and 100 rows";
  EXPECT_EQ(said(tinyLlama(), 3),
            "vocab: is 3, which does not divide the 64 columns of the embedding; choose a divisor of 64");
  EXPECT_EQ(said(tinyLlama(), 8),
            "vocab: is 8, which does not divide the 100 rows of the head; choose a divisor of 100");
  EXPECT_EQ(said(tinyLlama(), 0),
            "vocab: is 0, which does not divide the 64 columns of the embedding; choose a divisor "
            "of 64");
  EXPECT_EQ(said(tinyLlama(/*tied=*/true), 2),
            "vocab: is 2, and embedding and head are one weight, which has no parts; leave it out");
  EXPECT_EQ(said(tinyLlama(/*tied=*/true), 1), "") << "each has all of it";
}

TEST(TensorParts, RanksThatTakeWholeLeavesHavePartsOfExperts) {
  const auto said = [](const std::string &model, int64_t ranks) {
    Status parts = checkExpertParts(*loadPublishedModel(model), ranks);
    return parts ? "" : parts.error().text();
  };
  const std::string remedy = "; choose an etp that divides them";
  EXPECT_EQ(said("kimi-k2", 4), "");
  EXPECT_EQ(said("mixtral-8x22b", 8), "");
  EXPECT_EQ(said("olmoe-1b-7b", 4), "etp: is 4: an expert's 'down' has 2 leaves of 1024 columns" + remedy);
  EXPECT_EQ(said("olmoe-1b-7b", 0), "etp: is 0: an expert's 'down' has 2 leaves of 1024 columns" + remedy);
  EXPECT_EQ(said("mixtral-8x22b", 3), "etp: is 3: an expert's 'down' has 8 leaves of 16384 columns" + remedy);
  EXPECT_EQ(said("deepseek-v2-lite", 2),
            "etp: is 2: an expert's 'down' has 2 leaves of 1408 columns, the last one shorter than the others" +
                remedy);
  EXPECT_EQ(said("gpt-oss-120b", 2),
            "etp: is 2: an expert's 'down' has a bias, which is no part of a sum; leave it out");
  EXPECT_EQ(said("gpt-oss-120b", 1), "") << "each has all of it";
}

TEST(TensorParts, WhatRanksDoNotDivideIsRefused) {
  const std::string remedy = "; choose a tp that divides it";
  EXPECT_EQ(said(llamaOf(64, 8), FeedForward::Dense, 16), "tp: 16: 'o' has 8 leaves of 8192 columns" + remedy);
  EXPECT_EQ(said(llamaOf(63, 7), FeedForward::Dense, 2), "tp: 2: attention has 63 heads" + remedy);
  EXPECT_EQ(said(llamaOf(64, 1), FeedForward::Dense, 2), "tp: 2: attention has 1 key-value heads" + remedy);
  EXPECT_EQ(said(llamaOf(6, 2), FeedForward::Dense, 2), "tp: 2: 'o' has 1 leaf of 768 columns" + remedy);
  EXPECT_EQ(said(published("olmoe-1b-7b"), FeedForward::Moe, 2),
            "tp: 2: 'q_norm' normalises all heads of a row together" + remedy);
  ModelSpec biased = llamaOf(64, 8);
  biased.weights.push_back(*biased.find("o"));
  biased.weights.back().id = "o_bias";
  EXPECT_EQ(said(biased, FeedForward::Dense, 2), "tp: 2: 'o' has a bias, which is no part of a sum" + remedy);
  EXPECT_FALSE(checkTensorParts(biased, 2));
}
