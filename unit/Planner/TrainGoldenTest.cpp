//===- TrainGoldenTest.cpp - Every part of one training plan, by hand ---------===//
//
// DeepSeek V2 Lite on 64 of 256 H800, tp 2 with sequence parallelism, cp 2, dp 8, pp 2, ep 8, etp 2, eight
// micro-batches of one sequence of 4,096 tokens. Interleaved 1F1B with two chunks: stages of 7, 7, 7 and 6 layers; rank
// 0 has stages 0 (with the dense layer and the embedding) and 2, rank 1 has 1 and 3 (with the head). A forward runs
// beside a backward.
//
//===----------------------------------------------------------------------===//
#include "GoldenParts.h"

using namespace k2c;
using namespace k2c::test;

namespace {

ClusterPlan plan() {
  Question q("deepseek-v2-lite", "256-h800", PlanPhase::Train);
  q.workload.train.batchTokens = 8 * 8 * 4096; // dp 8, eight micro-batches
  q.workload.peakRouting = Routing::Worst;
  q.workload.expertLoad.assign(64, 1); // no rank is fuller than the others
  q.request.mustFit = false;
  return q.plan("tp=2,sp=1,cp=2,dp=8,pp=2,ep=8,etp=2,schedule=interleaved,chunks=2,overlap=1,zero=os");
}

constexpr double tokens = 4096 / 2; ///< of a micro-batch, over cp

//===----------------------------------------------------------------------===//
// What a micro-batch keeps of a layer for its backward
//===----------------------------------------------------------------------===//

/// bf16: the inputs of two norms and their results over sp; the latent before and after its norm and the rotated key
/// whole; rotated queries, expanded keys (16 heads of 192) and values and outputs (16 of 128) over tp, with one
/// logsumexp in f32 for each head.
constexpr double attentionKeeps =
    tokens * (4 * 2048 * 2 / 2 + 2 * (512 + 512 + 64) + (2 * 16 * (192 + 192 + 128 + 128) + 4 * 16) / 2);
/// Of a row that an expert computes with: its input, and over etp gate, up and their product.
constexpr double expertRow = 2 * 2048 + 2 * 3 * 1408 / 2;
/// The 16 devices of an expert group bring sp's half of their tokens, 6 choices each, an eighth of them to this rank.
constexpr double routedRows = tokens / 2 * 16 * 6 / 8;
/// Router scores in f32, and the shared experts' gate, up and product over tp.
constexpr double moeKeeps = tokens * (4 * 64 + 2 * 3 * 2816 / 2) + routedRows * expertRow;
constexpr double denseKeeps = tokens * 2 * 3 * 10944.0 / 2;

// Passes of a stage that are alive at once. Megatron-LM runs 2 (pp - rank - 1) + (chunks - 1) pp + 1 forwards ahead, 5
// on rank 0 and 3 on rank 1, two micro-batches through a chunk and then two through the next; each backward, from the
// last chunk on, has a forward beside it. Rank 0 holds F0 F1 | F0' F1' | F2 and F3 when B0' begins: 4 passes of stage 0
// and 2 of stage 2, and never more. Rank 1 holds 4 of stage 1 when B0 begins (all of its second chunk are done), or 3
// and 1, or 2 and 2 of stage 3, which has a layer less and so is never the most.
constexpr double attentionAlive[] = {4 * 7 + 2 * 7, 4 * 7}, moeAlive[] = {4 * 6 + 2 * 7, 4 * 7};

//===----------------------------------------------------------------------===//
// What a rank holds
//===----------------------------------------------------------------------===//

/// Parameters that data-parallel ranks hold alike: on dp * cp = 16 of them.
double alikeOf(int rank) {
  const double layers = rank == 0 ? 14 : 13;
  return layers * (attention + norms) + 13 * (router + shared) + (rank == 0 ? denseMlp + embedding : head);
}
/// Routed experts, of which 32 / (8 * 2) = 2 ranks of a stage hold the same.
constexpr double routed = 13 * 8 * expert;

// Worst routing: 2,048 tokens of each of 8 ranks (sp divides them by 2, etp gathers them again) all choose 6 of one
// rank's 8 experts; 8 rows begin a tile of 128, (98,304 - 8) / 128 is 767 full ones.
constexpr double received = 8 * 2048, worstRows = received * 6, paddedRows = (8 + 767) * 128;
constexpr double computedRow = (3 * 1408 / 2 + 2048) * 2;

std::vector<GoldenPart> memoryOf(int rank) {
  const double parameters = alikeOf(rank) + routed;
  std::vector<GoldenPart> parts = {
      {"parameters", 2 * parameters}, // bf16
      {"gradients", 4 * parameters},  // f32
      // zero=os: master f32, two moments in bf16, each on one of the ranks that hold the same
      {"optimizer", 8 * (alikeOf(rank) / 16 + routed / 2)},
      {"activations", attentionAlive[rank] * attentionKeeps + moeAlive[rank] * moeKeeps +
                          (rank == 0 ? 4 * denseKeeps : 0)}, // of the passes of stage 0
      {"activations of uneven routing", moeAlive[rank] * (worstRows - routedRows) * expertRow}};
  if (rank == 1)
    parts.push_back({"logits", tokens * 102400 * 4 / 2}); // f32, over tp
  parts.insert(parts.end(), {{"dispatch and combine", received * 2048 * (2 + 2)},
                             {"second communication buffer", received * 2048 * (2 + 2)},
                             {"rows of experts", worstRows * computedRow},
                             {"alignment padding", (paddedRows - worstRows) * computedRow},
                             // keys and values of 8 heads, and their gradients, in use and arriving
                             {"keys in the ring", 4 * tokens * (16 * (128 + 64 + 128) / 2) * 2},
                             {"buffers", 1e9}});
  double all = 0; // but for the states, which are allocated once
  for (size_t i = 3; i < parts.size(); ++i)
    all += parts[i].bytes;
  parts.push_back({"fragmentation", 0.05 * all});
  return parts;
}

TEST(TrainGolden, MemoryOfEachRank) {
  const ClusterPlan golden = plan();
  ASSERT_EQ(golden.memory.size(), 2u);
  expectMemory(golden.memory[0], memoryOf(0));
  expectMemory(golden.memory[1], memoryOf(1));
}

//===----------------------------------------------------------------------===//
// What moves in a step
//===----------------------------------------------------------------------===//

/// Weights in bf16 are read once a pass; kernels beside the products read and write rows, `reads` of which their
/// backward reads again; gradients of weights are added to sums in f32.
std::vector<GoldenStep> passes(const std::string &module, double parameters, double moves, double reads,
                               const std::string &phase) {
  if (phase == "forward")
    return {{phase, module, 8 * (2 * parameters + moves)}};
  return {{phase, module + ": inputs", 8 * (2 * parameters + moves + reads)},
          {phase, module + ": weights", 8 * (2 * 4 * parameters)}};
}

// Elements of a row as in ServeGoldenTest.cpp; sp halves what tp leaves whole.
constexpr double attentionReads = (2048 + 512 + 64 + (512 + 64) + 2 * 2048 + 3072) / 2.0;
constexpr double attentionWrites = (2048 + 576 + 512 + 64 + 2048 + 2048 + 3072 + 3072 + 16 * 128 + 16 * 320) / 2.0;
constexpr double besideReads = (2048 + 64 + 4096 + 4096 + 2 * 2816) / 2.0;
constexpr double besideWrites = (2048 + 64 + 2 * 6 + 2048 + 2048 + 2048 + 3 * 2816) / 2.0;
constexpr double expertReads = 2 * 2048 + 2 * 1408 / 2, expertWrites = 2 * 2048 + 3 * 1408 / 2;

/// Rank 1 has most to do: its 13 layers and the head are more than the dense layer and one attention.
TEST(TrainGolden, BytesOfAStep) {
  std::vector<GoldenStep> wanted;
  for (const char *phase : {"forward", "backward"})
    for (const std::vector<GoldenStep> &module :
         {passes("attention", 13 * (attention + norms), 13 * tokens * (attentionReads + attentionWrites) * 2,
                 13 * tokens * attentionReads * 2, phase),
          passes("experts", 13 * 8 * expert, 13 * routedRows * (expertReads + expertWrites) * 2,
                 13 * routedRows * expertReads * 2, phase),
          passes("dense, shared, router, head", 13 * (router + shared) + head,
                 13 * tokens * (besideReads + besideWrites) * 2 + tokens * 102400 * 4 / 2,
                 13 * tokens * besideReads * 2, phase)})
      wanted.insert(wanted.end(), module.begin(), module.end());
  const double hidden = 2048 * 2;
  for (const char *phase : {"forward", "backward"}) {
    // As in serving: 4 of the 8 expert ranks are on a node, the nodes of a group are 2, etp gathers what tp divides.
    wanted.push_back({phase, "dispatch, combine", 0,
                      8 * 13 * tokens / 2 * 2048 * (2 + 2) * (ranksVisited * (3 / 4.0 + 1) + nodesVisited / 2)});
    wanted.push_back({phase, "tensor parallel", 0, 8 * 13 * 2 * tokens * hidden});
    // The keys and values of the other half of the tokens; in the backward their gradients too.
    wanted.push_back({phase, "context parallel", 0,
                      8 * 13 * tokens * (16 * 320 / 2) * 2 * (phase == std::string("forward") ? 1 : 2)});
    wanted.push_back({phase, "pipeline", 0, 8 * 2 * tokens * hidden / 2}); // two stages; sp divides
  }
  wanted.push_back({"pipeline", "idle"});
  // A reduce-scatter of gradients and an all-gather of parameters, of rank 0's, which are more. The 16 ranks that hold
  // the same lie on 4 nodes: of 16 shares each receives 3 over the network, one from each other node, and 3 of 4 parts
  // of what its node has got within the node. Of the 2 shares of experts one comes from another node.
  const double shares = alikeOf(0) * (3 / 4.0 + 3 / 16.0) + routed / 2;
  wanted.push_back({"exchange", "gradients", 0, 4 * shares});
  wanted.push_back({"exchange", "parameters", 0, 2 * shares});
  // States are read and written, gradients read, parameters written, of rank 0's share.
  wanted.push_back({"optimizer", "update", (2 * 8 + 4 + 2) * (alikeOf(0) / 16 + routed / 2)});
  expectSteps(plan(), wanted);
}

} // namespace
