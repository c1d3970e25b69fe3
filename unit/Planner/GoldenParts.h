//===- GoldenParts.h - V2 Lite in numbers, for plans worked out by hand -----===//
//
// Golden bytes are written as products of the numbers in models/configs/deepseek-v2-lite/config.json and of the layout,
// so that a reader can check each; nothing of the planner is asked for them. The config: 27 layers of hidden 2048,
// 16 heads of 128 + 64 (keys) and 128 (values), latent 512, no query latent, vocabulary 102400; layer 0 is dense with
// inner width 10944, 26 layers have 64 experts of width 1408, of which a token chooses 6, and 2 shared ones.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_PLANNER_GOLDENPARTS_H
#define K2C_UNIT_PLANNER_GOLDENPARTS_H

#include "ClusterQuestion.h"

namespace k2c::test {

/// A part by its name, and what it is to be.
struct GoldenPart {
  std::string name;
  double bytes;
};

// Parameters of a layer, on a rank of tp 2 and etp 2 where they are divided.
constexpr double latentDown = 2048 * (512 + 64);    ///< whole on every rank
constexpr double queries = 2048 * 16 * (128 + 64);  ///< tp divides these four
constexpr double latentUp = 512 * 16 * (128 + 128); ///< W_UK and W_UV
constexpr double attentionOut = 16 * 128 * 2048;    ///< W_O
constexpr double attention = latentDown + (queries + latentUp + attentionOut) / 2;
constexpr double norms = 2048 + 2048 + 512;    ///< before attention, before experts, of the latent
constexpr double router = 64 * 2048;           ///< whole on every rank
constexpr double expert = 3 * 2048 * 1408 / 2; ///< gate, up, down; etp divides
constexpr double shared = 3 * 2048 * (2 * 1408) / 2;
constexpr double denseMlp = 3.0 * 2048 * 10944 / 2;
constexpr double embedding = 102400.0 * 2048 / 2;
constexpr double head = (102400.0 * 2048 + 2048) / 2; ///< with the norm before it

// Of 64 experts a token chooses 6 at random; with C(64, 6) = 74,974,368 ways, C(56, 6) = 32,468,436 of which avoid one
// of 8 ranks and C(32, 6) = 906,192 one of 2 halves of them.
constexpr double ranksVisited = 8 * (1 - 32468436 / 74974368.0);
constexpr double nodesVisited = 2 * (1 - 906192 / 74974368.0);

/// Compares every part of a rank's memory: none is missing, none is more. A part is rounded up to a whole byte.
inline void expectMemory(const RankMemory &memory, const std::vector<GoldenPart> &wanted) {
  std::string names, wantedNames;
  for (const MemoryPart &part : memory.parts)
    names += part.name + "; ";
  for (const GoldenPart &part : wanted)
    wantedNames += part.name + "; ";
  ASSERT_EQ(names, wantedNames) << "ranks " << memory.ranks;
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(double(memory.parts[i].bytes.value), wanted[i].bytes, 1) << memory.ranks << ": " << wanted[i].name;
}

/// A part of a step: bytes of memory read and written, and bytes received over links.
struct GoldenStep {
  std::string phase, name;
  double memory = 0, links = 0;
};

/// Compares every part of the plan's steps, likewise.
inline void expectSteps(const ClusterPlan &plan, const std::vector<GoldenStep> &wanted) {
  std::string names, wantedNames;
  for (const StepPart &step : plan.steps)
    names += step.phase + ": " + step.name + "; ";
  for (const GoldenStep &step : wanted)
    wantedNames += step.phase + ": " + step.name + "; ";
  ASSERT_EQ(names, wantedNames);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const GoldenStep &want = wanted[i];
    EXPECT_NEAR(plan.steps[i].memoryBytes, want.memory, 1e-9 * want.memory) << want.phase << ": " << want.name;
    EXPECT_NEAR(plan.steps[i].linkBytes, want.links, 1e-9 * want.links) << want.phase << ": " << want.name;
  }
}

} // namespace k2c::test

#endif // K2C_UNIT_PLANNER_GOLDENPARTS_H
