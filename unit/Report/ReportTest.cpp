//===- ReportTest.cpp - Tables, JSON, pages and traces of plans -----------===//

#include "SamplePlan.h"
#include "k2c/Model/Source.h"
#include "k2c/Planner/Evaluate.h"
#include "k2c/Planner/Planner.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

/// Every number inside a value.
void collect(const json &value, std::set<double> &numbers) {
  if (value.is_number())
    numbers.insert(value.get<double>());
  if (value.is_structured())
    for (const json &item : value)
      collect(item, numbers);
}

/// The values of all `data-value` attributes.
std::set<double> numbersOf(const std::string &page) {
  std::set<double> numbers;
  const std::string key = "data-value=\"";
  for (size_t at = 0; (at = page.find(key, at)) != std::string::npos;) {
    at += key.size();
    numbers.insert(std::stod(page.substr(at, page.find('"', at) - at)));
  }
  return numbers;
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++found;
  return found;
}

void expectEveryNumber(const PlanReport &report) {
  std::set<double> wanted;
  collect(json::parse(planJson(report).dump()), wanted);
  const std::set<double> shown = numbersOf(planHtml(report));
  for (double number : wanted)
    EXPECT_TRUE(shown.count(number)) << number;
}

} // namespace

TEST(Report, ThePageHasEveryNumberOfTheJson) {
  const Topology topology = sampleTopology();
  const PlanSearch search = sampleSearch();
  expectEveryNumber({search.best, topology, &search});
  expectEveryNumber({sampleTraining(), topology});
}

TEST(Report, JsonReadsBackExactly) {
  const Topology topology = sampleTopology();
  const ClusterPlan plan = sampleServing();
  const json back = json::parse(planJson({plan, topology}).dump());
  EXPECT_EQ(back["memory"][0]["parts"]["cache"], 22'000'000'007);
  EXPECT_EQ(back["memory"][0]["total_bytes"], plan.memory[0].total().value);
  EXPECT_EQ(back["figures"]["tpot_s"]["value"], 0.020725);
  EXPECT_EQ(back["steps"][7]["bound"], "latency");
  EXPECT_TRUE(back["fits"]);
  EXPECT_FALSE(back.contains("search"));
}

TEST(Report, AnswersTheThreeQuestions) {
  const Topology topology = sampleTopology();
  const ClusterPlan plan = sampleServing();
  const PlanSummary summary = summarize({plan, topology});
  EXPECT_EQ(summary.fit, "fits: ranks 0-3 hold 60.24 GiB (64.68 GB) of 74.51 GiB (80.00 GB), 81 %");
  ASSERT_EQ(summary.bounds.size(), 2u);
  EXPECT_EQ(summary.bounds[0], "prefill is bound by compute; its longest part is attention: 11 ms, 44 % of 24.9 ms");
  EXPECT_EQ(summary.bounds[1], "decode is bound by memory; its longest part is attention: 9.1 ms, 46 % of 19.9 ms");
  EXPECT_EQ(summary.advice.size(), 2u);
  const std::string page = planHtml({plan, topology});
  const std::vector<std::string> order = {"class=\"verdict good\"", "<h3>What bounds it</h3>\n",
                                          "<h3>What would change it</h3>\n"};
  EXPECT_LT(page.find(order[0]), page.find(order[1]));
  EXPECT_LT(page.find(order[1]), page.find(order[2]));
  EXPECT_LT(page.find(order[2]), page.size());
}

TEST(Report, SaysByHowMuchAPlanDoesNotFit) {
  const Topology topology = sampleTopology();
  const ClusterPlan plan = sampleTraining();
  const PlanSummary summary = summarize({plan, topology});
  EXPECT_FALSE(summary.fits);
  EXPECT_EQ(summary.fit,
            "does not fit: ranks 2-3 hold 80.73 GiB (86.68 GB) of 74.51 GiB (80.00 GB), 6.22 GiB (6.68 GB) too much");
  EXPECT_EQ(summary.advice[0],
            "optimizer takes most, 40.98 GiB (44.00 GB): ZeRO (zero=os or os+g), offload=optimizer or more "
            "data-parallel ranks");
  const std::string page = planHtml({plan, topology});
  EXPECT_EQ(count(page, "class=\"over\""), 1u);
}

// What people ask for first, in the words that they use; a CPU is no GPU.
TEST(Report, SixFiguresComeFirst) {
  Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  plan.figures.push_back({"output_tokens_per_s_per_device", "generated tokens/s per GPU", 10308.64, "tokens/s"});
  const std::string table = planTable({plan, topology});
  EXPECT_EQ(table.substr(0, table.find("fits: ")),
            "tiny on 2x2, serving, workload default\n"
            "layout ep=4,dp=4,step=2048; compute bf16, weights as published, cache bf16\n\n"
            "  GPUs                          4  of 4\n"
            "  TTFT                     221 ms\n"
            "  TPOT                    20.7 ms  per user 48.25 tokens/s\n"
            "  tok/s per GPU            10,309  generated; all 41,235 tokens/s\n"
            "  $ per million tokens     0.0625\n"
            "  head room             14.27 GiB  19 % of the fullest GPU (15.32 GB)\n\n");
  topology.device.kind = DeviceKind::Cpu;
  EXPECT_NE(planTable({plan, topology}).find("  tok/s per device "), std::string::npos);
}

TEST(Report, TrainingHasItsOwnSixFigures) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleTraining();
  plan.figures = {{"tokens_per_s_per_device", "tokens/s per GPU", 3139, "tokens/s"},
                  {"step_s", "step time", 4.5, "s"},
                  {"tokens_per_step", "tokens per step", 1048576, "tokens"},
                  {"mfu", "MFU", 0.41, ""},
                  {"bubble", "bubble", 0.12, ""}};
  const std::string table = planTable({plan, topology});
  EXPECT_NE(table.find("  step time             4.5 s  for 1,048,576 tokens\n"
                       "  tok/s per GPU         3,139\n"
                       "  MFU                    41 %  bubble 12 %\n"
                       "  $ per million tokens      -  the workload states no dollars_per_device_hour\n"
                       "  head room              none  6.22 GiB (6.68 GB) too much\n"),
            std::string::npos)
      << table;
}

TEST(Report, AllTokensOfATrainingComeWithTheHeadline) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleTraining();
  EXPECT_EQ(planTable({plan, topology}).find("all tokens"), std::string::npos);
  plan.figures.insert(plan.figures.end(), {{"total_days", "days for all tokens", 371.8, "days"},
                                           {"total_device_hours", "device-hours for them", 2284401.2, "hours"},
                                           {"total_dollars", "dollars for them", 4568802, "$"}});
  const PlanReport report{plan, topology};
  EXPECT_NE(planTable(report).find(" all tokens            371.8 days  2,284,401 GPU-hours, 4,568,802 $\n"),
            std::string::npos)
      << planTable(report);
  EXPECT_NE(planHtml(report).find("<dd class=\"beside\">2,284,401 GPU-hours, 4,568,802 $</dd>"), std::string::npos);
  expectEveryNumber(report);
}

TEST(Report, WithoutASecondTokenThereIsNoTimeBetweenTwo) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  plan.figures.erase(plan.figures.begin() + 3);
  const std::string table = planTable({plan, topology});
  EXPECT_NE(table.find("  TPOT                          -  no second token is generated\n"), std::string::npos)
      << table;
  EXPECT_NE(planHtml({plan, topology}).find("<dt>TPOT</dt><dd>-</dd>"), std::string::npos);
}

TEST(Report, TypesAreSpeltAsFlagsAre) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  plan.cache = DType::F8E4M3;
  EXPECT_NE(planTable({plan, topology}).find(", cache fp8\n"), std::string::npos);
  EXPECT_EQ(planHtml({plan, topology}).find("f8E4M3FN"), std::string::npos);
  EXPECT_EQ(planJson({plan, topology})["cache"], "f8E4M3FN");
}

// With transfers beside work, a phase is as long as the longer lane, and that lane's longest part bounds it.
TEST(Report, OverlappedPhasesAreBoundByTheirLongerLane) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  plan.layout.overlap = true;
  plan.overlapped = {"prefill", "decode"};
  plan.steps[6].seconds = Seconds(0.02);
  const PlanSummary summary = summarize({plan, topology});
  EXPECT_EQ(summary.bounds[1], "decode is bound by the bandwidth of links (tier network); its longest part is "
                               "dispatch, combine: 20 ms, 99 % of 20.2 ms with transfers beside it");
}

TEST(Report, AnUnevenPipelineIsToldToMoveLayers) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleTraining();
  plan.timeline.back().begin = Seconds(3); // rank 0 works 3.5 s of 4.5, rank 1 works 3
  const PlanSummary summary = summarize({plan, topology});
  EXPECT_EQ(std::count(summary.advice.begin(), summary.advice.end(),
                       "the busiest rank is idle 22 %: give stages with a head or longer layers fewer of them "
                       "(layers=3+4x14+2; --search chooses)"),
            1);
  EXPECT_EQ(summary.bounds.back(), "the bubble is 28 % of the pipeline's time, the mean of its ranks");
}

// What runs beside other parts does not lengthen its phase.
TEST(Report, HiddenTimeIsStatedAndLeftOutOfPhases) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleTraining();
  plan.timeline.clear();
  plan.steps.push_back({"exchange", "gradients", Seconds(3), Flops(0), 0, 1e11, "network", Bound::Link, Seconds(1.25)});
  const PlanReport report{plan, topology};
  const PlanSummary summary = summarize(report);
  EXPECT_EQ(summary.bounds[2],
            "exchange is bound by the bandwidth of links (tier network); its longest part is gradients: 1.75 s, "
            "100 % of 1.75 s");
  EXPECT_EQ(summary.advice.back(), "exchange: gradients cross tier network; more tokens a step share it");
  EXPECT_EQ(planJson(report)["steps"][2]["hidden_seconds"], 1.25);
  EXPECT_NE(planTable(report).find("  3 s  1.25 s  100 % "), std::string::npos) << planTable(report);
  EXPECT_NE(planHtml(report).find("1.25 s more beside other parts"), std::string::npos);
  expectEveryNumber(report);
}

TEST(Report, AHostThatIsTooSmallDoesNotFit) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleTraining();
  plan.memory.pop_back();
  plan.memory[0].host = Bytes(600'000'000'000);
  plan.host = HostMemory{Bytes(1'200'000'000'000), Bytes(1'000'000'000'000)};
  const PlanReport report{plan, topology};
  EXPECT_FALSE(plan.fits());
  EXPECT_EQ(summarize(report).fit, "does not fit: a node's host holds 1.09 TiB (1.20 TB) of 931.32 GiB (1.00 TB)");
  EXPECT_EQ(planJson(report)["host"]["node_bytes"], 1'200'000'000'000);
  expectEveryNumber(report);
  plan.host->capacity = plan.host->bytes;
  EXPECT_TRUE(plan.fits());
}

// The planner may leave overlap out of a phase where it does not pay.
TEST(Report, APhaseThatThePlanDoesNotOverlapIsNotDrawnSo) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  plan.layout.overlap = true;
  plan.overlapped = {"prefill"};
  const PlanSummary summary = summarize({plan, topology});
  EXPECT_NE(summary.bounds[0].find("with transfers beside it"), std::string::npos);
  EXPECT_EQ(summary.bounds[1], "decode is bound by memory; its longest part is attention: 9.1 ms, 46 % of 19.9 ms");
}

// A part whose memory traffic the plan does not count has no place on the axis of FLOP a byte.
TEST(Report, TheRooflineSaysWhichPartsCountNoTraffic) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  const std::string uncounted = "1 prefill: attention (memory traffic not counted: at the right edge)";
  EXPECT_EQ(count(planHtml({plan, topology}), uncounted), 0u);
  plan.steps[0].memoryBytes = 0;
  EXPECT_EQ(count(planHtml({plan, topology}), uncounted), 1u);
}

TEST(Report, TheTableNamesGibibytesAndGigabytes) {
  const Topology topology = sampleTopology();
  const std::string table = planTable({sampleServing(), topology});
  EXPECT_NE(table.find(" cache                 20.49 GiB (22.00 GB)    28 %\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\ndecode is bound by memory; "), std::string::npos);
}

// A sentence about what the plan does not have is soon a false one.
TEST(Report, SectionsWithoutContentAreLeftOut) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  plan.layout.pp = 2;
  plan.traffic.clear();
  const std::string page = planHtml({plan, topology});
  EXPECT_EQ(count(page, "<section "), 5u);
  for (const char *absent : {"id=\"timeline\"", "id=\"frontier\"", "id=\"traffic\""})
    EXPECT_EQ(count(page, absent), 0u) << absent;
}

TEST(Report, NamesAreTextInEveryRendering) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  plan.model = "<script>alert(1)</script>\"&\x1b[2J\xff";
  const std::string page = planHtml({plan, topology});
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&amp; [2J\xef\xbf\xbd"), std::string::npos);
  EXPECT_EQ(planTable({plan, topology}).find('\x1b'), std::string::npos);
  EXPECT_TRUE(json::accept(planTrace({plan, topology})));
}

// A compile's plan, whose step was timed with measured rates: a second set of seconds would contradict the figures.
TEST(Report, PartsOfAMeasuredStepSumToItsTime) {
  const ModelSpec spec = *loadModelToPlan("olmoe");
  const Topology topology = *loadTopology("cpu1");
  Limits limits = defaultLimits(spec);
  limits.maxSequences = 1;
  Expected<Plan> plan = planHost(spec, topology, limits, {});
  ASSERT_TRUE(plan) << plan.error().text();
  plan->decode.seconds = Seconds(3 * plan->decode.seconds.value);
  const ClusterPlan described = describeHostPlan(spec, topology, *plan);
  double decode = 0;
  for (const StepPart &part : described.steps)
    decode += part.phase == "decode" ? part.seconds.value : 0;
  EXPECT_NEAR(decode, *described.figure("decode_step_s"), 1e-9 * decode);
  EXPECT_EQ(described.layers, 16);
}

TEST(Report, TheTraceHasEveryTaskOfThePipeline) {
  const Topology topology = sampleTopology();
  const json trace = json::parse(planTrace({sampleTraining(), topology}));
  int tasks = 0;
  for (const json &event : trace["traceEvents"])
    tasks += event["ph"] == "X";
  EXPECT_EQ(tasks, 8);
  EXPECT_EQ(trace["traceEvents"].back()["name"], "B1");
  EXPECT_EQ(trace["traceEvents"].back()["ts"], 3.5e6);
  EXPECT_EQ(trace["traceEvents"].back()["dur"], 1e6);
}

TEST(Report, TheTraceOfAServingStepHasItsParts) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  EXPECT_EQ(count(planTrace({plan, topology}), "\"thread_name\""), 2u);
  plan.layout.overlap = true;
  plan.overlapped = {"prefill", "decode"}; // transfers on a track of their own
  EXPECT_EQ(count(planTrace({plan, topology}), "\"thread_name\""), 4u);
}

// A page of every task of a long step would not open; the trace has them.
TEST(Report, LongTimelinesAreDrawnAsPaths) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleTraining();
  EXPECT_EQ(count(planHtml({plan, topology}), "<rect class=\"task "), 8u);
  for (int i = 0; i < 5000; ++i) // no two of them take equally long
    plan.timeline.push_back({1, {PipelineWork::Forward, 0, i}, std::nullopt, Seconds(5 + i), Seconds(5.5 + i)});
  const std::string page = planHtml({plan, topology});
  EXPECT_EQ(count(page, "<rect class=\"task "), 0u);
  EXPECT_EQ(count(page, "<path class=\"forward\""), 1u);
  EXPECT_LT(page.size(), 300'000u);
}

/// 1F1B of two ranks: rank 0 begins two forwards ahead.
static ClusterPlan longPipeline(int microbatches) {
  ClusterPlan plan = sampleTraining();
  plan.timeline.clear();
  auto add = [&](int rank, PipelineWork work, int microbatch, double begin) {
    plan.timeline.push_back({rank,
                             {work, 0, microbatch},
                             std::nullopt,
                             Seconds(begin),
                             Seconds(begin + (work == PipelineWork::Forward ? 1 : 2))});
  };
  for (int i = 0; i < microbatches; ++i) {
    add(0, PipelineWork::Forward, i, i < 2 ? i : 3 * i);
    add(0, PipelineWork::Backward, i, 3 * i + 4);
    add(1, PipelineWork::Forward, i, 3 * i + 1);
    add(1, PipelineWork::Backward, i, 3 * i + 2);
  }
  return plan;
}

TEST(Report, AThousandMicroBatchesAreAWarmUpAPeriodAndACoolDown) {
  const Topology topology = sampleTopology();
  const std::string page = planHtml({longPipeline(1024), topology});
  EXPECT_EQ(count(page, " periods, 3 s each</text>"), 1u);
  EXPECT_EQ(count(page, ">warm-up "), 1u);
  EXPECT_EQ(count(page, ">cool-down "), 1u);
  EXPECT_LT(count(page, "<rect class=\"t"), 30u); // boxes, narrow ones too
  EXPECT_NE(page.find(", B1023: "), std::string::npos) << "the last task is drawn";
  EXPECT_EQ(count(planHtml({longPipeline(8), topology}), " periods, "), 0u);
}

// One task that is late ends the state that repeats.
TEST(Report, WhatDoesNotRepeatIsDrawn) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = longPipeline(1024);
  plan.timeline[4 * 100 + 3].begin += Seconds(0.5);
  const std::string page = planHtml({plan, topology});
  EXPECT_EQ(count(page, ", B100: "), 2u);
  EXPECT_EQ(count(page, " periods, 3 s each</text>"), 1u);
}

TEST(Report, APlanWithoutPartsIsStillAPage) {
  const Topology topology = sampleTopology();
  ClusterPlan plan;
  PlanSearch search;
  EXPECT_EQ(count(planHtml({plan, topology}), "<section "), 2u);
  EXPECT_EQ(count(planHtml({plan, topology, &search}), "<section "), 3u);
  EXPECT_TRUE(json::accept(planTrace({plan, topology})));
}
