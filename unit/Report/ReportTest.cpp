//===- ReportTest.cpp - Tables, JSON, pages and traces of plans -----------===//

#include "SamplePlan.h"

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
  EXPECT_EQ(summary.bounds[0], "prefill waits for compute: attention takes 11 ms, 44 % of 24.9 ms");
  EXPECT_EQ(summary.bounds[1], "decode waits for memory: attention takes 9.1 ms, 46 % of 19.9 ms");
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

// With transfers beside work, a phase is as long as the longer lane, and that lane's longest part bounds it.
TEST(Report, OverlappedPhasesAreBoundByTheirLongerLane) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  plan.layout.overlap = true;
  plan.overlapped = {"prefill", "decode"};
  plan.steps[6].seconds = Seconds(0.02);
  const PlanSummary summary = summarize({plan, topology});
  EXPECT_EQ(summary.bounds[1], "decode waits for links (tier network): dispatch, combine takes 20 ms, 99 % of 20.2 ms "
                               "with transfers beside it");
}

TEST(Report, AnUnevenPipelineIsToldToMoveLayers) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleTraining();
  plan.timeline.back().begin = Seconds(3); // rank 0 works 3.5 s of 4.5, rank 1 works 3
  const PlanSummary summary = summarize({plan, topology});
  EXPECT_EQ(std::count(summary.advice.begin(), summary.advice.end(),
                       "the busiest rank idles 22 %: give stages with a head or longer layers fewer of them "
                       "(layers=3+4x14+2; --search chooses)"),
            1);
  EXPECT_EQ(summary.bounds.back(), "ranks idle 28 % of the pipeline's time, their mean");
}

// What runs beside other parts does not lengthen its phase.
TEST(Report, HiddenTimeIsStatedAndLeftOutOfPhases) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleTraining();
  plan.timeline.clear();
  plan.steps.push_back({"exchange", "gradients", Seconds(3), Flops(0), 0, 1e11, "network", Bound::Link, Seconds(1.25)});
  const PlanReport report{plan, topology};
  const PlanSummary summary = summarize(report);
  EXPECT_EQ(summary.bounds[2], "exchange waits for links (tier network): gradients takes 1.75 s, 100 % of 1.75 s");
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
  EXPECT_EQ(summary.bounds[1], "decode waits for memory: attention takes 9.1 ms, 46 % of 19.9 ms");
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
  EXPECT_NE(table.find(" cache                 20.49 GiB (22.00 GB)                 28 %\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("\ndecode waits for memory: "), std::string::npos);
}

// Stages that serve take batches as they come.
TEST(Report, AServingPipelineHasNoTimeline) {
  const Topology topology = sampleTopology();
  ClusterPlan plan = sampleServing();
  plan.layout.pp = 2;
  EXPECT_EQ(count(planHtml({plan, topology}),
                  "<p>The stages of this plan run one after another for each batch; serving "
                  "has no static schedule.</p>"),
            1u);
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
  for (int i = 0; i < 5000; ++i)
    plan.timeline.push_back({1, {PipelineWork::Forward, 0, i}, std::nullopt, Seconds(5 + i), Seconds(5.5 + i)});
  const std::string page = planHtml({plan, topology});
  EXPECT_EQ(count(page, "<rect class=\"task "), 0u);
  EXPECT_EQ(count(page, "<path class=\"forward\""), 1u);
  EXPECT_LT(page.size(), 300'000u);
}

TEST(Report, APlanWithoutPartsIsStillAPage) {
  const Topology topology = sampleTopology();
  ClusterPlan plan;
  PlanSearch search;
  for (const std::string &page : {planHtml({plan, topology}), planHtml({plan, topology, &search})}) {
    EXPECT_EQ(count(page, "<section "), 8u);
    EXPECT_EQ(count(page, "<p>No part of the step computes.</p>"), 1u);
    EXPECT_EQ(count(page, "<p>Nothing crosses a link.</p>"), 1u);
  }
  EXPECT_EQ(count(planHtml({plan, topology}), "<p>One stage: there is no pipeline.</p>"), 1u);
  EXPECT_EQ(count(planHtml({plan, topology, &search}), "<p>No plan has both a rate and a latency.</p>"), 1u);
  EXPECT_TRUE(json::accept(planTrace({plan, topology})));
}
