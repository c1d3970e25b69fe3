//===- SamplePlan.h - Plans as the report is given them -------------------===//
#ifndef K2C_UNIT_REPORT_SAMPLEPLAN_H
#define K2C_UNIT_REPORT_SAMPLEPLAN_H

#include "k2c/Report/Report.h"

namespace k2c::test {

/// Two nodes of two devices.
inline Topology sampleTopology() {
  Topology topology;
  topology.name = "2x2";
  topology.device.kind = DeviceKind::Nvidia;
  topology.device.memory = {Bytes(80'000'000'000), ""};
  topology.device.memoryRead = {Bandwidth(3.35e12), ""};
  topology.device.f32 = {FlopRate(67e12), ""};
  topology.device.bf16 = {FlopRate(989e12), ""};
  topology.device.fp8 = Sourced<FlopRate>{FlopRate(1979e12), ""};
  for (const auto &[name, link] : {std::pair("node", "nvlink4"), std::pair("network", "ib")})
    topology.tiers.push_back({name, 2, link, {Bandwidth(50e9), ""}, {Seconds(1e-6), ""}, {1, ""}});
  return topology;
}

/// A serving plan of one class of ranks.
inline ClusterPlan sampleServing() {
  ClusterPlan plan;
  plan.model = "tiny", plan.topology = "2x2", plan.workload = "default";
  plan.layout.ep = plan.layout.dp = plan.devices = plan.available = 4;
  plan.layout.stepTokens = 2048;
  plan.weightFormat = "as published";
  plan.memory.push_back({"0-3",
                         4,
                         0,
                         "",
                         20'971'520'123,
                         {{"attention", Bytes(11'409'280'000)},
                          {"experts", Bytes(20'971'520'000)},
                          {"router", Bytes(1'000'000)},
                          {"cache", Bytes(22'000'000'007)},
                          {"activations", Bytes(1'500'000'000)},
                          {"dispatch and combine", Bytes(2'400'000'000)},
                          {"reserve", Bytes(6'400'000'000)}},
                         Bytes(80'000'000'000)});
  plan.steps = {{"prefill", "attention", Seconds(0.0110), Flops(8.1e12), 9.3e9, 0, "", Bound::Compute},
                {"prefill", "experts", Seconds(0.0093), Flops(7.4e12), 2.1e10, 0, "", Bound::Compute},
                {"prefill", "dispatch, combine", Seconds(0.0046), Flops(0), 0, 2.1e8, "network", Bound::Link},
                {"decode", "attention", Seconds(0.0091), Flops(2.1e11), 3.2e10, 0, "", Bound::Memory},
                {"decode", "experts", Seconds(0.0072), Flops(3.3e11), 2.09e10, 0, "", Bound::Memory},
                {"decode", "embedding, head", Seconds(0.0006), Flops(1.1e10), 1.8e9, 0, "", Bound::Memory},
                {"decode", "dispatch, combine", Seconds(0.0028), Flops(0), 0, 1.1e8, "network", Bound::Link},
                {"decode", "tensor parallel", Seconds(0.0002), Flops(0), 0, 3e4, "node", Bound::Latency}};
  plan.traffic = {{"prefill", "node", "nvlink4", 6.1e8, Bandwidth(50e9), Seconds(0.0122)},
                  {"prefill", "network", "ib", 2.1e8, Bandwidth(50e9), Seconds(0.0042)},
                  {"decode", "node", "nvlink4", 1.7e8, Bandwidth(50e9), Seconds(0.0034)},
                  {"decode", "network", "ib", 1.1e8, Bandwidth(50e9), Seconds(0.0022)}};
  plan.figures = {{"output_tokens_per_s", "generated tokens/s", 41234.5678, "tokens/s"},
                  {"tokens_per_s_per_user", "tokens/s per user", 48.25, "tokens/s"},
                  {"ttft_s", "TTFT", 0.2213, "s"},
                  {"tpot_s", "TPOT", 0.020725, "s"},
                  {"batch", "sequences that decode at once", 1024, "sequences"},
                  {"busy", "share of the time in use", 0.93, ""},
                  {"dollars_per_million_tokens", "$ per million generated tokens", 0.0625, "$"}};
  plan.whyNotCompilable = "has 32 GPUs; programs of several are not in this build";
  plan.notes = {"two-batch overlap: off & <slower> here"};
  return plan;
}

/// A training plan of two stages, with two micro-batches on its timeline.
inline ClusterPlan sampleTraining() {
  ClusterPlan plan = sampleServing();
  plan.phase = PlanPhase::Train;
  plan.layout.pp = 2, plan.layout.dp = 2, plan.layout.ep = 2;
  plan.layout.microbatches = 2;
  plan.layout.schedule = PipelineKind::OneFOneB;
  plan.memory[0].ranks = "0-1", plan.memory[0].count = 2;
  plan.memory.push_back(plan.memory[0]);
  plan.memory[1].ranks = "2-3", plan.memory[1].stage = 1;
  plan.memory[1].parts[3] = {"optimizer", Bytes(44'000'000'000)};
  plan.steps = {{"forward", "attention", Seconds(0.5), Flops(3e14), 9e11, 0, "", Bound::Compute},
                {"backward", "attention", Seconds(1.0), Flops(6e14), 2e12, 0, "", Bound::Compute}};
  plan.traffic = {{"step", "network", "ib", 2.5e9, Bandwidth(50e9), Seconds(0.05)}};
  plan.figures = {{"tokens_per_s", "tokens/s", 123456.75, "tokens/s"}, {"step_s", "step", 3, "s"}};
  auto add = [&](int rank, PipelineWork work, int microbatch, double begin, double end) {
    plan.timeline.push_back({rank, {work, 0, microbatch}, std::nullopt, Seconds(begin), Seconds(end)});
  };
  const PipelineWork forward = PipelineWork::Forward, backward = PipelineWork::Backward;
  add(0, forward, 0, 0, 0.5), add(0, forward, 1, 0.5, 1);
  add(1, forward, 0, 0.5, 1), add(1, backward, 0, 1, 2), add(1, forward, 1, 2, 2.5), add(1, backward, 1, 2.5, 3.5);
  add(0, backward, 0, 2, 3), add(0, backward, 1, 3.5, 4.5);
  return plan;
}

/// `sampleServing` as the best of a search.
inline PlanSearch sampleSearch() {
  PlanSearch search;
  search.best = sampleServing();
  search.candidates = 1234;
  auto other = [&](int64_t devices, double rate, double latency) {
    ClusterPlan plan = search.best;
    plan.devices = plan.layout.dp = devices;
    plan.figures[0].value = rate, plan.figures[3].value = latency;
    return plan;
  };
  search.frontier = {search.best, other(4, 30000, 0.0125), other(2, 17000, 0.019), other(1, 6000, 0.011)};
  search.runnersUp = {{other(4, 39000, 0.0240), "1.06 times fewer tokens/s: attention reads the cache twice"},
                      {other(4, 22000, 0.0231), "1.9 times fewer tokens/s: dispatch crosses 2 nodes"}};
  search.refused = {{"memory", 321, "ep=1: ranks 0 need 95.0 GiB (102.0 GB), a device has 74.5 GiB (80.0 GB)"}};
  return search;
}

} // namespace k2c::test

#endif // K2C_UNIT_REPORT_SAMPLEPLAN_H
