//===- QuantityTest.cpp - Which part of an answer a quantity names --------===//
//
// A quantity is the exact name of a part, or is refused with the names that there are: never another part.
//
//===----------------------------------------------------------------------===//
#include "k2c/Formulas/Query.h"

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

// Paper 002, section 3.3: norms of 7168 + 7168 + 1536 + 512 and the router of 256 experts in each of four layers; four
// shared experts of 3 x 7168 x 2048, 33 experts in all.
TEST(Quantity, IsTheExactNameOfAPart) {
  EXPECT_EQ(value("device_params", device, "norm_params"), 4 * 16384);
  EXPECT_EQ(value("device_params", device, "norm_per_layer"), 16384);
  EXPECT_EQ(value("device_params", device, "router_bytes"), 2 * 256 * 7168 * 4);
  EXPECT_EQ(value("device_params", device, "shared_expert_params"), 4.0 * 3 * 7168 * 2048);
  EXPECT_EQ(value("device_params", device, "expert_params"), 4.0 * 33 * 3 * 7168 * 2048);
  EXPECT_EQ(value("config", R"({"model": "k2"})", "kv_lora_rank"), 512);
}

TEST(Quantity, WithoutOneTheAnswerIsItsFirstPart) {
  EXPECT_EQ(value("device_params", device, ""), value("device_params", device, "total_params"));
}

// Labels, units, other words and beginnings of a name are none.
TEST(Quantity, WhatIsNoPartsNameIsRefusedWithTheNamesThereAre) {
  const std::string names = "; its quantities: bytes, elements, fp8, fp4, scales, bf16, f32";
  for (const char *quantity :
       {"speed", "byte", "bytes_", "Bytes", "total_bytes", "v3_bytes", "GB", "elements_with_scales"})
    EXPECT_EQ(refusal("fp8_checkpoint", R"({"model": "deepseek_v3"})", quantity),
              std::string("--quantity: fp8_checkpoint has no quantity '") + quantity + "'" + names);
}

TEST(Quantity, InTheInputsItNamesAPartLikewise) {
  const std::string inputs = R"({"model": "deepseek_v3", "quantity": ")";
  EXPECT_EQ(value("fp8_checkpoint", inputs + "fp4\"}", ""), 0);
  EXPECT_EQ(refusal("fp8_checkpoint", inputs + "GB\"}", ""),
            "--quantity: fp8_checkpoint has no quantity 'GB'; its quantities: bytes, elements, fp8, fp4, scales, bf16, "
            "f32");
}

TEST(Quantity, AnAnswerWithoutPartsHasNone) {
  const std::string inputs = R"({"depth": 2, "acceptance": 0.5)";
  EXPECT_EQ(refusal("mtp_tokens_per_step", inputs + "}", "speed"),
            "--quantity: mtp_tokens_per_step has no quantity 'speed'; it answers one number: leave --quantity out");
  EXPECT_EQ(value("mtp_tokens_per_step", inputs + R"(, "quantity": "speed"})", ""), 1.75) << "a remark";
  EXPECT_EQ(refusal("schedule", R"({"schedule": "1f1b", "pp": 2, "microbatches": 1})", "order"),
            "--quantity: schedule has no quantity 'order'; it answers order, trace at once: leave --quantity out");
}
