//===- QuantityTest.cpp - Which part of an answer a quantity names ------------===//
//
// A quantity answers what it names or is refused: never another part.
//
//===----------------------------------------------------------------------===//
#include "k2c/Planner/Query.h"

#include <gtest/gtest.h>

using namespace k2c;

namespace {

const std::string device = R"({"model": "deepseek_v3", "layers_on_stage": 4, "tp": 2, "ep": 8, "etp": 1,
                               "w_qr": "replicated", "shared_expert": "replicated"})";

Expected<nlohmann::ordered_json> ask(const std::string &function, const std::string &inputs,
                                     const std::string &quantity) {
  Expected<JsonDocument> document = parseJson(inputs, "inputs");
  EXPECT_TRUE(document);
  QueryOptions options;
  options.quantity = quantity;
  return answerQuery(function, *document, options);
}

double value(const std::string &function, const std::string &inputs, const std::string &quantity) {
  Expected<nlohmann::ordered_json> answer = ask(function, inputs, quantity);
  EXPECT_TRUE(answer) << quantity << ": " << (answer ? "" : answer.error().text());
  return answer ? (*answer)["value"].get<double>() : -1;
}

std::string refusal(const std::string &function, const std::string &inputs, const std::string &quantity) {
  Expected<nlohmann::ordered_json> answer = ask(function, inputs, quantity);
  return answer ? "answered " + answer->dump() : answer.error().text();
}

} // namespace

// Paper 002, section 3.3: the router of 256 experts, and four shared experts of 3 x 7168 x 2048.
TEST(Quantity, EveryModuleOfADevice) {
  EXPECT_EQ(value("device_params", device, "gate_params"), 256 * 7168 * 4);
  EXPECT_EQ(value("device_params", device, "shared_expert_params"), 4.0 * 3 * 7168 * 2048);
  EXPECT_EQ(value("device_params", device, "expert_params"), 4.0 * 33 * 3 * 7168 * 2048);
  EXPECT_EQ(value("device_params", device, "t6_norm_total"), 65536);
  EXPECT_EQ(value("device_params", device, "norm_4_layers"), 65536);
  EXPECT_EQ(value("device_params", device, "t6_moe_total"), value("device_params", device, "t6_moe_bytes") / 2);
}

TEST(Quantity, LabelsOfInputsMeanTheAnswerItself) {
  EXPECT_EQ(value("device_params", device, "deepseek_v3_L4_tp2_ep8_etp1_params_seed"), 6250364928);
  EXPECT_EQ(value("s002_stage_params", R"({"model": "kimi_k2", "pp": 16, "stage": 15})", "kimi_k2_pp16_stage15"),
            value("s002_stage_params", R"({"model": "kimi_k2", "pp": 16, "stage": 15})", ""));
}

TEST(Quantity, WhatNamesNoPartIsRefused) {
  for (const char *quantity : {"speed", "t6_speed2", "gate_4x", "mla", "moe_tp2_sum", "norm_7_layers", "params_7"})
    EXPECT_NE(refusal("device_params", device, quantity).find("device_params has no quantity '"), std::string::npos)
        << quantity << ": " << refusal("device_params", device, quantity);
}

TEST(Quantity, AnAnswerWithoutPartsHasNone) {
  const std::string inputs = R"({"depth": 2, "acceptance": 0.5)";
  EXPECT_EQ(refusal("mtp_tokens_per_step", inputs + "}", "speed"),
            "--quantity: mtp_tokens_per_step has no quantity 'speed'; it answers one number: leave --quantity out");
  EXPECT_EQ(value("mtp_tokens_per_step", inputs + R"(, "quantity": "speed"})", ""), 1.75) << "a remark";
  EXPECT_EQ(refusal("schedule", R"({"schedule": "1f1b", "pp": 2, "microbatches": 1})", "order"),
            "--quantity: schedule has no quantity 'order'; it answers order, trace at once: leave --quantity out");
}

TEST(Quantity, ALabelThatContradictsTheInputsIsRefused) {
  EXPECT_EQ(
      refusal("device_params", device, "tp4_params"),
      "--quantity: 'tp4' of 'tp4_params' contradicts the input 'tp' 2; ask with inputs and a quantity that agree");
}

TEST(Quantity, SizesOfAConfigByTheirNamesAlone) {
  const std::string k2 = R"({"model": "k2"})";
  EXPECT_EQ(value("config", k2, "k2_context"), 131072);
  EXPECT_EQ(value("config", k2, "k2_m"), 384);
  EXPECT_EQ(value("config", k2, "k2_k"), 8);
  EXPECT_EQ(value("config", k2, "kv_lora_rank"), 512);
  EXPECT_NE(refusal("config", k2, "k2").find("config has no quantity 'k2'"), std::string::npos);
}

TEST(Quantity, TheUnitSaysBytesParametersOrSeconds) {
  const std::string stages = R"({"model": "deepseek_v3", "pp": 16, "double_count_latent_norms": true})";
  EXPECT_EQ(value("s002_stage_params", stages, "stage0_layers"), 4);
  EXPECT_EQ(value("s002_stage_params", stages, "stage0_params_B"), 14184423424);
  EXPECT_EQ(value("s002_stage_params", stages, "stage0_GiB"), 2 * 14184423424.0);
  EXPECT_EQ(value("stage_layers", stages, "stage15_params_B"), 12433967104);
  const std::string step = R"({"model": "deepseek_v3", "B_global": 256, "S": 2000, "tbo": true, "cluster": {"gpus": 32,
    "nodes": 4, "mem_bw": 3.35e12, "flops_bf16": 9.9e14, "bw_inter": 5e10, "bw_intra": 4.5e11}})";
  const double seconds = value("s004_step", step, "deepseek_v3_4x8_h100_b8_S2000_tbo_step_ms");
  EXPECT_NEAR(256 / seconds / 32, value("s004_step", step, "b8_S2000_tbo_tok_s_gpu"), 1e-9);
  EXPECT_LT(value("s004_step", step, "b8_mla_s"), seconds / 2);
}
