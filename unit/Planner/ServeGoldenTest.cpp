//===- ServeGoldenTest.cpp - Every part of one serving plan, by hand ----------===//
//
// DeepSeek V2 Lite in bf16 on four nodes of eight H100, tp 2, cp 2, dp 4, pp 2, ep 8, etp 2: 32 devices. Stage 0 has
// layers 0 to 13, the dense one among them, stage 1 has the other 13. 1,024 sequences decode, 256 on each of 4
// data-parallel ranks; prompts have 2,000 tokens and answers 500; all experts are chosen alike often.
//
//===----------------------------------------------------------------------===//
#include "GoldenParts.h"
#include <cmath>

using namespace k2c;
using namespace k2c::test;

namespace {

/// `quantization`: what config.json would say; the weights stay as they are.
ClusterPlan plan(std::optional<BlockScales> quantization = std::nullopt) {
  Question q("deepseek-v2-lite", "4x8-h100");
  q.spec.quantization = quantization;
  q.workload.serve.batch = 1024;
  q.workload.expertLoad.assign(64, 1);
  q.workload.peakRouting = Routing::Worst;
  return q.plan("tp=2,cp=2,dp=4,pp=2,ep=8,etp=2,step=4096,overlap=1");
}

/// A latent of 512 and a key of 64, in bf16, of one token in one layer.
constexpr double cached = (512 + 64) * 2;

/// A sequence holds 2,000 tokens of its prompt and, at a random moment, 500/2 of its answer, which deviate by
/// 250/sqrt(3); 256 sequences hold no more than three deviations (of sqrt(256) sequences) above their mean. On each of
/// 2 cp devices one page of 64 tokens is half full. Bytes are those of whole tokens of a sequence.
const double cachedTokens = 256 * std::ceil((256 * 2250 + 3 * 16 * 250 / std::sqrt(3.0)) / 256 + 2 * 64 / 2);

// Worst routing: the 1,024 rows of each of 8 ranks, half a step of 4,096 tokens over cp 2 (two batches overlap, and etp
// gathers what tp divides), all choose 6 of one rank's 8 experts.
constexpr double received = 8 * 1024, expertRows = received * 6;
/// Of the choices of half of the rows, which came to this rank of the two of an expert, the other one's part in f32.
constexpr double sentBack = expertRows / 2 * 2048 * 4;
// 8 rows begin a tile of 128 in each expert, the others fill whole tiles: (49,152 - 8) / 128 is 383 full ones.
constexpr double paddedRows = (8 + 383) * 128;
/// Gate, up and their product, each half as wide as an expert, and the output.
constexpr double rowBytes = (3 * 1408 / 2 + 2048) * 2;

std::vector<GoldenPart> memoryOf(double layers, double moeLayers, bool isFirst) {
  std::vector<GoldenPart> parts = {{"attention", 2 * layers * attention},
                                   {"norms", 2 * layers * norms},
                                   {"router", 2 * moeLayers * router},
                                   {"experts", 2 * moeLayers * 8 * expert}, // 64 on 8 ranks
                                   {"shared experts", 2 * moeLayers * shared}};
  if (isFirst)
    parts.push_back({"dense layers", 2 * denseMlp});
  parts.push_back(isFirst ? GoldenPart{"embedding", 2 * embedding} : GoldenPart{"head", 2 * head});
  parts.push_back({"cache", layers * cachedTokens * cached / 2}); // cp 2; tp does not divide a latent
  // 2,048 rows of four hidden vectors and of the widest part: gate, up and product of the dense layer, of which tp has
  // half; queries, keys and values are 16 * (128 + 64 + 128) wide.
  parts.push_back({"activations", 2048 * 2 * (4 * 2048 + 3 * 10944.0 / 2)});
  if (!isFirst)
    parts.push_back({"logits", 256 * 102400.0 * 4 / (2 * 2)}); // f32, over tp and cp
  parts.insert(parts.end(), {{"dispatch and combine", received * 2048 * (2 + 2) + sentBack},
                             {"second communication buffer", received * 2048 * (2 + 2) + sentBack},
                             {"rows of experts", expertRows * rowBytes},
                             {"alignment padding", (paddedRows - expertRows) * rowBytes},
                             {"gathered keys", 4096 * cached}, // of one layer and a whole step
                             {"reserve", 0.08 * 80e9}});
  return parts;
}

TEST(ServeGolden, MemoryOfEachStage) {
  const ClusterPlan golden = plan();
  ASSERT_EQ(golden.memory.size(), 2u);
  expectMemory(golden.memory[0], memoryOf(14, 13, /*isFirst=*/true));
  expectMemory(golden.memory[1], memoryOf(13, 13, /*isFirst=*/false));
}

// Of all layers, on the device of each stage that a batch passes.
constexpr double attentionWeights = 2 * 27 * (attention + norms), expertWeights = 2 * 26 * 8 * expert;
constexpr double denseWeights = 2 * (26 * (router + shared) + denseMlp);

// Elements that kernels beside the products of a layer read and write of a row, tp halves what has heads or a width.
/// Norm, its results' rotations, cache and sum; results of the products: queries, latent and key, expanded keys and
/// values (16 heads of 192 + 128), attention (16 of 128), and the output.
constexpr double attentionMoves = (2048 + 512 + 64 + (512 + 64) + 2 * 2048) + (2048 + 576 + 512 + 64 + 2048 + 2048) +
                                  (3072 + 3072 + 3072 + 16 * 128 + 16 * 320) / 2.0;
/// Norm, router and its choice of 6 weights, activation of the shared experts, two sums.
constexpr double besideExpertsMoves =
    (2048 + 64 + 4096 + 4096) + (2048 + 64 + 2 * 6 + 2048 + 2048 + 2048) + (2 * 2816 + 2 * 2816 + 2816) / 2.0;
constexpr double denseMoves = (2048 + 4096) + (2048 + 2048 + 2048) + (2 * 10944 + 3 * 10944) / 2.0;
/// A row of an expert is collected, multiplied to gate and up, their product to the output, which is added up.
constexpr double expertMoves = 4 * 2048 + (2 * 1408 + 3 * 1408) / 2.0;
/// Bytes: parts of the output are written in f32, and read to be added.
constexpr double expertParts = 2 * 2048 * 4;
constexpr double restMoves = 26 * besideExpertsMoves + denseMoves;

/// The 2 ranks of an expert send each other the rows that came to them, and parts of the sums of their 6 choices in
/// f32.
double withinExperts(double to) { return to * ranksVisited + 4 * 6; }
/// What `rows` of a device receive in dispatch and combine, 2,048 values each way, in 26 layers: bytes of a value `to`
/// experts and back. tp halves the rows. A node has 4 of the 8 expert ranks: within it a row goes to the ranks visited,
/// but for one in 4 of them; to the nodes visited, but for one in 2.
double dispatched(double rows, double to = 2, double back = 2) {
  return 26 * rows / 2 * 2048 * ((to + back) * (ranksVisited * 3 / 4.0 + nodesVisited / 2) + withinExperts(to));
}
/// Of generated tokens each of 6 choices has its own copy, but for one in 8 that stays.
double dispatchedByRoute(double rows, double to = 2, double back = 2) {
  return 26 * rows / 2 * 2048 * ((to + back) * 6 * 7 / 8.0 + withinExperts(to));
}

// 128 of a rank's sequences pass a stage at once, each with one token, after 2,250. Devices of cp have half of the rows
// and half of the cache: to pass queries is less than to pass keys.
TEST(ServeGolden, BytesOfADecodeStep) {
  const double rows = 128 / 2, hidden = 2048 * 2;
  ClusterPlan golden = plan();
  ASSERT_TRUE(golden.overlaps("prefill") && golden.overlaps("decode")); // the halves read all weights
  golden.steps.erase(golden.steps.begin(), golden.steps.begin() + 8);   // the prefill step's
  expectSteps(
      golden,
      {{"decode", "attention",
        // the cache is read, one token of each row is written to it
        2 * attentionWeights + 27 * (128 * 2250 * cached / 2 + rows * cached) + 27 * rows * attentionMoves * 2},
       // 64 rows of each of 16 devices, of which tp has half, choose 6 experts, alike many on each of 8 ranks
       {"decode", "experts",
        2 * expertWeights + 26 * (rows / 2 * 16 * 6 / 8) * ((2048 + expertMoves) * 2 + expertParts)},
       {"decode", "dense, shared, router", 2 * denseWeights + rows * restMoves * 2},
       {"decode", "embedding, head", 2 * (2 * head) + rows * hidden},
       {"decode", "dispatch, combine", 0, dispatchedByRoute(rows)},
       // two all-reduces a layer between 2 ranks: each receives half of a row in either half of it
       {"decode", "tensor parallel", 0, 27 * 2 * rows * hidden},
       // half of the absorbed queries (16 heads, 512 + 64, tp halves them), half of the outputs and logsumexps in f32
       {"decode", "context parallel", 0, 27 * 128 / 2 * (16 * 576 * 2 / 2 + 16 * (512 + 1) * 4 / 2)},
       {"decode", "pipeline", 0, 2 * rows * hidden / 2}});
}

// 4,096 tokens of prompts of 2,000 pass a stage at once, in two batches of half of the tokens, each of which reads all
// weights; nothing is cached yet. Devices of cp have half of the rows and pass on their keys.
TEST(ServeGolden, BytesOfAPrefillStep) {
  const double rows = 4096 / 2, hidden = 2048 * 2;
  ClusterPlan golden = plan();
  golden.steps.resize(8);
  expectSteps(golden, {{"prefill", "attention", 2 * attentionWeights + 27 * rows * (cached + attentionMoves * 2)},
                       {"prefill", "experts",
                        2 * expertWeights + 26 * (rows / 2 * 16 * 6 / 8) * ((2048 + expertMoves) * 2 + expertParts)},
                       {"prefill", "dense, shared, router", 2 * denseWeights + rows * restMoves * 2},
                       {"prefill", "embedding, head", 2 * (2 * head) + rows * hidden},
                       {"prefill", "dispatch, combine", 0, dispatched(rows)},
                       {"prefill", "tensor parallel", 0, 27 * 2 * rows * hidden},
                       {"prefill", "context parallel", 0, 27 * 4096 * cached / 2},
                       {"prefill", "pipeline", 0, 2 * rows * hidden / 2}});
}

// The product of gate and up is read in bf16 and written in FP8 before it is multiplied. Where the experts compute in
// FP8, rows go to them in FP8 with a scale of four bytes for 128 values, and come back in bf16.
TEST(ServeGolden, RowsGoToExpertsInFp8) {
  const double rows = 128 / 2, to = 1 + 4.0 / 128, back = 2;
  const ClusterPlan golden = plan(BlockScales{DType::F8E4M3, 128, 128});
  ASSERT_EQ(golden.memory.size(), 2u);
  for (const RankMemory &memory : golden.memory)
    for (const MemoryPart &part : memory.parts) {
      if (part.name == "dispatch and combine" || part.name == "second communication buffer") {
        EXPECT_NEAR(double(part.bytes.value), received * 2048 * (to + back) + sentBack, 1)
            << memory.ranks << ": " << part.name;
      }
    }
  const StepPart &experts = golden.steps.at(9), &dispatch = golden.steps.at(12);
  ASSERT_EQ(experts.phase + experts.name + dispatch.phase + dispatch.name, "decodeexpertsdecodedispatch, combine");
  const double memory =
      2 * expertWeights + 26 * (rows / 2 * 16 * 6 / 8) * (2048 * to + expertMoves * 2 + 3 * 1408 / 2 + expertParts);
  EXPECT_NEAR(experts.memoryBytes, memory, 1e-9 * memory);
  EXPECT_NEAR(dispatch.linkBytes, dispatchedByRoute(rows, to, back), 1e-9 * dispatchedByRoute(rows, to, back));
}

} // namespace
