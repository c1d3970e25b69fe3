//===- ModelSpecTest.cpp - config.json to ModelSpec -----------------------===//

#include "k2c/Model/ModelSpec.h"
#include "TestFiles.h"
#include "k2c/Model/SpecJson.h"

#include <set>

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

Expected<ModelSpec> published(const std::string &name) {
  return loadModelSpec(K2C_SOURCE_DIR "/models/configs/" + name);
}

TEST(ModelSpec, KimiK2) {
  Expected<ModelSpec> spec = published("kimi-k2");
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->family, "deepseek_v3");
  EXPECT_EQ(spec->modelType, "kimi_k2");
  EXPECT_EQ(spec->name, "kimi-k2");
  EXPECT_EQ(spec->hidden, 7168);
  ASSERT_EQ(spec->layers.size(), 2u);
  EXPECT_EQ(spec->layers[0].kinds.front().name, "dense");
  EXPECT_EQ(spec->layers[0].range, (LayerRange{0, 1}));
  EXPECT_EQ(spec->layers[1].kinds.front().name, "moe");
  EXPECT_EQ(spec->layers[1].range, (LayerRange{1, 61}));
  const MlaSpec &mla = std::get<MlaSpec>(spec->attentions["attention"]);
  EXPECT_EQ(mla.heads, 64);
  EXPECT_EQ(mla.queryLatent, 1536);
  EXPECT_EQ(mla.latent, 512);
  EXPECT_EQ(mla.nope, 128);
  EXPECT_EQ(mla.rope, 64);
  EXPECT_EQ(mla.value, 128);
  EXPECT_EQ(mla.latentNormEps, 1e-6);
  ASSERT_TRUE(spec->moe);
  EXPECT_EQ(spec->moe->experts, 384);
  EXPECT_EQ(spec->moe->topK, 8);
  EXPECT_EQ(spec->moe->sharedInter, 2048);
  EXPECT_EQ(spec->moe->scoring, Scoring::Sigmoid);
  EXPECT_TRUE(spec->moe->correctionBias && spec->moe->normalize);
  EXPECT_EQ(spec->moe->normalizeEps, 1e-20);
  EXPECT_EQ(spec->moe->scale, 2.827);
  EXPECT_EQ(spec->mlp->inter, 18432);
  EXPECT_EQ(spec->eos, (std::vector<int64_t>{163585}));
  EXPECT_EQ(spec->bos, 163584);
}

TEST(ModelSpec, GroupLimitedRouting) {
  Expected<ModelSpec> spec = published("deepseek-v3");
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->moe->groups, 8);
  EXPECT_EQ(spec->moe->topGroups, 4);
  EXPECT_EQ(spec->moe->groupScore, GroupScore::Top2Sum);
  EXPECT_EQ(spec->moeLayers().size(), 58u);
  EXPECT_EQ(spec->moeLayers().front(), 3);
}

TEST(ModelSpec, GroupedQueryAttention) {
  Expected<ModelSpec> spec = published("llama-3.1-405b");
  ASSERT_TRUE(spec) << spec.error().text();
  const GqaSpec &gqa = std::get<GqaSpec>(spec->attentions["attention"]);
  EXPECT_EQ(gqa.heads, 128);
  EXPECT_EQ(gqa.kvHeads, 8);
  EXPECT_EQ(gqa.headDim, 128);
  EXPECT_FALSE(spec->moe);
  EXPECT_EQ(spec->eos, (std::vector<int64_t>{128001, 128008, 128009}));
  EXPECT_DOUBLE_EQ(spec->softmaxScale(spec->layers[0].kinds[0]), 1 / std::sqrt(128.0));
}

TEST(ModelSpec, StoredBytesCountBlockScales) {
  Expected<ModelSpec> spec = published("deepseek-v3");
  ASSERT_TRUE(spec);
  ASSERT_TRUE(spec->quantization);
  const WeightFamily *kv = spec->find("kv_a");
  ASSERT_TRUE(kv && kv->blocks);
  // [576, 7168] in blocks of 128: 5 x 56 scales, the last row partial.
  EXPECT_EQ(kv->storedBytes().value, 61 * (576 * 7168 + 5 * 56 * 4));
  EXPECT_FALSE(spec->find("router")->blocks);
  EXPECT_FALSE(spec->find("head")->blocks);
}

TEST(ModelSpec, TensorNames) {
  Expected<ModelSpec> spec = published("kimi-k2");
  ASSERT_TRUE(spec);
  const WeightFamily *experts = spec->find("experts_gate_up");
  ASSERT_TRUE(experts);
  EXPECT_EQ(experts->tensorName(7, 383, 1), "model.layers.7.mlp.experts.383.up_proj.weight");
  EXPECT_EQ(experts->tensorCount(), 60 * 384 * 2);
  EXPECT_EQ(experts->shape, (std::vector<int64_t>{2048, 7168}));
  EXPECT_TRUE(experts->hasLayer(60));
  EXPECT_FALSE(experts->hasLayer(0));
  EXPECT_EQ(spec->find("head")->tensorName(), "lm_head.weight");
}

TEST(ModelSpec, PlacesAreLinesOfTheConfig) {
  Expected<ModelSpec> spec = loadModelSpec(oracle("llama"));
  ASSERT_TRUE(spec);
  const ConfigPlace &place = spec->places.at("hidden");
  EXPECT_EQ(place.key, "hidden_size");
  EXPECT_EQ(place.file, oracle("llama") + "/config.json");
  EXPECT_GT(place.line, 1);
}

TEST(ModelSpec, DirectQueriesAndNoSharedExpert) {
  TempFolder folder;
  Expected<ModelSpec> spec = load(folder, oracle("kimi_k2"), {{"q_lora_rank", nullptr}, {"n_shared_experts", nullptr}});
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(std::get<MlaSpec>(spec->attentions["attention"]).queryLatent, 0);
  EXPECT_TRUE(spec->find("q"));
  EXPECT_FALSE(spec->find("q_a"));
  EXPECT_EQ(spec->moe->sharedInter, 0);
  EXPECT_FALSE(spec->find("shared_down"));
}

TEST(ModelSpec, BiasesAddFamilies) {
  TempFolder folder;
  Expected<ModelSpec> spec = load(folder, oracle("llama"), {{"attention_bias", true}, {"mlp_bias", true}});
  ASSERT_TRUE(spec);
  EXPECT_TRUE(spec->find("q_bias") && spec->find("o_bias"));
  EXPECT_TRUE(spec->find("gate_up_bias") && spec->find("down_bias"));
  EXPECT_TRUE(spec->mlp->bias);
}

TEST(ModelSpec, TiedEmbeddingsHaveNoHead) {
  TempFolder folder;
  Expected<ModelSpec> spec = load(folder, oracle("llama"), {{"tie_word_embeddings", true}});
  ASSERT_TRUE(spec);
  EXPECT_FALSE(spec->find("head"));
}

TEST(ModelSpec, HeadDimDerivedAndExplicit) {
  TempFolder folder;
  Expected<ModelSpec> derived = load(folder, oracle("llama"), {{"head_dim", nullptr}});
  ASSERT_TRUE(derived);
  EXPECT_EQ(std::get<GqaSpec>(derived->attentions["attention"]).headDim, 16);
  Expected<ModelSpec> given = load(folder, oracle("llama"), {{"head_dim", 24}});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->find("q")->shape, (std::vector<int64_t>{96, 64}));
  EXPECT_EQ(failure("llama", {{"num_attention_heads", 3}, {"num_key_value_heads", 3}}),
            "key 'head_dim' is not given and cannot be derived: 'hidden / "
            "heads' asks for 64 / 3, which is not whole");
}

TEST(ModelSpec, StorageType) {
  TempFolder folder;
  EXPECT_EQ(load(folder, oracle("llama"), {{"torch_dtype", "float16"}})->storage, DType::F16);
  EXPECT_EQ(load(folder, oracle("llama"), {{"torch_dtype", "-"}, {"dtype", "bfloat16"}})->storage, DType::BF16);
  EXPECT_EQ(load(folder, oracle("llama"), {{"torch_dtype", "-"}})->storage, DType::F32);
  EXPECT_EQ(failure("llama", {{"torch_dtype", "int8"}}), "element type \"int8\" is not in this build");
  EXPECT_EQ(failure("llama", {{"dtype", "float32"}}), "dtype \"float32\" differs from torch_dtype \"bfloat16\"");
}

TEST(ModelSpec, EndOfSequenceIds) {
  TempFolder folder;
  folder.write("generation_config.json", R"({"eos_token_id": [7, 9], "temperature": 0.6})");
  Expected<ModelSpec> spec = load(folder, oracle("llama"), json::object());
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->eos, (std::vector<int64_t>{7, 9}));
  EXPECT_EQ(failure("llama", {{"eos_token_id", 320}}), "eos_token_id must be a whole number from 0 to 319, got 320");
  folder.write("generation_config.json", R"({"eos_token_id": -1})");
  EXPECT_FALSE(load(folder, oracle("llama"), json::object()));
}

TEST(ModelSpec, ErrorsNameFileAndLine) {
  TempFolder folder;
  folder.write("config.json", "{\n  \"model_type\": \"llama\",\n  \"hidden_size\": 0\n}\n");
  Expected<ModelSpec> spec = loadModelSpec(folder / "config.json");
  ASSERT_FALSE(spec);
  EXPECT_EQ(folder.relative(spec.error().text()), "config.json:3:3: hidden_size must be a whole number from 1 to "
                                                  "2147483647, got 0");
}

TEST(ModelSpec, MissingKeys) {
  for (const char *key :
       {"hidden_size", "num_hidden_layers", "vocab_size", "rms_norm_eps", "hidden_act", "max_position_embeddings"})
    EXPECT_EQ(failure("llama", {{key, "-"}}), std::string("key '") + key + "' is missing");
  for (const char *key : {"kv_lora_rank", "q_lora_rank", "n_routed_experts", "num_experts_per_tok",
                          "first_k_dense_replace", "norm_topk_prob", "routed_scaling_factor", "n_shared_experts"})
    EXPECT_EQ(failure("kimi_k2", {{key, "-"}}), std::string("key '") + key + "' is missing");
  EXPECT_EQ(failure("llama", {{"hidden_size", nullptr}}), "hidden_size must not be null");
}

TEST(ModelSpec, ValuesOfTheWrongKind) {
  EXPECT_EQ(failure("llama", {{"hidden_size", 64.0}}),
            "hidden_size must be a whole number from 1 to 2147483647, got 64.0");
  EXPECT_EQ(failure("llama", {{"hidden_size", 4294967296}}),
            "hidden_size must be a whole number from 1 to 2147483647, got "
            "4294967296");
  EXPECT_EQ(failure("llama", {{"num_hidden_layers", -3}}),
            "num_hidden_layers must be a whole number from 1 to 65536, got -3");
  EXPECT_EQ(failure("llama", {{"attention_bias", 1}}), "attention_bias must be true or false, got 1");
  EXPECT_EQ(failure("llama", {{"rms_norm_eps", 0}}), "rms_norm_eps must be a number above 0, got 0");
  EXPECT_EQ(failure("llama", {{"hidden_act", 3}}), "hidden_act must be a word in quotes, got 3");
}

TEST(ModelSpec, ValuesOutsideThisBuild) {
  EXPECT_EQ(failure("llama", {{"hidden_act", "gelu"}}), "hidden_act 'gelu' is not in this build");
  EXPECT_EQ(failure("kimi_k2", {{"scoring_func", "softmax"}}), "scoring_func 'softmax' is not in this build");
  EXPECT_EQ(failure("kimi_k2", {{"topk_method", "greedy"}}), "topk_method 'greedy' is not in this build");
  EXPECT_EQ(failure("kimi_k2", {{"rope_interleave", false}}), "rope_interleave 'false' is not in this build");
  for (auto [key, value] : {std::pair("scoring_func", "softmax"), std::pair("qk_norm_type", "per_head")})
    EXPECT_EQ(failure("odd_minimax_m2", {{key, value}}), std::string(key) + " '" + value + "' is not in this build");
  for (const char *key : {"use_qk_norm", "use_routing_bias"})
    EXPECT_EQ(failure("odd_minimax_m2", {{key, false}}), std::string(key) + " 'false' is not in this build");
  EXPECT_EQ(failure("odd_minimax_m2", {{"shared_intermediate_size", 64}}),
            "shared_intermediate_size 64: a shared expert is not in this build; supported: 0");
  EXPECT_EQ(failure("odd_minimax_m2", {{"attn_type_list", {0, 1}}}),
            "attn_type_list gives linear attention to layers [0] of 2, which is not in this build");
}

TEST(ModelSpec, Contradictions) {
  EXPECT_EQ(failure("llama", {{"num_key_value_heads", 3}}),
            "num_key_value_heads 3 does not divide num_attention_heads 4");
  EXPECT_EQ(failure("kimi_k2", {{"num_key_value_heads", 2}}),
            "num_key_value_heads 2 differs from num_attention_heads 4: latent "
            "attention has one latent for all");
  EXPECT_EQ(failure("kimi_k2", {{"first_k_dense_replace", 4}}), "first_k_dense_replace 4 exceeds num_hidden_layers 3");
  EXPECT_EQ(failure("kimi_k2", {{"num_experts_per_tok", 13}}), "num_experts_per_tok 13 exceeds n_routed_experts 12");
  EXPECT_EQ(failure("kimi_k2", {{"n_group", 5}}), "n_group 5 does not divide n_routed_experts 12");
  EXPECT_EQ(failure("kimi_k2", {{"n_group", 4}, {"topk_group", 5}}), "topk_group 5 exceeds n_group 4");
  EXPECT_EQ(failure("kimi_k2", {{"n_group", 4}, {"topk_group", 1}}),
            "num_experts_per_tok 4 exceeds the experts of topk_group 1 groups "
            "out of n_group 4, n_routed_experts 12");
  EXPECT_EQ(failure("kimi_k2", {{"n_group", 12}, {"topk_group", 12}}),
            "n_group 12 leaves fewer than two of n_routed_experts 12 in a group");
}

// What transformers 5 writes for the same models.
TEST(ModelSpec, KeysOfNewerFiles) {
  json rope = configOf(oracle("kimi_k2"))["rope_scaling"];
  rope["rope_theta"] = 50000.0;
  rope["rope_type"] = "yarn";
  json changes = {{"rope_scaling", "-"},     {"rope_theta", "-"},
                  {"rope_parameters", rope}, {"torch_dtype", "-"},
                  {"dtype", "bfloat16"},     {"head_dim", 16},
                  {"qk_head_dim", 32},       {"rope_interleave", true},
                  {"pad_token_id", nullptr}, {"output_router_logits", false}};
  EXPECT_EQ(failure("kimi_k2", changes), "");
  EXPECT_EQ(failure("kimi_k2", {{"head_dim", 32}}), "head_dim 32 differs from qk_rope_head_dim 16");
  EXPECT_EQ(failure("kimi_k2", {{"qk_head_dim", 16}}), "qk_head_dim 16 differs from qk_nope_head_dim 16 + "
                                                       "qk_rope_head_dim 16");
}

TEST(ModelSpec, SizesThatOverflow) {
  EXPECT_EQ(failure("llama", {{"hidden_size", 2147483646}, {"vocab_size", 2147483646}, {"head_dim", 16}}),
            "weights 'model.embed_tokens.weight' would have more than "
            "1,125,899,906,842,624 elements");
  EXPECT_EQ(failure("mixtral", {{"num_hidden_layers", 65536}, {"num_local_experts", 65536}}),
            "weights 'model.layers.{layer}.block_sparse_moe.experts.{expert}.{w1|w3}.weight' would have more than "
            "16,777,216 tensors");
}

TEST(ModelSpec, ModelTypes) {
  EXPECT_EQ(failure("llama", {{"model_type", "-"}}), "key 'model_type' is missing");
  EXPECT_EQ(failure("llama", {{"model_type", "mamba"}}), "model_type \"mamba\" is not in this build");
  EXPECT_EQ(failure("llama", {{"architectures", {"DeepseekV3ForCausalLM"}}}),
            "architectures [\"DeepseekV3ForCausalLM\"] do not belong to "
            "model_type \"llama\"");
  std::vector<std::string> types = knownModelTypes();
  EXPECT_TRUE(std::set<std::string>(types.begin(), types.end()).count("kimi_k2"));
}

TEST(ModelSpec, UnknownKeys) {
  EXPECT_EQ(failure("llama", {{"attn_logit_cap", 30}}), "unknown key 'attn_logit_cap' with value 30");
  EXPECT_EQ(failure("llama", {{"sliding_window", nullptr}}), "");
  EXPECT_EQ(failure("llama", {{"sliding_window", 4096}}), "unknown key 'sliding_window' with value 4096");
}

TEST(ModelSpec, GreedyChoiceHasNoGroups) {
  json groups = {{"n_group", 5}, {"topk_group", 1}, {"num_experts_per_tok", 4}, {"topk_method", "greedy"}};
  TempFolder folder;
  Expected<ModelSpec> greedy = load(folder, oracle("deepseek_v2"), groups);
  ASSERT_TRUE(greedy) << greedy.error().text();
  EXPECT_EQ(greedy->moe->groups, 1);
  EXPECT_EQ(greedy->moe->topGroups, 1);
  groups["topk_method"] = "group_limited_greedy";
  EXPECT_EQ(failure("deepseek_v2", groups), "n_group 5 does not divide n_routed_experts 8");
}

TEST(ModelSpec, IgnoredKeysAreRecorded) {
  TempFolder folder;
  json changes = {{"note", "x"}, {"rope_scaling", configOf(oracle("llama"))["rope_scaling"]}};
  changes["rope_scaling"]["origin"] = 1;
  Expected<ModelSpec> spec = load(folder, oracle("llama"), changes, {{"note", "rope_scaling.origin", "absent"}});
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->ignoredKeys, (std::vector<std::string>{"note", "rope_scaling.origin"}));
  EXPECT_EQ(failure("llama", json::object(), {{"hidden_size"}}), "key 'hidden_size' changes what the model computes");
}

TEST(ModelSpec, WhatWasCompiledMayBeNothing) {
  Expected<ModelSpec> spec = loadModelSpec(oracle("llama"));
  ASSERT_TRUE(spec) << spec.error().text();
  for (const json &compiled : {json::object(), json(), json::array(), json("x")}) {
    Status status = checkSameSpec(*spec, "config.json", compiled);
    ASSERT_FALSE(status) << compiled;
    EXPECT_NE(status.error().text().find("what was compiled has none"), std::string::npos) << status.error().text();
  }
}

TEST(ModelSpec, WhatIsNotAConfig) {
  TempFolder folder;
  EXPECT_EQ(loadModelSpec(folder.path).error().message, "there is no config.json");
  EXPECT_EQ(loadModelSpec(folder / "none.json").error().message, "does not exist");
  EXPECT_EQ(loadModelSpec("model.gguf").error().text(),
            "model.gguf: GGUF files are not read; use the model's safetensors checkpoint");
  folder.write("config.json", "[]");
  EXPECT_EQ(loadModelSpec(folder.path).error().message, "is not a JSON object");
}

} // namespace
