//===- QuantizationConfigTest.cpp - FP8 of a config.json ------------------===//
#include "TestFiles.h"
#include "k2c/Model/ModelSpec.h"

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

TEST(QuantizationConfig, OthersAreRefusedByName) {
  json fp8 = configOf(K2C_SOURCE_DIR "/models/configs/kimi-k2")["quantization_config"];
  auto with = [&](const char *key, const json &value) {
    json changed = fp8;
    changed[key] = value;
    return json{{"quantization_config", changed}};
  };
  EXPECT_EQ(failure("kimi_k2", {{"quantization_config", fp8}}), "");
  EXPECT_EQ(failure("kimi_k2", with("scale_fmt", "ue8m0")), "");
  EXPECT_EQ(failure("kimi_k2", with("fmt", "float8_e4m3fn")), "");
  EXPECT_EQ(failure("kimi_k2", with("quant_method", "compressed-tensors")),
            "quantization method \"compressed-tensors\" is not in this build");
  EXPECT_EQ(failure("kimi_k2", with("fmt", "e5m2")), "FP8 format \"e5m2\" is not in this build");
  EXPECT_EQ(failure("kimi_k2", with("activation_scheme", "static")),
            "activation_scheme \"static\" is not in this build");
  EXPECT_EQ(failure("kimi_k2", with("scale_fmt", "x")), "scale_fmt \"x\" is not in this build");
  EXPECT_EQ(failure("kimi_k2", with("weight_block_size", {128})), "weight_block_size [128] is not in this build");
  EXPECT_EQ(failure("kimi_k2", with("weight_block_size", {128, 64})),
            "weight_block_size [128,64] is not in this build");
  EXPECT_EQ(failure("llama", {{"quantization_config", fp8}}),
            "quantization_config: FP8 weights of a llama model are not in this build");
  EXPECT_EQ(failure("kimi_k2", with("modules", 1)), "unknown key 'quantization_config.modules' with value 1");
  EXPECT_EQ(failure("kimi_k2", {{"quantization_config", 1}}), "quantization_config must be an object or null");
}

TEST(QuantizationConfig, ModulesThatAreNotQuantized) {
  json fp8 = configOf(K2C_SOURCE_DIR "/models/configs/kimi-k2")["quantization_config"];
  auto spec = [&](const char *key, const json &modules) {
    TempFolder folder;
    json changed = fp8;
    changed[key] = modules;
    return load(folder, oracle("kimi_k2"), {{"quantization_config", changed}});
  };
  Expected<ModelSpec> some = spec("modules_to_not_convert", {"lm_head", "o_proj", "self_attn.kv_b_proj"});
  ASSERT_TRUE(some) << some.error().text();
  EXPECT_FALSE(some->find("o")->blocks);
  EXPECT_EQ(some->find("o")->dtype, DType::BF16);
  EXPECT_FALSE(some->find("kv_b")->blocks);
  EXPECT_TRUE(some->find("kv_a")->blocks);
  EXPECT_EQ(some->find("kv_a")->dtype, DType::F32);
  Expected<ModelSpec> words = spec("ignored_layers", {"model.layers.0.mlp", "proj", "b_proj", "model.layers.1"});
  EXPECT_EQ(words.error().message,
            "quantization_config leaves 'model.layers.1.self_attn.q_a_proj.weight' alone and not "
            "'model.layers.0.self_attn.q_a_proj.weight'; tensors of one role must be stored alike");
  Expected<ModelSpec> dense = spec("ignored_layers", {"model.layers.0.mlp"});
  ASSERT_TRUE(dense) << dense.error().text();
  EXPECT_FALSE(dense->find("gate_up")->blocks);
  EXPECT_TRUE(dense->find("experts_gate_up")->blocks);
  EXPECT_EQ(spec("ignored_layers", "lm_head").error().message,
            "quantization_config.ignored_layers must be a list of names");
}

} // namespace
