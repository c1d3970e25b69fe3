//===- LayerRunsTest.cpp - which layers are of which kind -----------------===//

#include "TestFiles.h"

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

/// The names of the kinds of a run, in one word.
std::string turns(const LayerRun &run) {
  std::string names;
  for (const LayerKind &kind : run.kinds)
    names += (names.empty() ? "" : " ") + kind.name;
  return names;
}

TEST(LayerRuns, AllLayersOfOneKind) {
  TempFolder folder;
  Expected<ModelSpec> dense = load(folder, oracle("kimi_k2"), {{"first_k_dense_replace", 3}});
  ASSERT_TRUE(dense);
  EXPECT_FALSE(dense->moe);
  EXPECT_FALSE(dense->find("router"));
  Expected<ModelSpec> moe = load(folder, oracle("kimi_k2"), {{"first_k_dense_replace", 0}});
  ASSERT_TRUE(moe);
  EXPECT_FALSE(moe->mlp);
  EXPECT_FALSE(moe->find("gate_up"));
}

// Routed where first_k_dense_replace has passed and moe_layer_freq divides the index.
TEST(LayerRuns, DenseLayersBetweenRoutedOnes) {
  TempFolder folder;
  json changes = {{"num_hidden_layers", 9}, {"first_k_dense_replace", 3}, {"moe_layer_freq", 2}};
  Expected<ModelSpec> spec = load(folder, oracle("kimi_k2"), changes);
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->moeLayers(), (std::vector<int64_t>{4, 6, 8}));
  EXPECT_EQ(spec->find("router")->layerIndices(), (std::vector<int64_t>{4, 6, 8}));
  EXPECT_EQ(spec->find("gate_up")->layerIndices(), (std::vector<int64_t>{0, 1, 2, 3, 5, 7}));
  EXPECT_EQ(spec->find("q_a")->layerCount(), 9);
  ASSERT_EQ(spec->layers.size(), 2u) << "a prefix, and turns behind it";
  EXPECT_EQ(turns(spec->layers[1]), "dense moe");
  EXPECT_EQ(spec->layers[1].range, (LayerRange{3, 9}));
  ASSERT_EQ(spec->layersByKind().size(), 6u);
  EXPECT_EQ(spec->layersByKind()[0].range, (LayerRange{0, 4}));
  EXPECT_EQ(failure("kimi_k2", {{"moe_layer_freq", 0}}),
            "moe_layer_freq must be a whole number from 1 to 2147483647, got 0");
}

// Of every decoder_sparse_step layers the last one is routed.
TEST(LayerRuns, TheLastOfEverySparseStepIsRouted) {
  TempFolder folder;
  Expected<ModelSpec> spec = load(folder, oracle("qwen3_moe"), {{"num_hidden_layers", 8}, {"decoder_sparse_step", 3}});
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->moeLayers(), (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(spec->find("down")->layerIndices(), (std::vector<int64_t>{0, 1, 3, 4, 6, 7}));
}

TEST(LayerRuns, NamedLayersAreDense) {
  TempFolder folder;
  json layers = {{"num_hidden_layers", 4}, {"mlp_only_layers", {2, 1}}};
  Expected<ModelSpec> spec = load(folder, oracle("qwen3_moe"), layers);
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->moeLayers(), (std::vector<int64_t>{0, 3}));
  layers["mlp_only_layers"] = {4};
  EXPECT_EQ(failure("qwen3_moe", layers), "mlp_only_layers names layer 4 of 4");
  layers["mlp_only_layers"] = 1;
  EXPECT_EQ(failure("qwen3_moe", layers), "mlp_only_layers must be a list of layers, got 1");
}

// A list of layers that take turns at least twice makes one run of them, another list makes a run for each change.
TEST(LayerRuns, LayersThatAreNotRotated) {
  TempFolder folder;
  auto runs = [&](const json &rotated) {
    json changes = {{"num_hidden_layers", rotated.size()}, {"no_rope_layers", rotated}, {"layer_types", "-"}};
    Expected<ModelSpec> spec = load(folder, oracle("odd_smollm3"), changes);
    EXPECT_TRUE(spec) << spec.error().text();
    EXPECT_EQ(spec->find("down")->layerCount(), int64_t(rotated.size()));
    std::string text;
    for (const LayerRun &run : spec->layers)
      text += turns(run) + " to " + std::to_string(run.range.end) + "; ";
    return text;
  };
  EXPECT_EQ(runs({1, 0, 1, 0, 1}), "dense unrotated to 5; ");
  EXPECT_EQ(runs({1, 1, 0, 1, 1}), "dense to 2; unrotated to 3; dense to 5; ");
  EXPECT_EQ(runs({1, 1}), "dense to 2; ");
  EXPECT_EQ(failure("odd_smollm3", {{"no_rope_layers", {0, 0, 0, 0, 0}}}),
            "no_rope_layers rotates none of num_hidden_layers 5, which is not in this build");
  EXPECT_EQ(failure("odd_smollm3", {{"no_rope_layers", {1, 0}}}),
            "no_rope_layers must be a list of 5 (layers) of 0, 1, got [1,0]");
  EXPECT_EQ(failure("odd_smollm3", {{"no_rope_layers", "-"}}), "key 'no_rope_layers' is missing");
  json types(5, "full_attention");
  types[3] = "sliding_attention";
  EXPECT_EQ(failure("odd_smollm3", {{"layer_types", types}}),
            "layer_types has sliding layers [3]: attention with a window is not in this build");
}

// transformers writes the types of layers of families that could have windows.
TEST(LayerRuns, LayersWhoseTypesAreAllFull) {
  TempFolder folder;
  for (const char *name : {"odd_qwen2", "odd_qwen3"}) {
    json types(configOf(oracle(name))["num_hidden_layers"].get<size_t>(), "full_attention");
    Expected<ModelSpec> spec = load(folder, oracle(name), {{"layer_types", types}});
    EXPECT_TRUE(spec) << spec.error().text();
    types[1] = "sliding_attention";
    EXPECT_EQ(failure(name, {{"layer_types", types}}),
              "layer_types has sliding layers [1]: attention with a window is not in this build");
  }
}

// GPT-OSS: a list names the layers with a window; without it every other one has it, from the first one on.
TEST(LayerRuns, LayersWithAWindow) {
  TempFolder folder;
  const std::string published = K2C_SOURCE_DIR "/models/configs/gpt-oss-120b";
  LoadOptions plan;
  plan.purpose = LoadPurpose::Plan;
  for (const json &types : {configOf(published)["layer_types"], json("-"), json()}) {
    Expected<ModelSpec> spec = load(folder, published, {{"layer_types", types}}, plan);
    ASSERT_TRUE(spec) << spec.error().text();
    ASSERT_EQ(spec->layers.size(), 1u);
    EXPECT_EQ(turns(spec->layers[0]), "sliding moe");
    EXPECT_EQ(spec->layers[0].range, (LayerRange{0, 36}));
    EXPECT_EQ(std::get<GqaSpec>(spec->attentions["sliding"]).window, 128);
    EXPECT_EQ(std::get<GqaSpec>(spec->attentions["attention"]).window, 0);
  }
  json full(36, "full_attention");
  Expected<ModelSpec> spec = load(folder, published, {{"layer_types", full}}, plan);
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->attentions.size(), 1u) << "those that layers have";
}

} // namespace
