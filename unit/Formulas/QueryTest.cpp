//===- QueryTest.cpp - Questions, their answers and their errors ----------===//
#include "k2c/Formulas/Query.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace k2c;

namespace {

Expected<nlohmann::ordered_json> ask(const std::string &function, const std::string &inputs,
                                     const std::string &quantity = "") {
  Expected<JsonDocument> document = parseJson(inputs, "inputs");
  EXPECT_TRUE(document);
  QueryOptions options;
  options.quantity = quantity;
  return answerQuery(function, *document, options);
}

std::string errorOf(const std::string &function, const std::string &inputs, const std::string &quantity = "") {
  Expected<nlohmann::ordered_json> answer = ask(function, inputs, quantity);
  return answer ? "no error" : answer.error().text();
}

} // namespace

TEST(Query, AnswersAValue) {
  EXPECT_EQ(ask("mtp_tokens_per_step", R"({"acceptance": 0.5, "depth": 2})")->dump(), R"({"value":1.75})");
}

TEST(Query, NamesAnUnknownFunction) {
  EXPECT_NE(errorOf("no_such", "{}").find("--query: there is no function 'no_such'; known: "), std::string::npos);
}

TEST(Query, NamesAMissingInput) {
  EXPECT_EQ(errorOf("mtp_tokens_per_step", R"({"depth": 2})"),
            "inputs:1:1: 'acceptance' is missing; give a number of at least 0.0");
}

TEST(Query, NamesAnInputOutOfRange) {
  EXPECT_EQ(errorOf("mtp_tokens_per_step", R"({"depth": 2, "acceptance": 1.5})"),
            "inputs:1:14: 'acceptance' must be 0.0 to 1.0, got 1.5");
}

TEST(Query, RefusesAKeyThatNoFunctionReads) {
  EXPECT_EQ(errorOf("mtp_tokens_per_step", R"({"depth": 2, "acceptance": 1, "dept": 3})"),
            "inputs:1:31: unknown input 'dept'; mtp_tokens_per_step reads: acceptance depth");
}

TEST(Query, RefusesInputsThatAreNoObject) {
  EXPECT_EQ(errorOf("mtp_tokens_per_step", "[1]"),
            "inputs:1:1: the inputs are not a JSON object; mtp_tokens_per_step reads: acceptance depth");
}

TEST(Query, RefusesLayoutsThatDoNotDivide) {
  EXPECT_EQ(errorOf("device_params", R"({"model": "deepseek_v3", "layers_on_stage": 4, "tp": 3, "ep": 8})"),
            "inputs:1:48: 'tp' 3 does not divide the attention heads 128; choose a divisor of 128");
}

TEST(Query, RefusesMoreThanTheModelHas) {
  EXPECT_EQ(errorOf("device_params", R"({"model": "deepseek_v3", "layers_on_stage": 62})"),
            "inputs:1:26: 'layers_on_stage' must be 1 to 61, got 62");
  EXPECT_EQ(errorOf("stage_layers", R"({"stage": 0, "model": "deepseek_v3", "pp": 62})"),
            "inputs:1:38: 'pp' must be 1 to 61, got 62");
  EXPECT_EQ(errorOf("sparsity", R"({"m": 4, "k": 8})"), "inputs:1:10: 'k' must be 1 to 4, got 8");
}

TEST(Query, RefusesASchedulesDurationsThatCannotBe) {
  EXPECT_EQ(errorOf("bubble", R"({"schedule": "zb-h1", "pp": 8, "F": 1, "B": 2, "W": 3})"),
            "inputs:1:48: 'W' must be 0.0 to 2.0, got 3");
  EXPECT_EQ(errorOf("bubble", R"({"schedule": "zb-h1", "pp": 8, "F": 1, "B": 2, "W": 2})"),
            "inputs:1:48: 'W' makes the closed form negative: -7.0; its durations need F + B >= 2 W, and FB + B >= 3 W "
            "in DualPipe, of at least 2 ranks");
  EXPECT_EQ(errorOf("bubble", R"({"schedule": "dualpipe", "pp": 7})"),
            "inputs:1:26: 'pp' 7 is odd; DualPipe pairs ranks; choose an even number");
}

// What is stored quantised is f32 once read; in another format it is bf16.
TEST(Query, ACheckpointInAnotherFormatThanPublished) {
  EXPECT_EQ((*ask("checkpoint", R"({"model": "deepseek_v3", "format": "bf16"})"))["value"],
            2 * 671026404352 + 4 * 58 * 256);
}

TEST(Query, RefusesAModelWithoutWhatIsAsked) {
  EXPECT_EQ(errorOf("flops_mla", R"({"model": "olmoe", "phase": "decode", "S": 9, "variant": "naive"})"),
            "inputs:1:2: 'model' has no latent attention; ask this of a DeepSeek or Kimi model");
  EXPECT_NE(errorOf("total_params", R"({"model": "gpt_5"})").find("is not a published configuration"),
            std::string::npos);
}

TEST(Query, ReportsOverflow) {
  EXPECT_EQ(errorOf("flops_mla", R"({"model": "k2", "phase": "prefill", "S": 1000000000000, "variant": "naive"})"),
            "inputs:1:1: flops_mla of these inputs is beyond the numbers k2c counts in (2^63); give smaller inputs");
}

/// 5 b n s^2 are the softmax's output, its mask and the dropout's output; without dropout the first alone is left, and
/// the residual's mask, b s h, goes too.
TEST(Query, WithoutDropoutTheSoftmaxAloneIsKept) {
  const std::string inputs = R"({"model": "deepseek_v3", "b": 1, "s": 4096, "layers": 1, "attn_matrix": "eager",)";
  auto bytes = [&](const char *mask) {
    return (*ask("act_mla", inputs + "\"dropout_mask\": " + mask + "}"))["value"].get<double>();
  };
  EXPECT_EQ(bytes("true") - bytes("false"), 3.0 * 128 * 4096 * 4096 + 4096.0 * 7168);
}

TEST(Query, ExactConventionsWhereInputsSayNothing) {
  Expected<JsonDocument> inputs =
      parseJson(R"({"model": "deepseek_v3", "b": 1, "s": 4096, "tp": 2, "layers": 4})", "i");
  ASSERT_TRUE(inputs);
  QueryOptions exact;
  exact.compat = Compat::Exact;
  double paper = (*answerQuery("act_mla", *inputs))["value"],
         flash = (*answerQuery("act_mla", *inputs, exact))["value"];
  EXPECT_GT(paper, 10 * flash);
}

TEST(Query, TheModelMayBeItsConfig) {
  Expected<JsonDocument> config = readJsonFile(std::string(K2C_SOURCE_DIR) + "/models/configs/olmoe-1b-7b/config.json");
  ASSERT_TRUE(config);
  nlohmann::json inputs = {{"model", config->root()}};
  EXPECT_EQ((*ask("total_params", inputs.dump()))["value"], (*ask("total_params", R"({"model": "olmoe"})"))["value"]);
}

/// The documents of both models: 489, 391, 239, 148 and 16 KB a token for Kimi K2; 571, 407, 256 for DeepSeek V3.
TEST(Query, RecomputationSetsKeepWhatTheReportsSay) {
  auto kilobytes = [](const std::string &model, const std::string &set) {
    return std::lround(
        (*ask("saved_activations", "{\"model\": \"" + model + "\", \"recompute\": \"" + set + "\"}"))["value"]
            .get<double>() /
        1000);
  };
  EXPECT_EQ(kilobytes("kimi_k2", "none"), 489);
  EXPECT_EQ(kilobytes("kimi_k2", "v3"), 391);
  EXPECT_EQ(kilobytes("kimi_k2", "k2"), 239);
  EXPECT_EQ(kilobytes("kimi_k2", "k2_fp8"), 148);
  EXPECT_EQ(kilobytes("kimi_k2", "full"), 16);
  EXPECT_EQ(kilobytes("deepseek_v3", "none"), 571);
  EXPECT_EQ(kilobytes("deepseek_v3", "v3"), 407);
  EXPECT_EQ(kilobytes("deepseek_v3", "k2"), 256);
}
