//===- RefusedTest.cpp - Refused plans as text, JSON and pages ------------===//

#include "SamplePlan.h"

#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::test;

namespace {

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST(Refused, APageSaysWhyAndWhatWouldHelp) {
  const Topology topology = sampleTopology();
  const ClusterPlan plan = sampleTraining();
  RefusedPlan refused{{"memory", "ranks 2-3 need <more>", "use fewer"}, plan, {}, {}, {}};
  refused.fewest = Remedy{{{"--layout", "dp=2"}}, {}, {}, {"--search"}, sampleServing()};
  const std::string page = planHtml({plan, topology, nullptr, nullptr, &refused});
  EXPECT_TRUE(has(page, "<section id=\"refused\""));
  EXPECT_TRUE(has(page, "memory: ranks 2-3 need &lt;more&gt;; use fewer"));
  EXPECT_TRUE(has(page, "<li>too large: optimizer, 40.98 GiB (44.00 GB) of "));
  EXPECT_TRUE(has(page, "<li>fewest devices: 4, --layout dp=2 in place of --search: "));
  EXPECT_FALSE(has(page, "no remedy")); // these devices are of the topology
  EXPECT_FALSE(has(planHtml({plan, topology}), "id=\"refused\""));
}

TEST(Refused, AMemoryTableIsOfMemoryThatIsTooSmall) {
  RefusedPlan refused{{"targets", "a token takes 9 ms", ""}, sampleServing(), {}, {}, {}};
  refused.unmet = UnmetTarget{false, Seconds(0.001), Seconds(0.009), "tp=4"};
  EXPECT_EQ(refusedText(refused), "cannot be met on 2x2: each token within 1 ms: the best layout, tp=4, takes 9 ms\n");
  EXPECT_EQ(refusedJson(refused)["refused"]["unmet"]["best_s"], 0.009);
  refused.plan = sampleTraining();
  EXPECT_NE(refusedText(refused).find("\n  ranks  part"), std::string::npos);
  EXPECT_EQ(refusedText({{"workload 'w'", "has too long sequences", ""}, {}, {}, {}, {}}), "");
}

} // namespace
