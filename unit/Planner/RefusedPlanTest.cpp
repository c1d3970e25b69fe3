//===- RefusedPlanTest.cpp - What would help a refused plan --------------------===//
#include "ClusterQuestion.h"

#include "k2c/Planner/ComputeType.h"
#include "k2c/Planner/RefusedPlan.h"

using namespace k2c;
using namespace k2c::test;

namespace {

using Entries = Remedy::Entries;

/// Why `q` is refused under a layout, or by the search of all.
RefusedPlan refused(const Question &q, const std::string &text) {
  Expected<ClusterPlan> plan = evaluate(q.request, layout(text, q.request.phase));
  EXPECT_FALSE(plan);
  return explainRefused(q.request, layout(text, q.request.phase), LayoutOrigin::Given,
                        plan ? Error() : plan.takeError());
}

RefusedPlan searched(const Question &q) {
  Expected<PlanSearch> found = search(q.request);
  EXPECT_FALSE(found);
  return explainRefused(q.request, largestDefault(q.request), LayoutOrigin::Searched,
                        found ? Error() : found.takeError());
}

TEST(RefusedPlanTest, OfASearchTheLargestBatchOfAnyLayoutIsEnough) {
  Question q("deepseek-v3", "4x8-h200");
  q.workload.serve.batch = 1'000'000;
  const RefusedPlan refusal = searched(q);
  ASSERT_TRUE(refusal.remedy);
  EXPECT_TRUE(refusal.remedy->flags.empty());
  ASSERT_EQ(refusal.remedy->workload.size(), 1u);
  q.workload.serve.batch = std::stoll(refusal.remedy->workload[0].second);
  Expected<PlanSearch> found = search(q.request);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(format(found->best.layout, PlanPhase::Serve), format(refusal.remedy->plan.layout, PlanPhase::Serve));
  q.workload.serve.batch = *q.workload.serve.batch + 32; // one more of each rank
  EXPECT_FALSE(search(q.request));
}

TEST(RefusedPlanTest, OfASearchACacheInFp8ComesBeforeFewerSequences) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.serve.batch = 10'000;
  EXPECT_EQ(searched(q).remedy->flags, (Entries{{"--cache", "fp8"}}));
  q.machines.device.fp8.reset();
  EXPECT_EQ(searched(q).remedy->workload[0].first, "batch");
}

TEST(RefusedPlanTest, FewestDevicesOfASearchHaveALayoutInItsPlace) {
  Question q("gpt-oss-120b", "gb300-nvl72", PlanPhase::Train);
  const RefusedPlan refusal = searched(q);
  ASSERT_TRUE(refusal.fewest);
  ASSERT_EQ(refusal.fewest->flags.size(), 1u);
  EXPECT_EQ(refusal.fewest->inPlaceOf, std::vector<std::string>{"--search"});
  EXPECT_TRUE(evaluate(q.request, layout(refusal.fewest->flags[0].second, PlanPhase::Train)));
  q.request.objective = Objective::Latency; // of training, it has no meaning beside a layout
  EXPECT_EQ(searched(q).fewest->inPlaceOf, (std::vector<std::string>{"--search", "--objective"}));
  Question given("kimi-k2", "h100x8");
  EXPECT_TRUE(refused(given, "ep=8").fewest->inPlaceOf.empty());
}

/// An even share is an assumption: what costs users precision or requests is taken back first.
TEST(RefusedPlanTest, OfSeveralChangesTheAssumptionStays) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.peakRouting = Routing::Worst;
  q.request.weights = WeightFormat::F32;
  const RefusedPlan refusal = refused(q, "ep=32,step=16384");
  ASSERT_TRUE(refusal.remedy);
  EXPECT_EQ(refusal.remedy->workload, (Entries{{"routing", "mean"}}));
  for (const auto &[flag, value] : refusal.remedy->flags)
    EXPECT_NE(flag, "--cache");
}

TEST(RefusedPlanTest, FewerSequencesAreAsManyAsFitUnderEveryObjective) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.serve.batch = 1 << 20;
  const std::string most = refused(q, "ep=32").remedy->workload.at(0).second;
  EXPECT_GT(std::stoll(most), 32); // more than one of each rank
  q.request.objective = Objective::Latency;
  EXPECT_EQ(refused(q, "ep=32").remedy->workload.at(0).second, most);
}

TEST(RefusedPlanTest, ATargetThatNoLayoutReachesIsUnmet) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.serve.timePerToken = Seconds(0.001);
  const RefusedPlan refusal = refused(q, "ep=32");
  EXPECT_FALSE(refusal.remedy);
  ASSERT_TRUE(refusal.unmet);
  EXPECT_FALSE(refusal.unmet->isFirst);
  EXPECT_GT(refusal.unmet->best, q.workload.serve.timePerToken);
  q.workload.serve.timePerToken = refusal.unmet->best * 1.01;
  q.request.objective = Objective::Latency;
  EXPECT_TRUE(search(q.request));
  q.workload.serve.timePerToken.reset();
  q.workload.serve.timeToFirstToken = Seconds(0.001);
  EXPECT_TRUE(refused(q, "ep=32").unmet->isFirst);
}

TEST(RefusedPlanTest, OneProcessIsToldTheLargestLimit) {
  const ModelSpec spec = *loadPublishedModel("olmoe-1b-7b");
  const Topology cpu = topology("cpu1");
  HostRequest request{spec, cpu, defaultLimits(spec), {}, {}, true};
  auto remedy = [&] {
    Expected<Plan> plan = planHost(spec, cpu, request.limits, request.options, request.measured);
    EXPECT_FALSE(plan);
    return explainRefusedHost(request, plan ? Error() : plan.takeError());
  };
  const RefusedPlan refusal = remedy();
  EXPECT_EQ(refusal.tooLarge()->name, "cache");
  EXPECT_EQ(refusal.remedy->flags, (Entries{{"--max-sequences", "11"}}));
  EXPECT_FALSE(refusal.fewest);
  request.measured.arena = gibibytes(3); // which k2c adds, so that fewer fit
  EXPECT_EQ(remedy().remedy->flags, (Entries{{"--max-sequences", "8"}}));
  request.measured.arena = gibibytes(11); // not one whole sequence
  EXPECT_EQ(remedy().remedy->flags.back().first, "--max-context");
  request.measured.arena = gibibytes(24);
  EXPECT_FALSE(remedy().remedy);
  EXPECT_EQ(remedy().fewest->flags.front().first, "--topology");
  request.measured.arena = Bytes(0);
  request.holdsLeast = false; // a compiler refuses one sequence of one token
  EXPECT_FALSE(remedy().remedy);
}

} // namespace
