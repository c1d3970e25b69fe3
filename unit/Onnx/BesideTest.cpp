//===- BesideTest.cpp - what files beside a .onnx file say --------------------===//
#include "Beside.h"
#include "ReadHelpers.h"
#include "k2c/Model/Rope.h"
#include "k2c/Onnx/Import.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// Two layers of 4 heads of 16, 2 of them of keys and values, 320 ids.
ModelSpec graphSpec() {
  ModelSpec spec;
  spec.hidden = 64;
  spec.vocab = 320;
  spec.normEps = 1e-5;
  GqaSpec attention;
  attention.heads = 4;
  attention.kvHeads = 2;
  attention.headDim = 16;
  spec.attentions[firstAttention] = attention;
  spec.ropes[firstRope].theta = 500000;
  spec.ropes[firstRope].dims = 16;
  spec.mlp = MlpSpec{192};
  spec.layers = {{{LayerKind{"dense"}}, {0, 2}}};
  return spec;
}

ModelSpec graphOfExperts() {
  ModelSpec spec = graphSpec();
  spec.mlp.reset();
  spec.moe.emplace();
  spec.moe->experts = 8;
  spec.moe->topK = 2;
  spec.moe->inter = 96;
  return spec;
}

/// The spec with what a file says; `failure`: why the file is refused.
struct Beside {
  Beside(const char *file, const std::string &text, ModelSpec of = graphSpec()) : spec(std::move(of)) {
    folder.write(file, text);
    const Status status = addWhatIsBeside(spec, folder.path, modelBeside(folder.path));
    failure = status ? "" : folder.relative(status.error().text());
  }
  TempFolder folder;
  ModelSpec spec;
  std::string failure;
};

std::string config(const std::string &text, ModelSpec of = graphSpec()) {
  return Beside("config.json", text, std::move(of)).failure;
}
std::string genai(const std::string &text) { return Beside("genai_config.json", text).failure; }

/// The refusal of a number that is not the graph's.
std::string other(const std::string &file, const std::string &key, const std::string &stated,
                  const std::string &found) {
  return file + ": " + key + " is " + stated + ", and the graph has " + found + "; take both from one export";
}

TEST(OnnxBeside, OfTwoPairsThetaIsNotCompared) { // 10000 with a factor of 2.5 turns them as 62500 does
  ModelSpec spec = graphSpec();
  spec.ropes[firstRope].dims = 4;
  EXPECT_EQ(config(R"({"rope_theta": 10000.0})", spec), "");
  spec.ropes[firstRope].dims = 6;
  EXPECT_EQ(config(R"({"rope_theta": 10000.0})", spec), other("config.json", "rope_theta", "10000.0", "500000"));
}

TEST(OnnxBeside, OfFrequenciesOfNoFormulaThetaIsNotCompared) {
  ModelSpec spec = graphSpec();
  spec.ropes[firstRope].scaling = RopePublished{{1, 0.3f, 0.1f, 0.03f, 0.01f, 0.003f, 0.001f, 0.0003f}};
  EXPECT_EQ(config(R"({"rope_theta": 1234567.0})", spec), "");
}

/// A Llama of the sizes of graphSpec with these keys.
std::string llamaWith(const std::string &keys) {
  return R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "intermediate_size": 192, "vocab_size": 320, "rms_norm_eps": 1e-05,
             "max_position_embeddings": 1024, "hidden_act": "silu", "unknown": 1, )" +
         keys + "}";
}

TEST(OnnxBeside, APublishedConfigDescribesAModel) {
  TempFolder folder;
  EXPECT_FALSE(modelBeside(folder.path));
  folder.write("config.json",
               llamaWith(R"("rope_theta": 500000.0, "rope_scaling": {"rope_type": "linear", "factor": 3})"));
  const std::optional<ModelSpec> stated = modelBeside(folder.path);
  ASSERT_TRUE(stated);
  EXPECT_EQ(std::get<RopeLinear>(stated->ropes.at(firstRope).scaling).factor, 3);
  folder.write("config.json", R"({"model_type": "no family's", "rope_theta": 500000.0})");
  EXPECT_FALSE(modelBeside(folder.path));
}

TEST(OnnxBeside, StatedAnglesAreThoseOfTheGraph) {
  EXPECT_EQ(config(llamaWith(R"("rope_theta": 500000.0)")), "");
  EXPECT_EQ(config(llamaWith(R"("rope_theta": 500000.0, "rope_scaling": {"rope_type": "linear", "factor": 4})")),
            "config.json: rope_theta and rope_scaling turn pair 0 by 0.25 a position, and the graph turns it by 1.0; "
            "take both from one export");
}

TEST(OnnxBeside, WhatAConfigDescribesIsTheGraphs) {
  EXPECT_EQ(config(llamaWith(R"("rope_theta": 500000.0, "attention_bias": true)")),
            "config.json: describes a model whose attention.output_bias is true, and the graph's is false; take both "
            "from one export");
  ModelSpec half = graphSpec();
  half.ropes[firstRope].dims = 8;
  EXPECT_EQ(config(llamaWith(R"("rope_theta": 500000.0)"), half),
            "config.json: turns 8 pairs of a head's elements, and the graph 4; take both from one export");
}

TEST(OnnxBeside, WhatOnlyAnExporterDecidesIsNotCompared) {
  for (const char *keys : {R"("tie_word_embeddings": true)", R"("sliding_window": 16)", R"("torch_dtype": "bfloat16")"})
    EXPECT_EQ(config(llamaWith(std::string(R"("rope_theta": 500000.0, )") + keys)), "") << keys;
  std::string text = llamaWith(R"("rope_theta": 500000.0)");
  text.replace(text.find("1e-05"), 5, "9.999999747378752e-06"); // the float as a double
  EXPECT_EQ(config(text), "");
}

// As hubs have it: files of a model, and in a folder below its graphs.
TEST(OnnxBeside, FilesMayLieAboveAFolderCalledOnnx) {
  TempFolder folder;
  const auto of = [&](const char *file) { return folder.relative(folderBeside(folder / file) + "/"); };
  std::filesystem::create_directories(folder / "onnx");
  std::filesystem::create_directories(folder / "other");
  EXPECT_EQ(of("onnx/model.onnx"), "onnx/");
  folder.write("config.json", "{}");
  EXPECT_EQ(of("onnx/model.onnx"), "");
  EXPECT_EQ(of("other/model.onnx"), "other/");
  folder.write("onnx/genai_config.json", "{}");
  EXPECT_EQ(of("onnx/model.onnx"), "onnx/");
}

TEST(OnnxBeside, WithoutFilesATextHasNoEndAndAnyLength) {
  TempFolder folder;
  ModelSpec spec = graphSpec();
  ASSERT_TRUE(addWhatIsBeside(spec, folder.path, modelBeside(folder.path)));
  EXPECT_TRUE(spec.eos.empty());
  EXPECT_EQ(spec.maxPosition, maxRopePositions);
}

TEST(OnnxBeside, ConfigHasIdsAndLength) {
  const Beside beside("config.json", R"({"bos_token_id": 286, "eos_token_id": [287, 288], "pad_token_id": null,
                                         "vocab_size": 320, "max_position_embeddings": 1024})");
  EXPECT_EQ(beside.failure, "");
  EXPECT_EQ(beside.spec.eos, (std::vector<int64_t>{287, 288}));
  EXPECT_EQ(beside.spec.bos, 286);
  EXPECT_EQ(beside.spec.maxPosition, 1024);
}

TEST(OnnxBeside, GenaiConfigHasIdsAndLength) {
  const Beside beside("genai_config.json", R"({"model": {"bos_token_id": 1, "eos_token_id": 2, "context_length": 99,
      "vocab_size": 320, "decoder": {"head_size": 16, "hidden_size": 64, "num_hidden_layers": 2}}})");
  EXPECT_EQ(beside.failure, "");
  EXPECT_EQ(beside.spec.eos, std::vector<int64_t>{2});
  EXPECT_EQ(beside.spec.bos, 1);
  EXPECT_EQ(beside.spec.maxPosition, 99);
}

TEST(OnnxBeside, GenerationConfigCountsBeforeConfigAndGenaiBeforeBoth) {
  TempFolder folder;
  folder.write("config.json", R"({"eos_token_id": 1})");
  folder.write("generation_config.json", R"({"eos_token_id": [2, 3]})");
  ModelSpec spec = graphSpec();
  ASSERT_TRUE(addWhatIsBeside(spec, folder.path, modelBeside(folder.path)));
  EXPECT_EQ(spec.eos, (std::vector<int64_t>{2, 3}));
  folder.write("genai_config.json", R"({"model": {"eos_token_id": 4}})");
  ASSERT_TRUE(addWhatIsBeside(spec, folder.path, modelBeside(folder.path)));
  EXPECT_EQ(spec.eos, std::vector<int64_t>{4});
}

TEST(OnnxBeside, AnIdOutsideOfTheVocabularyBeginsAndEndsNoText) {
  EXPECT_EQ(Beside("config.json", R"({"bos_token_id": 320})").spec.bos, std::nullopt);
  EXPECT_EQ(Beside("config.json", R"({"eos_token_id": [2, 320, -1]})").spec.eos, std::vector<int64_t>{2});
}

TEST(OnnxBeside, NumbersOfConfigAreThoseOfTheGraph) {
  EXPECT_EQ(config(R"({"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                       "head_dim": 16, "intermediate_size": 192, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
                       "rope_parameters": {"rope_theta": 500000}})"),
            "");
  for (const auto &[key, stated, found] :
       {std::tuple{"hidden_size", "65", "64"}, std::tuple{"num_hidden_layers", "3", "2"},
        std::tuple{"num_attention_heads", "8", "4"}, std::tuple{"num_key_value_heads", "4", "2"},
        std::tuple{"head_dim", "32", "16"}, std::tuple{"vocab_size", "321", "320"},
        std::tuple{"intermediate_size", "193", "192"}, std::tuple{"rms_norm_eps", "1e-06", "1e-05"},
        std::tuple{"rope_theta", "10000.0", "500000"}})
    EXPECT_EQ(config(std::string("{\"") + key + "\": " + stated + "}"), other("config.json", key, stated, found));
  EXPECT_EQ(config(R"({"rope_parameters": {"rope_theta": 10000.0}})"),
            other("config.json: rope_parameters", "rope_theta", "10000.0", "500000"));
}

TEST(OnnxBeside, NumbersOfExpertsAreThoseOfTheGraph) {
  for (const char *key : {"n_routed_experts", "num_local_experts", "num_experts"})
    EXPECT_EQ(config(std::string("{\"") + key + "\": 16}", graphOfExperts()), other("config.json", key, "16", "8"));
  EXPECT_EQ(config(R"({"num_experts_per_tok": 4})", graphOfExperts()),
            other("config.json", "num_experts_per_tok", "4", "2"));
  // The width of experts is under one of two keys, beside which the other is that of dense layers.
  EXPECT_EQ(config(R"({"intermediate_size": 97})", graphOfExperts()),
            other("config.json", "intermediate_size", "97", "96"));
  EXPECT_EQ(config(R"({"intermediate_size": 97, "moe_intermediate_size": 96})", graphOfExperts()), "");
  EXPECT_EQ(config(R"({"intermediate_size": 97, "moe_intermediate_size": 95})", graphOfExperts()),
            other("config.json", "moe_intermediate_size", "95", "96"));
}

TEST(OnnxBeside, NumbersOfLatentsAreThoseOfTheGraph) {
  ModelSpec spec = graphSpec();
  MlaSpec latent;
  latent.heads = 4;
  latent.latent = 32;
  latent.queryLatent = 48;
  spec.attentions[firstAttention] = latent;
  EXPECT_EQ(config(R"({"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 8, "kv_lora_rank": 32})", spec),
            "");
  EXPECT_EQ(config(R"({"kv_lora_rank": 16})", spec), other("config.json", "kv_lora_rank", "16", "32"));
  EXPECT_EQ(config(R"({"q_lora_rank": 16})", spec), other("config.json", "q_lora_rank", "16", "48"));
}

TEST(OnnxBeside, NumbersOfGenaiConfigAreThoseOfTheGraph) {
  EXPECT_EQ(genai(R"({"model": {"vocab_size": 321}})"), other("genai_config.json", "vocab_size", "321", "320"));
  for (const auto &[key, stated, found] :
       {std::tuple{"hidden_size", "65", "64"}, std::tuple{"num_hidden_layers", "3", "2"},
        std::tuple{"num_attention_heads", "8", "4"}, std::tuple{"num_key_value_heads", "4", "2"},
        std::tuple{"head_size", "32", "16"}})
    EXPECT_EQ(genai(std::string(R"({"model": {"decoder": {")") + key + "\": " + stated + "}}}"),
              other("genai_config.json: model.decoder", key, stated, found));
}

TEST(OnnxBeside, FilesOfAnotherShapeAreRefusedOrSayNothing) {
  EXPECT_EQ(config("[]"), "config.json: is not a JSON object; export or copy the model again");
  EXPECT_NE(config("{"), "");
  for (const char *text : {"{}", R"({"model": 1})", R"({"model": {"decoder": [], "eos_token_id": {}}})"})
    EXPECT_EQ(genai(text), "");
}

std::string fileOf(const TempFolder &folder) {
  const Expected<std::string> file = onnxFile(folder.path);
  return folder.relative(file ? *file : file.error().text());
}

TEST(OnnxFile, IsTheOneOfItsFolder) {
  TempFolder folder;
  EXPECT_EQ(fileOf(folder), "");
  folder.write("model.onnx", "");
  EXPECT_EQ(fileOf(folder), "model.onnx");
  folder.write("config.json", "{}");
  EXPECT_EQ(fileOf(folder), "model.onnx");
  EXPECT_EQ(*onnxFile(folder / "gone.onnx"), folder / "gone.onnx");
}

TEST(OnnxFile, OfSeveralIsTheDecoderOfGenaiConfig) {
  TempFolder folder;
  folder.write("model.onnx", "");
  folder.write("vision.onnx", "");
  EXPECT_EQ(folder.relative(onnxFile(folder.path).error().message),
            "has 2 .onnx files, and no genai_config.json names the decoder");
  EXPECT_EQ(onnxFile(folder.path).error().remedy, "name one of the files");
  folder.write("genai_config.json", R"({"model": {"decoder": {"filename": "model.onnx"}}})");
  EXPECT_EQ(fileOf(folder), "model.onnx");
  folder.write("genai_config.json", R"({"model": {"decoder": {"filename": "../model.onnx"}}})");
  EXPECT_EQ(fileOf(folder), "genai_config.json: model.decoder.filename is '../model.onnx', which is not in its folder; "
                            "export or copy the model again");
}

TEST(OnnxFile, OfAHubsFolderIsThatOfAllBits) {
  TempFolder folder;
  folder.write("config.json", "{}");
  std::filesystem::create_directories(folder / "onnx");
  folder.write("onnx/model_q4.onnx", "");
  EXPECT_EQ(fileOf(folder), "");
  folder.write("onnx/model.onnx", "");
  EXPECT_EQ(fileOf(folder), "onnx/model.onnx");
}

TEST(OnnxFile, OfACheckpointIsNone) {
  TempFolder folder;
  folder.write("model.onnx", "");
  folder.write("model.safetensors", "");
  EXPECT_EQ(fileOf(folder), "");
}

} // namespace
