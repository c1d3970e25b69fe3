//===- WorkloadTest.cpp - Workload files --------------------------------------===//
#include "k2c/Planner/Workload.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace k2c;

namespace {

Workload read(const std::string &body) {
  Expected<Workload> workload = parseWorkload("k2workload: 1\n" + body, "w.yaml");
  EXPECT_TRUE(workload) << (workload ? "" : workload.error().text());
  return workload ? *workload : Workload();
}

std::string refusal(const std::string &body) {
  Expected<Workload> workload = parseWorkload("k2workload: 1\n" + body, "w.yaml");
  return workload ? "accepted" : workload.error().text();
}

TEST(WorkloadTest, EveryKeyIsRead) {
  Workload w = read("name: chat\n"
                    "prompt_tokens: {histogram: [[100, 3], [1000, 1]]}\n"
                    "output_tokens: 300\n"
                    "multi_turn: {share: 0.5, history_tokens: 4000}\n"
                    "cache_hit_rate: 0.4\n"
                    "arrival_rate: 20.5\n"
                    "targets: {first_token: 2 s, per_token: 50 ms}\n"
                    "draft: {tokens: 1, acceptance: 0.8}\n"
                    "routing: measured\n"
                    "expert_load: [1, 2, 3]\n"
                    "alignment: 64\n"
                    "inefficiency: {memory: 1.5, attention: 2, linears: 3}\n"
                    "dollars_per_device_hour: 2.5\n"
                    "reserve: 0.1\n"
                    "train:\n"
                    "  sequence_tokens: 8192\n"
                    "  batch_tokens: 1048576\n"
                    "  total_tokens: 14.8e12\n"
                    "  state_bytes: {weight: 1, gradient: 2, optimizer: 12}\n"
                    "  buffers: 2 GB\n"
                    "  fragmentation: 0.2\n");
  EXPECT_EQ(w.name, "chat");
  EXPECT_DOUBLE_EQ(w.serve.prompt.mean(), 325);
  EXPECT_EQ(w.serve.prompt.quantile(0.75), 100);
  EXPECT_EQ(w.serve.prompt.quantile(0.76), 1000);
  EXPECT_EQ(w.serve.output.longest(), 300);
  EXPECT_DOUBLE_EQ(w.serve.multiTurnShare, 0.5);
  EXPECT_EQ(w.serve.history.longest(), 4000);
  EXPECT_DOUBLE_EQ(w.serve.cacheHitRate, 0.4);
  EXPECT_DOUBLE_EQ(*w.serve.arrivalRate, 20.5);
  EXPECT_DOUBLE_EQ(w.serve.timeToFirstToken->value, 2);
  EXPECT_DOUBLE_EQ(w.serve.timePerToken->value, 0.05);
  EXPECT_EQ(w.serve.draftTokens, 1);
  EXPECT_DOUBLE_EQ(w.serve.draftAcceptance, 0.8);
  EXPECT_EQ(*w.peakRouting, Routing::Measured);
  EXPECT_EQ(w.expertLoad, (ExpertLoad{1, 2, 3}));
  EXPECT_EQ(w.alignment, 64);
  EXPECT_DOUBLE_EQ(w.inefficiency->experts, 3);
  EXPECT_DOUBLE_EQ(*w.dollarsPerDeviceHour, 2.5);
  EXPECT_DOUBLE_EQ(w.reserve, 0.1);
  EXPECT_EQ(w.train.sequence, 8192);
  EXPECT_EQ(w.train.batchTokens, 1048576);
  EXPECT_DOUBLE_EQ(*w.train.totalTokens, 14.8e12);
  EXPECT_DOUBLE_EQ(w.train.bytes.optimizer, 12);
  EXPECT_DOUBLE_EQ(w.train.buffers, 2e9);
  EXPECT_DOUBLE_EQ(w.train.fragmentation, 0.2);
}

TEST(WorkloadTest, LogNormalHasItsMedianAndMean) {
  Workload w = read("prompt_tokens: {median: 1000, sigma: 0.5, most: 100000}\n");
  EXPECT_NEAR(double(w.serve.prompt.quantile(0.5)), 1000, 20);
  EXPECT_NEAR(w.serve.prompt.mean(), 1000 * std::exp(0.125), 10);
  EXPECT_EQ(read("prompt_tokens: {median: 1000, sigma: 2, most: 3000}\n").serve.prompt.longest(), 3000);
}

TEST(WorkloadTest, JsonIsYaml) {
  Expected<Workload> w = parseWorkload(R"({"k2workload": 1, "prompt_tokens": 77})", "w.json");
  ASSERT_TRUE(w);
  EXPECT_EQ(w->serve.prompt.longest(), 77);
}

TEST(WorkloadTest, MistakesAreRefusedAtTheirPlace) {
  struct {
    const char *body, *error;
  } cases[] = {
      {"tokens: 1\n", "w.yaml:2:1: the workload has no key 'tokens'"},
      {"prompt_tokens: 0\n", "w.yaml:2:16: prompt_tokens is 0, must be 1 to 16777216"},
      {"prompt_tokens: 1.5\n", "w.yaml:2:16: prompt_tokens is 1.5, must be a whole number"},
      {"prompt_tokens: many\n", "w.yaml:2:16: prompt_tokens"},
      {"prompt_tokens: .nan\n", "w.yaml:2:16: prompt_tokens is .nan, must be 1 to 16777216"},
      {"prompt_tokens: {median: 10, sigma: 1}\n", "w.yaml:2:16: prompt_tokens lacks 'most'"},
      {"prompt_tokens: {median: 10, sigma: 9, most: 20}\n", "w.yaml:2:36: sigma is 9, must be 0 to 4"},
      {"prompt_tokens: {histogram: []}\n", "w.yaml:2:28: histogram must be a list of 1 to 65536 pairs"},
      {"prompt_tokens: {histogram: [[1, 0]]}\n", "w.yaml:2:28: the shares sum to 0"},
      {"prompt_tokens: {histogram: [[1, 2, 3]]}\n", "w.yaml:2:29: must be a pair [tokens, share]"},
      {"prompt_tokens: {histogram: [[12888888888888888888, 1]]}\n",
       "w.yaml:2:30: tokens is 12888888888888888888, must be"},
      {"output_tokens: -3\n", "w.yaml:2:16: output_tokens is -3"},
      {"cache_hit_rate: 1.1\n", "w.yaml:2:17: cache_hit_rate is 1.1, must be 0 to 1"},
      {"arrival_rate: 0\n", "w.yaml:2:15: arrival_rate is 0"},
      {"arrival_rate: 3\nbatch: 8\n", "w.yaml:3:8: batch and arrival_rate both say how many sequences run"},
      {"multi_turn: {share: 0.5}\n", "w.yaml:2:13: multi_turn lacks 'history_tokens'"},
      {"targets: {per_token: 50}\n", "w.yaml:2:22: '50' has no unit; write one of s, ms, us, ns"},
      {"targets: {per_token: -5 ms}\n", "w.yaml:2:22: '-5 ms' is not a positive number with a unit"},
      {"routing: best\n", "w.yaml:2:10: routing is 'best'; use one of mean, measured, worst"},
      {"expert_load: [0, 0]\n", "w.yaml:2:14: expert_load sums to 0"},
      {"expert_load: [1, -1]\n", "w.yaml:2:18: a load is -1"},
      {"expert_load: 5\n", "w.yaml:2:14: expert_load must be a list"},
      {"draft: {tokens: 99}\n", "w.yaml:2:17: tokens is 99, must be 0 to 16"},
      {"reserve: 1\n", "w.yaml:2:10: reserve is 1, must be 0 to 0.95"},
      {"inefficiency: {memory: 0.5}\n", "w.yaml:2:24: memory is 0.5, must be 1 to 1000"},
      {"train: {batch_tokens: 0}\n", "w.yaml:2:23: batch_tokens is 0"},
      {"train: 5\n", "w.yaml:2:8: train"},
      {"name: &a x\n", "w.yaml:2:7: anchors"},
  };
  for (const auto &each : cases)
    EXPECT_EQ(refusal(each.body).substr(0, std::string(each.error).size()), each.error) << each.body;
  Expected<Workload> other = parseWorkload("k2workload: 2\n", "w.yaml");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().text(), "w.yaml:1:13: k2workload is 2, must be 1 to 1");
  Expected<Workload> none = parseWorkload("name: x\n", "w.yaml");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(), "w.yaml:1:1: the workload lacks 'k2workload'");
}

} // namespace
