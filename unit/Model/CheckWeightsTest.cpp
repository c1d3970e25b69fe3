//===- CheckWeightsTest.cpp - a checkpoint against its model --------------===//
//
// Each negative test alters the header of an oracle checkpoint: a rename keeps
// the data valid, so only the check at hand can fail.
//
//===----------------------------------------------------------------------===//

#include "k2c/Model/CheckWeights.h"
#include "TestFiles.h"

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

/// Loads an oracle's config.json with changes and its weights with an altered
/// header.
class Altered {
public:
  explicit Altered(const std::string &family) : family(family) {
    std::string bytes = readFile(oracle(family) + "/model.safetensors");
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i)
      length = length << 8 | static_cast<unsigned char>(bytes[size_t(i)]);
    header = json::parse(bytes.substr(8, length));
    data = bytes.substr(8 + length);
    config = configOf(oracle(family));
  }

  std::string failure() {
    folder.write("config.json", config.dump());
    folder.write("model.safetensors", safetensors(header.dump(), data));
    Expected<ModelSpec> spec = loadModelSpec(folder.path);
    if (!spec)
      return spec.error().message;
    Expected<Checkpoint> checkpoint = Checkpoint::open(folder.path);
    if (!checkpoint)
      return checkpoint.error().message;
    Status status = checkWeights(*spec, *checkpoint);
    return status ? "" : status.error().message;
  }

  void rename(const std::string &from, const std::string &to) {
    header[to] = header[from];
    header.erase(from);
  }
  /// Adds an empty tensor.
  void add(const std::string &name) { header[name] = {{"dtype", "F32"}, {"shape", {0}}, {"data_offsets", {0, 0}}}; }

  TempFolder folder;
  std::string family;
  json header, config;
  std::string data;
};

const std::string kimiRouter = "model.layers.1.mlp.gate.weight";

TEST(CheckWeights, OracleAndBundledCheckpoints) {
  for (const std::string &folder : {oracle("llama"), oracle("kimi_k2"), oracle("deepseek_v3"),
                                    oracle("deepseek_v3_fp8"), std::string(K2C_SOURCE_DIR "/models/bundled")}) {
    Expected<ModelSpec> spec = loadModelSpec(folder);
    ASSERT_TRUE(spec) << spec.error().text();
    Expected<Checkpoint> checkpoint = Checkpoint::open(folder);
    ASSERT_TRUE(checkpoint) << checkpoint.error().text();
    Status status = checkWeights(*spec, *checkpoint);
    EXPECT_TRUE(status) << status.error().text();
    EXPECT_EQ(spec->find("embed")->dtype, DType::BF16);
    if (spec->moe) {
      EXPECT_EQ(spec->find("selection_bias")->dtype, DType::F32);
    }
  }
}

TEST(CheckWeights, MissingTensor) {
  Altered altered("llama");
  altered.rename("model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.lost");
  EXPECT_EQ(altered.failure(), "tensor 'model.layers.1.mlp.up_proj.weight' is missing");
}

TEST(CheckWeights, MissingExpert) {
  Altered altered("kimi_k2");
  altered.config["n_routed_experts"] = 16;
  altered.header[kimiRouter]["shape"] = {16, 48};
  EXPECT_EQ(altered.failure(), "tensor '" + kimiRouter + "' has shape [16, 48], config.json asks for [16, 64]");
}

TEST(CheckWeights, WrongShape) {
  Altered altered("kimi_k2");
  altered.header[kimiRouter]["shape"] = {64, 12};
  EXPECT_EQ(altered.failure(), "tensor '" + kimiRouter + "' has shape [64, 12], config.json asks for [12, 64]");
}

TEST(CheckWeights, WrongElementType) {
  Altered altered("kimi_k2");
  altered.header[kimiRouter]["dtype"] = "I16";
  EXPECT_EQ(altered.failure(), "tensor '" + kimiRouter + "' has element type i16, a weight must be f32, bf16 or f16");
}

TEST(CheckWeights, MixedElementTypesOfOneRoleAreAccepted) {
  Altered altered("kimi_k2");
  altered.header["model.layers.2.mlp.gate.weight"]["dtype"] = "F16";
  EXPECT_EQ(altered.failure(), "");
}

TEST(CheckWeights, Float16IsAccepted) {
  Altered altered("llama");
  for (auto &[name, entry] : altered.header.items())
    if (name != "__metadata__")
      entry["dtype"] = "F16";
  EXPECT_EQ(altered.failure(), "");
}

TEST(CheckWeights, UnknownTensor) {
  Altered altered("llama");
  altered.add("model.layers.0.self_attn.q_norm.weight");
  EXPECT_EQ(altered.failure(), "tensor 'model.layers.0.self_attn.q_norm.weight' [0] is not part "
                               "of a llama model of 3 layers");
}

TEST(CheckWeights, LayersBeyondTheConfig) {
  Altered altered("llama");
  altered.config["num_hidden_layers"] = 2;
  EXPECT_EQ(altered.failure(), "tensor 'model.layers.2.input_layernorm.weight' [64] is not part "
                               "of a llama model of 2 layers");
}

TEST(CheckWeights, InverseFrequenciesAreIgnored) {
  Altered altered("llama");
  altered.add("model.layers.2.self_attn.rotary_emb.inv_freq");
  EXPECT_EQ(altered.failure(), "");
  altered.add("model.layers.3.self_attn.rotary_emb.inv_freq");
  EXPECT_NE(altered.failure(), "");
}

TEST(CheckWeights, PredictionLayerIsIgnoredOnlyWhenItIsOne) {
  Altered altered("kimi_k2");
  altered.config["num_nextn_predict_layers"] = 1;
  altered.add("model.layers.3.enorm.weight");
  EXPECT_EQ(altered.failure(), "tensor 'model.layers.3.enorm.weight' [0] is not part of a "
                               "kimi_k2 model of 3 layers");
  altered.add("model.layers.3.eh_proj.weight");
  EXPECT_EQ(altered.failure(), "");
}

TEST(CheckWeights, ALostLayerIsNotTakenForAPredictionLayer) {
  Altered altered("kimi_k2");
  altered.config["num_nextn_predict_layers"] = 1;
  altered.config["num_hidden_layers"] = 2;
  EXPECT_NE(altered.failure().find("model.layers.2."), std::string::npos);
}

TEST(CheckWeights, TiedEmbeddings) {
  Altered present("llama");
  present.config["tie_word_embeddings"] = true;
  EXPECT_EQ(present.failure(), "");
  Altered absent("llama");
  absent.rename("lm_head.weight", "lm_head.other");
  EXPECT_EQ(absent.failure(), "tensor 'lm_head.weight' is missing");
}

TEST(CheckWeights, Fp8ThatTheConfigDoesNotSay) {
  Altered altered("deepseek_v3_fp8");
  altered.config.erase("quantization_config");
  EXPECT_EQ(altered.failure(), "tensor 'model.layers.0.self_attn.q_a_proj.weight' is FP8, which quantization_config of "
                               "config.json does not say");
}

TEST(CheckWeights, ScalesOfEveryTensorInBlocks) {
  const std::string weight = "model.layers.0.self_attn.q_a_proj.weight", scales = weight + scaleSuffix;
  EXPECT_EQ(Altered("deepseek_v3_fp8").failure(), "");
  Altered missing("deepseek_v3_fp8");
  missing.rename(scales, "model.lost");
  EXPECT_EQ(missing.failure(), "tensor '" + weight + "' has no scales: tensor '" + scales + "' is missing");
  Altered shape("deepseek_v3_fp8");
  shape.header[scales]["shape"] = {4, 1};
  EXPECT_EQ(shape.failure(),
            "tensor '" + scales + "' has shape [4, 1], blocks of [128, 128] of [136, 160] have [2, 2] scales");
  Altered type("deepseek_v3_fp8");
  type.header[scales]["dtype"] = "I32";
  EXPECT_EQ(type.failure(), "tensor '" + scales + "' has element type i32, scales are f32");
  Altered extra("deepseek_v3_fp8");
  extra.add("model.norm.weight_scale_inv");
  EXPECT_EQ(extra.failure(), "tensor 'model.norm.weight_scale_inv' [0] is not part of a deepseek_v3 model of 2 layers");
}

TEST(CheckWeights, QuantizationThatTheWeightsDoNotHave) {
  Altered altered("kimi_k2");
  altered.config["quantization_config"] = configOf(K2C_SOURCE_DIR "/models/configs/kimi-k2")["quantization_config"];
  EXPECT_EQ(altered.failure(), "tensor 'model.layers.0.self_attn.q_a_proj.weight' has element type bf16, "
                               "quantization_config of config.json says f8E4M3FN");
}

} // namespace
