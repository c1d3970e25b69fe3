//===- PublishedFormTest.cpp - descriptions to config.json and back -------===//
#include "k2c/Model/PublishedForm.h"
#include "TestFiles.h"

#include <filesystem>

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

/// Every config.json of the repository that compiles, quantised ones as if they were not.
std::vector<ModelSpec> allThatCompile() {
  std::vector<ModelSpec> specs;
  for (const char *folder : {"/models/configs", "/test/EndToEnd/oracle"})
    for (const auto &entry : std::filesystem::directory_iterator(K2C_SOURCE_DIR + std::string(folder)))
      if (std::filesystem::exists(entry.path() / "config.json")) {
        json config = configOf(entry.path().string());
        config.erase("quantization_config");
        if (Expected<ModelSpec> spec = parseModelSpec(config.dump(), entry.path().string()))
          specs.push_back(std::move(*spec));
      }
  return specs;
}

json parsed(const PublishedForm &form) { return json::parse(form.config); }

/// What is found for an oracle's config with `changes` to its description.
Expected<PublishedForm> formOf(const std::string &family, const std::function<void(ModelSpec &)> &change,
                               const std::string &preferred = "") {
  Expected<ModelSpec> spec = loadModelSpec(oracle(family));
  if (!spec)
    return spec.takeError();
  change(*spec);
  return publishedForm(*spec, preferred);
}

void nothing(ModelSpec &) {}

TEST(PublishedForm, EachConfigComesBackFromItsDescription) {
  const std::vector<ModelSpec> specs = allThatCompile();
  std::set<std::string> families;
  for (const ModelSpec &spec : specs) {
    const Expected<PublishedForm> form = publishedForm(spec, spec.modelType);
    ASSERT_TRUE(form) << spec.name << ": " << form.error().text();
    EXPECT_EQ(form->spec.modelType, spec.modelType);
    EXPECT_EQ(sameModelJson(form->spec), sameModelJson(spec));
    EXPECT_EQ(form->spec.eos, spec.eos);
    EXPECT_EQ(form->spec.bos, spec.bos);
    EXPECT_EQ(form->spec.storage, spec.storage);
    EXPECT_TRUE(form->spec.ignoredKeys.empty());
    families.insert(spec.family);
  }
  EXPECT_EQ(families.size(), 10u) << "of models/families/compile.yaml";
}

TEST(PublishedForm, TensorsHaveThePublishedNames) {
  for (const ModelSpec &spec : allThatCompile()) {
    const Expected<PublishedForm> form = publishedForm(spec, spec.modelType);
    ASSERT_TRUE(form) << form.error().text();
    ASSERT_EQ(form->spec.weights.size(), spec.weights.size());
    for (const WeightFamily &weight : spec.weights)
      EXPECT_EQ(form->spec.find(weight.id)->pattern, weight.pattern);
  }
}

TEST(PublishedForm, WithoutAPreferenceTheFirstOfTheListIsTaken) {
  // A SmolLM3 of which all layers rotate is a Llama.
  const auto rotateAll = [](ModelSpec &spec) {
    const LayerKind rotated = spec.layers.front().kinds.front();
    spec.layers = {{{rotated}, {0, spec.layerCount()}}};
  };
  const Expected<PublishedForm> form = formOf("odd_smollm3", rotateAll),
                                same = formOf("odd_smollm3", rotateAll, "smollm3");
  ASSERT_TRUE(form && same);
  EXPECT_EQ(form->spec.family, "llama");
  EXPECT_EQ(same->spec.family, "smollm3");
}

TEST(PublishedForm, APreferenceForAnotherModelIsPassedOver) {
  const Expected<PublishedForm> form = formOf("qwen3_moe", nothing, "mixtral");
  ASSERT_TRUE(form);
  EXPECT_EQ(form->spec.modelType, "qwen3_moe");
}

TEST(PublishedForm, NamesOfKindsAndAttentionsDoNotCount) {
  const auto rename = [](ModelSpec &spec) {
    for (LayerRun &run : spec.layers)
      for (LayerKind &kind : run.kinds)
        kind.name = "layer_" + kind.name, kind.attention = "heads", kind.rope = kind.rope.empty() ? "" : "angles";
    spec.attentions = {{"heads", spec.attentions.begin()->second}};
    spec.ropes = {{"angles", spec.ropes.begin()->second}};
  };
  const Expected<PublishedForm> form = formOf("odd_smollm3", rename);
  ASSERT_TRUE(form) << form.error().text();
  EXPECT_EQ(form->spec.family, "smollm3");
}

TEST(PublishedForm, AnExpressionIsSolvedForItsUnknownField) {
  const Expected<PublishedForm> form = formOf("deepseek_v2", nothing);
  ASSERT_TRUE(form) << form.error().text();
  EXPECT_EQ(parsed(*form)["n_shared_experts"], 2);
  EXPECT_EQ(parsed(*form)["topk_method"], "group_limited_greedy");
  EXPECT_EQ(parsed(*form)["n_group"], 4);
}

TEST(PublishedForm, ADefaultThatIsMadeOfOtherFieldsIsWritten) {
  const Expected<PublishedForm> form = formOf("deepseek_v3", nothing);
  ASSERT_TRUE(form) << form.error().text();
  EXPECT_EQ(parsed(*form)["num_key_value_heads"], 4) << "readers have other defaults";
  EXPECT_FALSE(parsed(*form).contains("num_nextn_predict_layers")) << "a number";
}

TEST(PublishedForm, LayersSayPeriodsAndLists) {
  const Expected<PublishedForm> period = formOf("odd_qwen3_alternating", nothing);
  ASSERT_TRUE(period) << period.error().text();
  EXPECT_EQ(parsed(*period)["decoder_sparse_step"], configOf(oracle("odd_qwen3_alternating"))["decoder_sparse_step"]);
  const Expected<PublishedForm> list = formOf("odd_smollm3", nothing);
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(parsed(*list)["no_rope_layers"], configOf(oracle("odd_smollm3"))["no_rope_layers"]);
}

TEST(PublishedForm, YarnOfAnyMagnitudeIsStated) {
  const auto magnify = [](ModelSpec &spec) { spec.ropes["rope"].cosSinScale = 1.5; };
  const Expected<PublishedForm> form = formOf("kimi_k2", magnify);
  ASSERT_TRUE(form) << form.error().text();
  EXPECT_EQ(parsed(*form)["rope_scaling"]["attention_factor"], 1.5);
  EXPECT_EQ(parsed(*form)["rope_scaling"]["mscale"], 1.0);
}

TEST(PublishedForm, ARampOfYarnThatIsNotCutToWholePairsIsStated) {
  const auto ramp = [](ModelSpec &spec) { std::get<RopeYarn>(spec.ropes["rope"].scaling).truncate = false; };
  const Expected<PublishedForm> form = formOf("kimi_k2", ramp), cut = formOf("kimi_k2", nothing);
  ASSERT_TRUE(form && cut);
  EXPECT_EQ(parsed(*form)["rope_scaling"]["truncate"], false);
  EXPECT_FALSE(parsed(*cut)["rope_scaling"].contains("truncate"));
}

TEST(PublishedForm, WeightsHaveTheTypesThatTheModelHas) {
  const auto widen = [](ModelSpec &spec) { spec.weights.front().dtype = DType::F32; };
  const Expected<PublishedForm> form = formOf("mixtral", widen);
  ASSERT_TRUE(form) << form.error().text();
  EXPECT_EQ(form->spec.weights.front().dtype, DType::F32);
  EXPECT_EQ(form->spec.weights.back().dtype, DType::BF16);
}

TEST(PublishedForm, IdsThatNobodyKnowsAreNull) {
  const auto forget = [](ModelSpec &spec) { spec.eos.clear(), spec.bos.reset(); };
  const Expected<PublishedForm> form = formOf("llama", forget);
  ASSERT_TRUE(form) << form.error().text();
  EXPECT_TRUE(parsed(*form)["eos_token_id"].is_null());
  EXPECT_TRUE(parsed(*form)["bos_token_id"].is_null());
  EXPECT_TRUE(parsed(*form)["pad_token_id"].is_null());
}

TEST(PublishedForm, WhatWeightsWereWidenedFromDoesNotCount) {
  EXPECT_TRUE(formOf("llama", [](ModelSpec &spec) { spec.widened.emplace_back(); }));
}

TEST(PublishedForm, NumbersThatChangeNothingDoNotCount) {
  const auto oneGroup = [](ModelSpec &spec) { spec.moe->groupScore = GroupScore::Max; };
  EXPECT_TRUE(formOf("kimi_k2", oneGroup)) << "its one group is not ranked";
  const auto allGroups = [](ModelSpec &spec) { spec.moe->groups = spec.moe->topGroups = 2; };
  EXPECT_TRUE(formOf("qwen3_moe", allGroups)) << "no group is left out, of which its family has none";
  const auto unnormalised = [](ModelSpec &spec) { spec.moe->normalizeEps = 1; };
  EXPECT_TRUE(formOf("olmoe", unnormalised)) << "its weights are not divided by their sum";
}

/// What another value of the description is refused with.
std::string refusal(const std::string &family, const std::function<void(ModelSpec &)> &change) {
  const Expected<PublishedForm> form = formOf(family, change);
  return form ? "" : form.error().text();
}

TEST(PublishedForm, TheNearestFamilyIsNamedWithBothValues) {
  const std::string begin = "is the model of no family of models/families that compiles; the nearest is ";
  const auto interleave = [](ModelSpec &spec) { spec.ropes["rope"].pairs = RopePairs::Interleaved; };
  EXPECT_EQ(refusal("llama", interleave), "llama: " + begin +
                                              "llama, whose rope.pairs is \"half\", and the model's \"interleaved\"; " +
                                              "k2c compile needs no family");
  const auto halve = [](ModelSpec &spec) { spec.ropes["rope"].pairs = RopePairs::Half; };
  EXPECT_NE(refusal("deepseek_v3", halve).find("rope.pairs is \"interleaved\", and the model's \"half\""),
            std::string::npos);
  const auto clip = [](ModelSpec &spec) { std::get<GqaSpec>(spec.attentions["attention"]).clip = 8; };
  EXPECT_NE(refusal("odd_qwen3", clip).find("attention.clip is 0.0, and the model's 8.0"), std::string::npos);
  const auto bias = [](ModelSpec &spec) {
    spec.weights.emplace_back();
    spec.weights.back().id = "strange";
  };
  EXPECT_NE(refusal("llama", bias).find("weights.strange.experts is none, and the model's 0"), std::string::npos);
}

} // namespace
