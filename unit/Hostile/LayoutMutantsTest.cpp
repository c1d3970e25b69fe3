//===- LayoutMutantsTest.cpp - layouts as nobody would write them ---------===//
//
// Texts of --layout whose numbers and keys are exchanged, repeated or damaged, of one pool, of two, of one of these two
// and of training: each is planned, or refused with one message. A plan that must fit does, and its numbers are
// numbers.
//
//===----------------------------------------------------------------------===//
#include "Mutator.h"
#include "k2c/Planner/Evaluate.h"

#include <cmath>
#include <gtest/gtest.h>
#include <sstream>

using namespace k2c;
using namespace k2c::test;

namespace {

const char *const values[] = {"0",
                              "1",
                              "2",
                              "3",
                              "4",
                              "5",
                              "8",
                              "16",
                              "32",
                              "64",
                              "-1",
                              "1048576",
                              "1048577",
                              "9223372036854775807",
                              "9223372036854775808",
                              "1e3",
                              "",
                              "x",
                              " 8",
                              "+8"};
const char *const phases[] = {"both", "prefill", "decode", "1"};
const char *const keys[] = {"tp",
                            "ep",
                            "etp",
                            "pp",
                            "dp",
                            "cp",
                            "replicas",
                            "vocab",
                            "redundant",
                            "step",
                            "overlap",
                            "phase",
                            "chunks",
                            "microbatches",
                            "prefill.tp",
                            "prefill.ep",
                            "prefill.etp",
                            "prefill.pp",
                            "prefill.dp",
                            "prefill.cp",
                            "prefill.replicas",
                            "prefill.vocab",
                            "prefill.redundant",
                            "prefill.step",
                            "prefill.overlap",
                            "prefill.",
                            "prefill.prefill.ep",
                            "prefill",
                            ""};

/// One or two entries get another number or key; one text in four is damaged byte by byte.
std::string mutant(const std::string &text, uint32_t seed) {
  Mutator random(seed);
  if (seed % 4 == 0)
    return random.bytes(text);
  std::vector<std::string> entries;
  std::istringstream in(text);
  for (std::string entry; std::getline(in, entry, ',');)
    entries.push_back(entry);
  for (size_t i = 0; i <= random.below(2); ++i) {
    std::string &entry = entries[random.below(entries.size())];
    const std::string key = random.below(2) ? entry.substr(0, entry.find('=')) : keys[random.below(std::size(keys))];
    entry = key + "=" +
            (key == "phase" ? phases[random.below(std::size(phases))] : values[random.below(std::size(values))]);
  }
  std::string out;
  for (const std::string &entry : entries)
    out += (out.empty() ? "" : ",") + entry;
  return out;
}

void judge(const PlanRequest &request, const std::string &text, int minPlanned, int minRefused) {
  int planned = 0, refused = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const std::string changed = mutant(text, seed);
    Expected<ParallelLayout> layout = parseLayout(changed, request.phase);
    Expected<ClusterPlan> plan = layout ? evaluate(request, *layout) : Expected<ClusterPlan>(layout.takeError());
    if (!plan) {
      ++refused;
      const std::string said = plan.error().text();
      EXPECT_FALSE(plan.error().where.empty()) << changed << ": " << said;
      EXPECT_EQ(said.find('\n'), std::string::npos) << changed;
      continue;
    }
    ++planned;
    EXPECT_TRUE(!request.mustFit || plan->fits()) << changed;
    EXPECT_LE(plan->devices, plan->available) << changed;
    for (const Figure &figure : plan->figures)
      EXPECT_TRUE(std::isfinite(figure.value) && figure.value >= 0) << changed << ": " << figure.key;
    // What is printed is read back as the same layout.
    Expected<ParallelLayout> again = parseLayout(format(plan->layout, request.phase), request.phase);
    EXPECT_TRUE(again && format(*again, request.phase) == format(plan->layout, request.phase)) << changed;
  }
  EXPECT_GE(planned, minPlanned);
  EXPECT_GE(refused, minRefused);
}

TEST(LayoutMutants, ArePlannedOrRefused) {
  const Expected<ModelSpec> spec = loadPublishedModel("deepseek-v2-lite");
  const Expected<Topology> topology = loadTopology("4x8-h100");
  ASSERT_TRUE(spec && topology);
  Workload workload;
  for (bool mustFit : {true, false}) {
    PlanRequest request{*spec, *topology, workload};
    request.mustFit = mustFit;
    judge(request, "tp=2,ep=8,dp=4,overlap=1,redundant=8,replicas=2", 10, 100);
    judge(request, "ep=8,cp=2,dp=4,step=4096", 10, 100);
    judge(request, "ep=4,etp=2,dp=8,vocab=8,replicas=2,overlap=1", 10, 100);
    judge(request, "phase=decode,ep=8,dp=8,replicas=2,overlap=1", 10, 100);
    judge(request, "phase=prefill,ep=8,cp=2,step=4096,redundant=8", 10, 100);
    judge(request, "ep=8,dp=8,replicas=2,prefill.ep=8,prefill.cp=4,prefill.step=1024,prefill.redundant=8", 10, 100);
    request.phase = PlanPhase::Train;
    judge(request, "ep=8,etp=2,dp=16,pp=2,schedule=1f1b,microbatches=8,zero=os,recompute=full", 10, 100);
  }
}

} // namespace
