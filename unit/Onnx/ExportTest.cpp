//===- ExportTest.cpp - models as ONNX files ----------------------------------===//
//
// What is written is read back: as a graph, and as the model that it was.
//
//===----------------------------------------------------------------------===//
#include "k2c/Onnx/Export.h"
#include "DecoderWriter.h"
#include "ReadHelpers.h"
#include "base/Json.h"
#include "k2c/Model/Rope.h"
#include "k2c/Onnx/Import.h"
#include <filesystem>
#include <regex>

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

const std::string llama = R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 40,
  "intermediate_size": 24, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-5,
  "max_position_embeddings": 64, "hidden_act": "silu", "rope_theta": 10000.0)";
const std::string mixtral = R"({"model_type": "mixtral", "hidden_size": 32, "num_hidden_layers": 1, "vocab_size": 40,
  "intermediate_size": 24, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-5,
  "max_position_embeddings": 64, "hidden_act": "silu", "num_local_experts": 4, "num_experts_per_tok": 2)";

ModelSpec specOf(const std::string &config) {
  Expected<ModelSpec> spec = parseModelSpec(config + "}", "config.json", {{}, LoadPurpose::Compile});
  EXPECT_TRUE(spec) << spec.error().text();
  return std::move(*spec);
}

/// Float32 tensors of a spec, whose elements tell name and place.
class NumberedTensors : public TensorSource {
public:
  explicit NumberedTensors(const ModelSpec &spec) {
    for (const WeightFamily &family : spec.weights)
      for (int64_t layer : family.layers.empty() ? std::vector<int64_t>{0} : family.layerIndices())
        for (int64_t expert = 0; expert < std::max<int64_t>(1, family.experts); expert++)
          for (size_t i = 0; i < std::max<size_t>(1, family.alternatives.size()); i++)
            tensors[family.tensorName(layer, expert, i)] = {DType::F32, family.shape};
  }

  static float element(const std::string &name, int64_t index) {
    return float(std::hash<std::string>()(name) % 1000) + float(index) / 4096;
  }
  Expected<StoredTensor> find(const std::string &name) const override {
    const auto found = tensors.find(name);
    return found != tensors.end() ? Expected<StoredTensor>(found->second) : Error{name, "is not there", ""};
  }
  Status read(const std::string &name, int64_t offset, char *out, int64_t count) const override {
    for (int64_t i = 0; i < count / 4; i++) {
      const float value = element(name, offset / 4 + i);
      std::memcpy(out + 4 * i, &value, 4);
    }
    return {};
  }
  TensorPlace place(const std::string &name) const override { return {}; }
  std::vector<PieceFile> files() const override { return {}; }

private:
  std::map<std::string, StoredTensor> tensors;
};

/// Exports the spec into a folder of its own; "": that went well.
std::string exported(const ModelSpec &spec, const TempFolder &folder) {
  const NumberedTensors tensors(spec);
  const Status status = exportOnnx({spec, tensors, "1.2.3"}, folder.path);
  return status ? "" : folder.relative(status.error().text());
}

TEST(ExportOnnx, AModelIsReadBackAsItself) {
  for (const std::string &config :
       {llama, mixtral, llama + R"(, "tie_word_embeddings": true, "attention_bias": true, "mlp_bias": true)"}) {
    const ModelSpec spec = specOf(config);
    const TempFolder folder;
    ASSERT_EQ(exported(spec, folder), "");
    const Expected<OnnxModel> model = importOnnx(folder / "model.onnx");
    ASSERT_TRUE(model) << model.error().text();
    EXPECT_EQ(model->spec.layerCount(), spec.layerCount());
    EXPECT_EQ(model->spec.tiedEmbeddings, spec.tiedEmbeddings);
    EXPECT_EQ(model->spec.maxPosition, 64);
    EXPECT_EQ(ropeTable(model->spec.ropes.at(firstRope), 64), ropeTable(spec.ropes.at(firstRope), 64));
    const NumberedTensors stored(spec);
    for (const WeightFamily &family : spec.weights) {
      const WeightFamily &mine = *model->spec.find(family.id);
      EXPECT_EQ(mine.shape, family.shape) << family.id;
      const int64_t expert = std::max<int64_t>(0, family.experts - 1);
      std::vector<float> values(static_cast<size_t>(family.elements()));
      ASSERT_TRUE(model->tensors->read(mine.tensorName(0, expert), 0, reinterpret_cast<char *>(values.data()),
                                       family.elements() * 4));
      for (int64_t i = 0; i < family.elements(); i++)
        ASSERT_EQ(values[size_t(i)], NumberedTensors::element(family.tensorName(0, expert), i)) << family.id;
    }
  }
}

TEST(ExportOnnx, GenaiReadsWhichFileAndInputsThereAre) {
  const TempFolder folder;
  ModelSpec spec = specOf(llama + R"(, "eos_token_id": [2, 3], "bos_token_id": 1)");
  ASSERT_EQ(exported(spec, folder), "");
  const Expected<JsonDocument> config = readJsonFile(folder / "genai_config.json");
  ASSERT_TRUE(config);
  const nlohmann::json &model = config->root()["model"], &decoder = model["decoder"];
  EXPECT_EQ(decoder["filename"], "model.onnx");
  EXPECT_EQ(decoder["head_size"], 16);
  EXPECT_EQ(decoder["num_key_value_heads"], 1);
  EXPECT_EQ(model["eos_token_id"], (std::vector<int>{2, 3}));
  EXPECT_EQ(model["pad_token_id"], 2); // which the mask hides
  EXPECT_EQ(model["context_length"], 64);
  EXPECT_FALSE(decoder["inputs"].contains("position_ids")); // GroupQueryAttention counts them
}

TEST(ExportOnnx, HeadsThatGroupQueryAttentionDoesNotTakeAreTurnedByTheGraph) {
  ModelSpec spec = specOf(llama);
  spec.maxPosition = 1 << 21; // tables of 128 MiB
  EXPECT_FALSE(areGroupQueryNodes(spec));
  const std::string narrow = std::regex_replace(llama, std::regex("\"head_dim\": 16"), "\"head_dim\": 10");
  const TempFolder folder;
  ASSERT_EQ(exported(specOf(narrow), folder), "");
  const Expected<JsonDocument> config = readJsonFile(folder / "genai_config.json");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->root()["model"]["decoder"]["inputs"]["position_ids"], "position_ids");
  EXPECT_TRUE(importOnnx(folder / "model.onnx"));
}

TEST(ExportOnnx, TurnedPartsThatGroupQueryAttentionDoesNotTakeAreTurnedByTheGraph) {
  ModelSpec spec = specOf(llama);
  EXPECT_TRUE(areGroupQueryNodes(spec));
  spec.ropes.at(firstRope).dims = 8;
  EXPECT_FALSE(areGroupQueryNodes(spec));
}

TEST(ExportOnnx, SequencesEndWhereTheFirstFormulaOfAnglesEnds) {
  ModelSpec spec = specOf(llama);
  for (const auto &[maxContext, longest] : {std::pair(0, 64), std::pair(48, 48), std::pair(128, 64)}) {
    spec.ropes.at(firstRope).maxContext = maxContext;
    EXPECT_EQ(longestSequence(spec), longest);
  }
}

TEST(ExportOnnx, ARouterWhoseGroupsLeaveExpertsOutIsNodes) {
  const MoeSpec moe = *specOf(mixtral).moe; // 2 of 4 experts
  const auto isNode = [&](int64_t groups, int64_t topGroups, double scale = 1) {
    MoeSpec other = moe;
    other.groups = groups;
    other.topGroups = topGroups;
    other.scale = scale;
    return isMoeNode(other);
  };
  EXPECT_TRUE(isNode(1, 1));
  EXPECT_FALSE(isNode(2, 1));
  EXPECT_TRUE(isNode(4, 2)); // of which each is an expert: the best 2
  EXPECT_FALSE(isNode(1, 1, 2.5));
}

/// What exportOnnx says of a model that a change has made one that no graph is of.
std::string refusal(const std::function<void(ModelSpec &)> &change) {
  ModelSpec spec = specOf(llama);
  change(spec);
  return exported(spec, TempFolder());
}

TEST(ExportOnnx, WhatNoGraphIsOfIsRefused) {
  EXPECT_EQ(refusal([](ModelSpec &spec) { spec.family = "switch"; }),
            "family switch is planned only: its graph is not in this build; export a model that k2c compiles: "
            "k2c models");
  EXPECT_EQ(refusal([](ModelSpec &spec) { std::get<GqaSpec>(spec.attentions.at(firstAttention)).window = 8; }),
            "attention to the last 8 tokens alone: its graph is not in this build; export a model that k2c "
            "compiles: k2c models");
  EXPECT_EQ(refusal([](ModelSpec &spec) { spec.mlp->activation = Activation::Gelu; }),
            "config.json:3:34: hidden_act: a gate without silu: its graph is not in this build; export a model that "
            "k2c compiles: k2c models");
  EXPECT_EQ(refusal([](ModelSpec &spec) { spec.weights[2].blocks.emplace(); }),
            "tensors such as model.layers.0.self_attn.q_proj.weight are stored in blocks with scales, which no graph "
            "of this build has; export a checkpoint of the model in bf16, f16 or f32");
}

TEST(ExportOnnx, AModelThatTheFileSystemHasNoSpaceForIsNotBegun) {
  ModelSpec spec = specOf(llama);
  spec.weights[0].shape = {int64_t(1) << 40, 32};
  const TempFolder folder;
  const std::string said = exported(spec, folder);
  EXPECT_EQ(said.rfind(".: the model as float32 takes 128.00 TiB (140.74 TB), and its file system has ", 0), 0u)
      << said;
  EXPECT_NE(said.find(" left; free space or choose another folder"), std::string::npos) << said;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

} // namespace
