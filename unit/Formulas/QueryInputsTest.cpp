//===- QueryInputsTest.cpp - Inputs that are read, checked or refused -----===//
//
// No key is dropped silently, and no layout that does not divide is answered.
//
//===----------------------------------------------------------------------===//
#include "k2c/Formulas/Query.h"

#include <gtest/gtest.h>

using namespace k2c;

namespace {

Expected<nlohmann::ordered_json> ask(const std::string &function, const std::string &inputs) {
  Expected<JsonDocument> document = parseJson(inputs, "inputs");
  EXPECT_TRUE(document);
  return answerQuery(function, *document);
}

double value(const std::string &function, const std::string &inputs) {
  Expected<nlohmann::ordered_json> answer = ask(function, inputs);
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().text());
  return answer ? (*answer)["value"].get<double>() : -1;
}

void expectRefused(const std::string &function, const std::string &inputs, const std::string &text) {
  Expected<nlohmann::ordered_json> answer = ask(function, inputs);
  const std::string said = answer ? "answered " + answer->dump() : answer.error().text();
  EXPECT_NE(said.find(text), std::string::npos) << said;
}

std::string step(const std::string &more, const std::string &nodes = "4", const std::string &moreOfCluster = "") {
  return R"({"model": "deepseek_v3", "B_global": 256, "S": 2000, "cluster": {"gpus": 32, "nodes": )" + nodes +
         moreOfCluster + R"(, "mem_bw": 3.35e12, "flops_bf16": 9.9e14, "bw_inter": 5e10, "bw_intra": 4.5e11})" + more +
         "}";
}

} // namespace

TEST(QueryInputs, UnknownKeysOfObjectsAreRefusedWithTheirPlace) {
  expectRefused("s004_step", step(R"(, "knobs": {"betta": 0.5})"),
                "nothing reads 'betta' in 'knobs'; leave it out; read are: ");
  expectRefused("s004_step", step("", "4", R"(, "typo": 1)"), "nothing reads 'typo' in 'cluster'");
}

TEST(QueryInputs, AKeyThatAnotherHidesIsRefused) {
  expectRefused("s004_step", step(R"(, "beta": 0.5, "knobs": {"beta": 1})"), "nothing reads 'beta' with these inputs");
  expectRefused("zero_memory", R"({"model": "k2", "layers_on_stage": 4, "bytes": [2, 4, 8], "bytes_weight": 1})",
                "nothing reads 'bytes_weight'");
  expectRefused("kv_bytes_per_token", R"({"model": "k2", "format": "flashmla_fp8", "elem_bytes": 1})", "'elem_bytes'");
}

TEST(QueryInputs, AKeyOfAnotherFunctionIsRefused) {
  expectRefused("flops_experts", R"({"model": "k2", "B": 1, "tp": 2})", "unknown input 'tp'");
}

TEST(QueryInputs, BytesOfAWeightMakeBytesOfAnyCount) {
  EXPECT_EQ(value("mla_params", R"({"model": "deepseek_v3", "w_bytes": 2})"),
            2 * value("mla_params", R"({"model": "deepseek_v3"})"));
  EXPECT_EQ(value("expert_params", R"({"model": "deepseek_v3", "w_bytes": 2})"), 2.0 * 3 * 7168 * 2048);
}

TEST(QueryInputs, ExpertDataParallelRanksAgreeWithTheLayout) {
  const std::string layout = R"({"model": "deepseek_v3", "layers_on_stage": 4, "dp": 32, "tp": 2, "ep": 8, "edp": )";
  EXPECT_GT(value("zero_memory", layout + "8}"), 0);
  expectRefused("zero_memory", layout + "99}", "'edp' 99 differs from DP x TP / (EP x ETP) = 8");
  expectRefused("device_params", layout + "99}", "'edp' 99 differs");
  expectRefused("edp", R"({"dp": 32, "tp": 2, "ep": 8, "edp": 9})", "'edp' 9 differs");
  EXPECT_EQ(value("edp", R"({"dp": 32, "tp": 2, "ep": 8, "edp": 8})"), 8);
}

TEST(QueryInputs, AModelAgreesWithWhatIsSaidOfIt) {
  EXPECT_EQ(value("sparsity", R"({"model": "kimi_k2", "m": 384, "k": 8})"), 48);
  expectRefused("sparsity", R"({"model": "kimi_k2", "m": 256, "k": 8})", "'m' differs from the model's 384 experts");
}

TEST(QueryInputs, WhatDoesNotDivideIsRefusedWithBothNumbers) {
  const std::string batch = R"({"model": "deepseek_v3", "b": 1, "s": 4097, "tp": 2, "sp": )";
  expectRefused("act_moe", batch + "2}", "'sp' 2 does not divide the tokens b x s 4097");
  expectRefused("act_moe", batch + R"(1, "ep": 7})", "'ep' 7 does not divide the experts 256");
  expectRefused("distinct_nodes_mean", R"({"experts": 256, "topk": 8, "nodes": 7})", "'nodes' 7 does not divide");
  expectRefused("mc_max_experts", R"({"experts": 256, "topk": 8, "tokens": 9, "gpus": 30})",
                "'gpus' 30 does not divide");
  expectRefused("s004_step", step("", "5"), "'nodes' 5 does not divide the GPUs 32");
}

// Two ranks share an expert: the same rows on each, half of their width, from twice the ranks.
TEST(QueryInputs, RanksThatShareAnExpertChangeItsActivations) {
  const std::string batch = R"({"model": "deepseek_v3", "b": 1, "s": 4096, "ep": 8, "tokens": "exact", "etp": )";
  EXPECT_GT(value("act_moe", batch + "2}"), value("act_moe", batch + "1}"));
  EXPECT_EQ(value("act_mla", R"({"model": "deepseek_v3", "b": 1, "s": 4096, "etp": 2})"),
            value("act_mla", R"({"model": "deepseek_v3", "b": 1, "s": 4096})"));
}

TEST(QueryInputs, EmptyStagesAreRefused) {
  expectRefused("s002_stage_params", R"({"model": "kimi_k2", "pp": 10, "stage": 9})",
                "'pp' 10 leaves stage 9 of 61 layers empty, 7 a stage; choose a smaller pp, or partition balanced");
  EXPECT_GT(value("s002_stage_params", R"({"model": "kimi_k2", "pp": 10, "stage": 9, "partition": "balanced"})"), 0);
}

TEST(QueryInputs, SchedulesHaveTheirNamesInAnyCase) {
  EXPECT_EQ(value("activation_factor", R"({"schedule": "DualPipe", "pp": 16})"), 17);
  EXPECT_EQ(value("bubble", R"({"schedule": "Interleaved 1F1B", "pp": 4, "v": 2})"),
            value("bubble", R"({"schedule": "interleaved", "pp": 4, "v": 2})"));
  expectRefused("bubble", R"({"schedule": "interleaved", "pp": 4})", "'v' is missing");
  expectRefused("bubble", R"({"schedule": "1f1b", "pp": 4, "v": 2})", "'v' is for interleaved schedules; leave it out");
  expectRefused("bubble", R"({"schedule": "1f1b or so", "pp": 4})", "unknown value");
}

TEST(QueryInputs, AContextOfNullIsOneWithoutEnd) {
  EXPECT_EQ(value("mla_absorb_query_crossover", R"({"model": "deepseek_v3", "context": null})"),
            value("mla_absorb_query_crossover", R"({"model": "deepseek_v3"})"));
}

// 234,643,783,680 FP8 elements, 14,322,720 f32 scales and 1,097,651,200 elements of tables, routers and norms.
TEST(QueryInputs, AnyModelInFp8HasTheBytesOfDeepSeeksRule) {
  const double bytes = 234643783680.0 + 4 * 14322720.0 + 2 * 1097651200.0;
  EXPECT_EQ(value("fp8_checkpoint", R"({"model": "deepseek_v2", "mtp": false, "fp8_block": 128})"), bytes);
  EXPECT_EQ(value("checkpoint", R"({"model": "deepseek_v2", "format": "fp8"})"), bytes);
}

TEST(QueryInputs, ModelsByTheNamesThatPeopleUse) {
  EXPECT_EQ(value("kv_bytes_per_token", R"({"model": "qwen3_32b"})"), 262144);
  EXPECT_EQ(value("kv_bytes_per_token", R"({"model": "qwen25_72b"})"), 327680);
  EXPECT_EQ(value("total_params", R"({"model": "llama33_70b"})"), 70553706496);
  EXPECT_EQ(value("total_params", R"({"model": "qwen3_32b"})"), 32762123264);
  EXPECT_EQ(value("total_params", R"({"model": "qwen2.5-72b"})"), 72706203648);
  EXPECT_EQ(value("total_params", R"({"model": "llama_405b"})"), 405853388800);
  EXPECT_EQ(value("total_params", R"({"model": "deepseek_r1"})"), value("total_params", R"({"model": "v3"})"));
  expectRefused("total_params", R"({"model": "llama"})", "could be several models");
}

// Exactly sum over token counts: 0 for one token, 1/65536 (1 - 1/65536) for two of 65536 with one choice.
TEST(QueryInputs, VarianceOfFewTokensKeepsItsDigits) {
  EXPECT_EQ(value("expert_hit_var", R"({"experts": 60, "topk": 4, "tokens": 1})"), 0);
  const double exact = 1 / 65536.0 * (1 - 1 / 65536.0);
  EXPECT_NEAR(value("expert_hit_var", R"({"experts": 65536, "topk": 1, "tokens": 2})"), exact, 1e-9 * exact);
  EXPECT_LE(value("expert_hit_pmf", R"({"experts": 256, "topk": 8, "tokens": 1000, "distinct": 256})"), 1);
}
