//===- PipelineStagesTest.cpp - Pipelines whose stages differ -------------===//
#include "ClusterQuestion.h"
#include "SampleSchedule.h"
#include "k2c/Formulas/Query.h"

#include <numeric>

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

std::vector<PipelineSchedule> oneOfEach() {
  return {make(PipelineKind::GPipe, 4, 6),          make(PipelineKind::OneFOneB, 4, 6),
          make(PipelineKind::Interleaved, 4, 8, 2), make(PipelineKind::ZeroBubbleH1, 4, 6),
          make(PipelineKind::DualPipe, 4, 10),      make(PipelineKind::DualPipeV, 4, 10)};
}

std::string answer(const json &inputs) {
  Expected<JsonDocument> document = parseJson(inputs.dump(), "inputs");
  Expected<nlohmann::ordered_json> found = answerQuery("schedule", *document);
  return found ? (*found)["simulation"].dump() : found.error().text();
}

TEST(PipelineStagesTest, EqualStagesTakeWhatOneDurationSays) {
  for (const PipelineSchedule &schedule : oneOfEach()) {
    const PipelineDurations alike{1.25, 1.5, 0.875, std::nullopt};
    const double share = 1.0 / double(schedule.shape.chunks);
    const std::vector<PipelineStageTimes::Stage> stages(
        size_t(stageCount(schedule.shape)), {share * alike.forward, share * alike.inputGrad, share * alike.weightGrad});
    Expected<PipelineTimeline> one = simulate(schedule, alike),
                               each = simulate(schedule, PipelineStageTimes(schedule.shape, stages));
    ASSERT_TRUE(one && each);
    EXPECT_EQ(one->makespan, each->makespan);
    EXPECT_EQ(one->idle, each->idle);
  }
}

/// Two stages of which the second takes longer: rank 0 has F 1, B 2, rank 1 F 3, B 4.
///   rank 0   F0 0-1  F1 1-2                B0 8-10               B1 15-17
///   rank 1           F0 1-4  B0 4-8        F1 8-11  B1 11-15
TEST(PipelineStagesTest, ASlowStageMakesTheOthersWait) {
  const PipelineSchedule schedule = make(PipelineKind::OneFOneB, 2, 2);
  Expected<PipelineTimeline> run = simulate(schedule, PipelineStageTimes(schedule.shape, {{1, 1, 1}, {3, 2, 2}}));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->makespan, 17);
  EXPECT_EQ(run->idle, (std::vector<double>{17 - 2 * 3, 17 - 2 * 7}));
}

/// Each rank is busy for as long as the stages that it holds, however late they run.
TEST(PipelineStagesTest, RanksWorkOnTheirOwnStages) {
  for (const PipelineSchedule &schedule : oneOfEach()) {
    const PipelineRoute route(schedule.shape);
    std::vector<PipelineStageTimes::Stage> stages;
    for (int64_t stage = 0; stage < stageCount(schedule.shape); ++stage)
      stages.push_back({1 + double(stage), 2 + double(stage), 1});
    Expected<PipelineTimeline> run = simulate(schedule, PipelineStageTimes(schedule.shape, stages));
    ASSERT_TRUE(run);
    for (int32_t rank = 0; rank < schedule.shape.pp; ++rank) {
      double busy = 0;
      for (int32_t lane = 0; lane < route.lanes(); ++lane) {
        const auto &stage = stages[size_t(stageOf(schedule.shape, {rank, lane}))];
        busy += route.microbatches() * (stage.forward + stage.backward());
      }
      EXPECT_NEAR(run->makespan - run->idle[size_t(rank)], busy, 1e-9) << int(schedule.shape.kind);
    }
  }
}

TEST(PipelineStagesTest, FullestMomentsHoldThePeak) {
  for (const PipelineSchedule &schedule : oneOfEach()) {
    Expected<PipelineTimeline> run = simulate(schedule, PipelineDurations());
    for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      int64_t most = 0;
      for (const std::vector<int64_t> &moment : fullestMoments(schedule, rank))
        most = std::max(most, std::accumulate(moment.begin(), moment.end(), int64_t(0)));
      EXPECT_EQ(most, run->peakStash[rank]);
    }
  }
}

TEST(PipelineStagesTest, QueriesTakeListsOfStages) {
  const json shape = {{"schedule", "1f1b"}, {"pp", 2}, {"microbatches", 2}};
  json inputs = shape;
  inputs.update({{"F", {1, 3}}, {"Bi", {1, 2}}, {"W", {1, 2}}});
  EXPECT_EQ(answer(inputs), R"({"makespan":17.0,"bubble_per_rank":[11.0,3.0],"peak_stashed_chunks":[2,1],)"
                            R"("bubble":11.0,"bubble_source":"simulation"})");
  inputs["W"] = 1;
  EXPECT_TRUE(has(answer(inputs), R"("makespan":15.0)"));
  inputs["Bi"] = {1, 2, 3};
  EXPECT_EQ(answer(inputs), "inputs:1:2: 'Bi' is of 3 stages, the schedule has 2; list each stage of the model, in the "
                            "order of its layers");
  inputs["Bi"] = {1, "two"};
  EXPECT_TRUE(has(answer(inputs), "Bi"));
}

struct Training : Question {
  explicit Training(const std::string &model = "deepseek-v3", const std::string &cluster = "2048-h800")
      : Question(model, cluster, PlanPhase::Train) {
    request.mustFit = false;
  }
};

TEST(PipelineStagesTest, LayoutsNameTheLayersOfStages) {
  const std::string text = "pp=16,dp=16,schedule=1f1b,layers=3+4x14+2";
  const ParallelLayout read = layout(text, PlanPhase::Train);
  EXPECT_EQ(read.layers.size(), 16u);
  EXPECT_EQ(format(read, PlanPhase::Train), "pp=16,dp=16,schedule=1f1b,layers=3+4x14+2");
  for (const char *bad : {"layers=", "layers=4xx2", "layers=4+", "layers=-1", "layers=4x0", "layers=1x999999"}) {
    Expected<ParallelLayout> refused = parseLayout(bad, PlanPhase::Train);
    ASSERT_FALSE(refused) << bad;
    EXPECT_TRUE(has(refused.error().text(), "write layers=3+4x14+2: 3 layers, 14 times 4, 2")) << bad;
  }
  Training q;
  EXPECT_EQ(q.refusal("pp=16,dp=16,layers=4x15+2"),
            "layers: sum to 62, model 'deepseek-v3' has 61; name each, as in layers=3+4x14+2");
  EXPECT_EQ(q.refusal("pp=16,dp=16,schedule=interleaved,chunks=2,layers=4x15+1"),
            "layers: are of 16 stages, interleaved with pp 16 and chunks 2 has 32; name each, as in layers=3+4x14+2");
}

/// Every parameter lies on one rank, the head too where the last stages have no layers.
TEST(PipelineStagesTest, StagesWithoutLayersHoldNothingTwice) {
  Training q("olmoe-1b-7b", "h100x8");
  for (const char *more : {"", ",layers=1x14+2+0x17", ",layers=0x2+1x15+0x14+1"}) {
    const ClusterPlan plan = q.plan(std::string("pp=8,schedule=interleaved,chunks=4,microbatches=16") + more);
    int64_t sum = 0;
    for (const RankMemory &ranks : plan.memory)
      sum += ranks.parameters;
    EXPECT_EQ(sum, totalParameters(q.spec).value()) << more;
  }
}

/// The head of Kimi K2 is longer than a layer.
TEST(PipelineStagesTest, FewerLayersBesideTheHeadShortenTheStep) {
  Training q("kimi-k2");
  const std::string text = "ep=16,dp=128,pp=16,recompute=full,zero=os";
  const ClusterPlan even = q.plan(text), less = q.plan(text + ",layers=4x14+3+2");
  EXPECT_LT(*less.figure("step_s"), *even.figure("step_s"));
  EXPECT_LT(*less.figure("bubble"), *even.figure("bubble"));
  double sum = 0;
  for (const StepPart &step : less.steps)
    sum += step.exposed().value;
  EXPECT_NEAR(sum, *less.figure("step_s"), 1e-9 * sum);
}

TEST(PipelineStagesTest, FewerLayersOnTheFirstStageKeepLess) {
  Training q("kimi-k2");
  const std::string text = "ep=16,dp=128,pp=16,recompute=none,zero=os,layers=";
  EXPECT_LT(q.plan(text + "3+4x14+2").fullest().total(), q.plan(text + "4x14+3+2").fullest().total());
}

/// No layer of the best plan, moved to another stage, makes it faster.
TEST(PipelineStagesTest, SearchChoosesTheSplit) {
  Training q("llama-3.3-70b", "4x8-h100");
  q.request.mustFit = true;
  q.workload.train.batchTokens = 256 * 4096;
  Expected<PlanSearch> result = search(q.request);
  ASSERT_TRUE(result);
  const ParallelLayout best = result->best.layout;
  ASSERT_GT(best.pp, 1) << format(best, PlanPhase::Train);
  ASSERT_FALSE(best.layers.empty()) << format(best, PlanPhase::Train);
  ParallelLayout even = best;
  even.layers.clear();
  Expected<ClusterPlan> slower = evaluate(q.request, even);
  ASSERT_TRUE(slower);
  EXPECT_GT(*slower->figure("step_s"), 1.002 * *result->best.figure("step_s"));
  for (size_t from = 0; from < best.layers.size(); ++from)
    for (size_t to = 0; to < best.layers.size(); ++to) {
      ParallelLayout other = best;
      if (from == to || other.layers[from]-- == 0)
        continue;
      ++other.layers[to];
      Expected<ClusterPlan> plan = evaluate(q.request, other);
      ASSERT_TRUE(plan);
      EXPECT_GE(*plan->figure("step_s"), 0.999 * *result->best.figure("step_s")) << format(other, PlanPhase::Train);
    }
}

} // namespace
