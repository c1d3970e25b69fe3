//===- FamilyTest.cpp - families files ------------------------------------===//

#include "Family.h"
#include "ReadConfig.h"
#include "k2c/Model/ModelSpec.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

using namespace k2c;

namespace {

const std::string head = "family: f\nmodel_types: [f]\narchitectures: [F]\n";

std::string failure(const std::string &rest) {
  Expected<Family> family = parseFamily(head + rest, "f.yaml");
  return family ? "" : family.error().text();
}

TEST(Family, BuiltInFilesAreSound) {
  const Expected<std::vector<Family>> &families = builtInFamilies();
  ASSERT_TRUE(families) << families.error().text();
  std::set<std::string> types;
  for (const Family &family : *families) {
    for (const std::string &type : family.modelTypes)
      EXPECT_TRUE(types.insert(type).second) << type << " is served twice";
    std::set<std::string> roles;
    for (const WeightRule &rule : family.weights)
      EXPECT_TRUE(roles.insert(rule.id).second) << family.file << ": two weights '" << rule.id << "'";
    for (const CheckRule &check : family.checks)
      EXPECT_NE(check.that, "") << family.file;
  }
  EXPECT_TRUE(builtInHarmlessKeys());
}

TEST(Family, AModelTypeIsReadAlone) {
  for (const Family &family : *builtInFamilies())
    for (const std::string &type : family.modelTypes) {
      const Expected<std::vector<Family>> &own = builtInFamiliesOf(type);
      ASSERT_TRUE(own) << own.error().text();
      ASSERT_EQ(own->size(), 1u) << type;
      EXPECT_EQ(own->front().name, family.name);
      EXPECT_EQ(own->front().weights.size(), family.weights.size());
    }
  EXPECT_EQ(builtInFamiliesOf("deepseek")->size(), builtInFamilies()->size());
}

TEST(Family, WhatCompilesIsAFamily) {
  const Expected<std::vector<std::string>> &compiled = compiledFamilies();
  ASSERT_TRUE(compiled) << compiled.error().text();
  for (const std::string &name : *compiled)
    EXPECT_TRUE(std::any_of(builtInFamilies()->begin(), builtInFamilies()->end(), [&](const Family &family) {
      return family.name == name;
    })) << name;
}

TEST(Family, ReadsNestedKeys) {
  Expected<ModelSpec> spec = loadPublishedModel("dbrx");
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->moe->topK, 4);
}

TEST(Family, WhatIsOnlyPlannedDoesNotCompile) {
  std::string config = std::string(K2C_SOURCE_DIR) + "/models/configs/grok-1/config.json";
  Expected<ModelSpec> spec = loadModelSpec(config);
  ASSERT_FALSE(spec);
  EXPECT_NE(spec.error().text().find("model_type \"grok-1\" can be planned, not compiled, in this build"),
            std::string::npos)
      << spec.error().text();
}

TEST(Family, ReadsKeyRules) {
  Expected<Family> family = parseFamily(head + "config:\n  a: {field: b, kind: size, default: c / 2, if_null: 0, "
                                               "one_of: [1, 2], max: 9}\n",
                                        "f.yaml");
  ASSERT_TRUE(family) << family.error().text();
  const KeyRule &rule = family->keys.at(0);
  EXPECT_EQ(rule.key, "a");
  EXPECT_EQ(rule.field, "b");
  EXPECT_EQ(rule.defaultText, "c / 2");
  EXPECT_EQ(rule.nullText, "0");
  EXPECT_EQ(rule.oneOf, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(rule.max, 9);
}

TEST(Family, ReadsLayerRules) {
  Expected<Family> family = parseFamily(head + "layers:\n  - {kind: dense, from: 0, to: k}\n  - {kind: moe, from: k, "
                                               "to: n, every: e, at: e - 1, otherwise: dense}\n",
                                        "f.yaml");
  ASSERT_TRUE(family) << family.error().text();
  const LayerRule &plain = family->layers.at(0), &mixed = family->layers.at(1);
  EXPECT_EQ(plain.every + plain.at + plain.otherwise.name, "10dense");
  EXPECT_EQ(mixed.every, "e");
  EXPECT_EQ(mixed.at, "e - 1");
  EXPECT_EQ(mixed.otherwise.name, "dense");
}

TEST(Family, UnknownKeys) {
  EXPECT_EQ(failure("attn: {}\n").rfind("f.yaml:4:1: the families file has no key 'attn'", 0), 0u);
  EXPECT_EQ(failure("config:\n  a: {field: b, kind: size, min: 1}\n").rfind("f.yaml:5:29: a has no key 'min'", 0), 0u);
  EXPECT_EQ(failure("weights:\n  - {id: a, tensor: b}\n").rfind("f.yaml:5:13: a weight has no key 'tensor'", 0), 0u);
  EXPECT_EQ(failure("layers:\n  - {kind: moe, form: 0}\n").rfind("f.yaml:5:17: a layer run has no key 'form'", 0), 0u);
  EXPECT_EQ(failure("ignore:\n  - {tensor: a}\n").rfind("f.yaml:5:6: ignored tensors has no key 'tensor'", 0), 0u);
}

TEST(Family, KindsOfLayers) {
  Expected<Family> family = parseFamily(head + R"(rope: {dims: 8, pairs: half}
ropes: {wide: {dims: 16}}
attention: {kind: gqa, head_dim: 8}
attentions: {local: {head_dim: 16}}
kinds:
  plain: {feed_forward: moe, rope: none, norms: around}
  local: {feed_forward: dense, attention: local, rope: wide}
layers:
  - {kind: plain, from: 0, to: 2, otherwise: moe}
  - {kind: local, from: 2, to: 4}
)",
                                        "f.yaml");
  ASSERT_TRUE(family) << family.error().text();
  EXPECT_EQ(family->layers[0].kind, (LayerKind{"plain", FeedForward::Moe, "attention", "", LayerNorms::Around, 0}));
  EXPECT_EQ(family->layers[0].otherwise, (LayerKind{"moe", FeedForward::Moe}));
  EXPECT_EQ(family->layers[1].kind, (LayerKind{"local", FeedForward::Dense, "local", "wide", LayerNorms::Before, 0}));
  EXPECT_EQ(family->ropes["wide"], (Entries{{"dims", "16"}, {"pairs", "half"}}));
  EXPECT_EQ(family->attentions["local"], (Entries{{"head_dim", "16"}, {"kind", "gqa"}}));
}

TEST(Family, WithoutARopeSectionNothingIsRotated) {
  Expected<Family> family = parseFamily(head + "layers:\n  - {kind: moe, from: 0, to: 2}\n", "f.yaml");
  ASSERT_TRUE(family) << family.error().text();
  EXPECT_EQ(family->layers[0].kind.rope, "");
}

TEST(Family, KindsNameWhatThereIs) {
  auto refusal = [](const std::string &kind) {
    return failure("attention: {kind: gqa}\nkinds:\n  plain: {feed_forward: moe, " + kind +
                   "}\nlayers:\n  - {kind: plain, from: 0, to: 2}\n");
  };
  EXPECT_EQ(refusal("attention: local"),
            "f.yaml:6:41: there is no attention 'local'; attention, or one of the section attentions");
  EXPECT_EQ(refusal("rope: rope"), "f.yaml:6:36: there is no rotary table 'rope'; none, rope, or one of the section "
                                   "ropes");
  EXPECT_EQ(refusal("norms: behind"), "f.yaml:6:37: norms must be before or around");
}

TEST(Family, AListSaysOfWhatAndWhichWord) {
  for (const char *rest :
       {"is: 0, one_of: [0, 1]", "of: n, one_of: [0, 1]", "of: n, is: 2, one_of: [0, 1]", "of: n, is: 0"})
    EXPECT_EQ(failure(std::string("config:\n  types: {field: x, kind: where, ") + rest + "}\n"),
              "f.yaml:5:10: where takes of, one_of, and is, which is one of these");
}

TEST(Family, NamesThatMeanSomethingElseAreRefused) {
  for (const std::string name : {"attention", "all", "dense", "moe", "none"})
    EXPECT_EQ(failure("attentions:\n  " + name + ": {window: 8}\n"),
              "f.yaml:5:3: '" + name + "' means something else here; choose another name");
  EXPECT_EQ(failure("ropes:\n  rope: {dims: 8}\n"),
            "f.yaml:5:3: 'rope' means something else here; choose another name");
}

TEST(Family, WhatNoLayerHasIsRefused) {
  const std::string layers = "layers:\n  - {kind: moe, from: 0, to: 2}\n";
  EXPECT_EQ(failure("kinds:\n  plain: {feed_forward: moe}\n" + layers),
            "f.yaml:5:3: no layers are of kind 'plain'; leave it out");
  EXPECT_EQ(failure("attentions:\n  local: {window: 8}\n" + layers),
            "f.yaml:5:3: no layers have attention 'local'; leave it out");
  EXPECT_EQ(failure("ropes:\n  local: {dims: 8}\n" + layers),
            "f.yaml:5:3: no layers read rotary table 'local'; leave it out");
  EXPECT_EQ(failure("weights:\n  - {id: a, tensors: b, over: local, shape: [1]}\n"),
            "f.yaml:5:31: there are no layers 'local'; all, dense, moe, or the name of an attention");
}

/// Two layers of which the second is of kind `local`, read for a config.json that says nothing else.
std::string refusalOfTwo(const std::string &sections) {
  Expected<Family> family =
      parseFamily(head + sections + R"(model: {hidden: 8, vocab: 16, max_position: 64, norm_eps: 1.0e-5, tied: false}
mlp: {inter: 8, activation: silu, bias: false}
layers:
  - {kind: dense, from: 0, to: 1}
  - {kind: local, from: 1, to: 2}
)",
                  "f.yaml");
  EXPECT_TRUE(family) << family.error().text();
  ConfigFile config(*parseJson(R"({"model_type": "f"})", "config.json"), {});
  Expected<ModelSpec> spec = readConfig(config, *family, {}, LoadPurpose::Compile);
  return spec ? "" : spec.error().text();
}

TEST(Family, LatentAttentionIsTheOnlyOne) {
  const std::string sections = "attentions:\n  local: {latent: 8}\n"
                               "kinds:\n  local: {feed_forward: dense, attention: local}\n"
                               "attention: {kind: mla, heads: 4, query_latent: 0, nope: 8, rope: 8, value: 8, bias: "
                               "false, latent_norm_eps: 1.0e-6, latent: ";
  EXPECT_EQ(refusalOfTwo(sections + "16}\n"),
            "f.yaml: a model with latent attention has no other attention in this build");
}

TEST(Family, ABaseOfAtMostOneIsRefused) {
  const std::string sections = "attention: {kind: gqa, heads: 4, kv_heads: 4, head_dim: 8, qkv_bias: false, "
                               "output_bias: false, query_key_norm: none}\n"
                               "kinds:\n  local: {feed_forward: dense, rope: local}\n"
                               "rope: {dims: 8, pairs: half, default_theta: 10000}\nropes:\n  local: {theta: ";
  EXPECT_EQ(refusalOfTwo(sections + "2}\n"), "");
  EXPECT_EQ(refusalOfTwo(sections + "1}\n"), "config.json: the base of a rotary table must be above 1, got 1.0; take "
                                             "config.json from the published model");
}

TEST(Family, KindsOfLayersThatDoNotExist) {
  EXPECT_EQ(failure("layers:\n  - {kind: plain, from: 0, to: 2}\n"),
            "f.yaml:5:12: there is no kind 'plain'; dense, moe, or one of the section kinds");
  EXPECT_EQ(failure("kinds:\n  plain: {feed_forward: mlp}\n"),
            "f.yaml:5:25: there is no kind 'mlp'; dense, moe, or one of the section kinds");
  EXPECT_EQ(
      failure("kinds:\n  plain: {rotation: false}\n").rfind("f.yaml:5:11: a kind of layer has no key 'rotation'", 0),
      0u);
}

TEST(Family, UnknownKindAndMissingEntries) {
  EXPECT_EQ(failure("config:\n  a: {field: b, kind: int}\n"),
            "f.yaml:5:23: kind must be size, count, number, share, flag, word, indices or where");
  EXPECT_EQ(failure("layers:\n  - {kind: dense, from: 0}\n"), "f.yaml: to must be a word, got nothing");
  EXPECT_EQ(failure("weights:\n  - {id: a, tensors: b}\n"), "f.yaml: shape must be a list");
}

TEST(Family, ScalarsWhereMappingsBelong) {
  EXPECT_NE(failure("checks: [x]\n"), "");
  EXPECT_NE(failure("config: {a: 3}\n"), "");
  EXPECT_NE(failure("ignore: [1]\n"), "");
}

TEST(Family, HarmlessKeys) {
  Expected<HarmlessKeys> keys = parseHarmlessKeys("any: [a]\nonly:\n  b: [null, false]\n", "h.yaml");
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->any, (std::vector<std::string>{"a"}));
  EXPECT_EQ(keys->only["b"], (std::vector<std::string>{"null", "false"}));
  EXPECT_EQ(parseHarmlessKeys("some: [a]\n", "h.yaml").error().text(),
            "h.yaml:1:1: the file has no key 'some'; the keys are any, only");
}

// The golden ids of the runtime's tests were made with these rules.
TEST(Family, TiktokenRulesAreThoseOfTheGoldenIds) {
  std::ifstream in(K2C_SOURCE_DIR "/test/Runtime/tokenizers/kimi.rules.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  const Expected<std::vector<Family>> &families = builtInFamilies();
  ASSERT_TRUE(families);
  for (const Family &family : *families)
    if (family.name == "deepseek_v3") {
      EXPECT_EQ(family.tiktoken.patterns, golden["pattern"].get<std::vector<std::string>>());
      EXPECT_EQ(family.tiktoken.reserved, golden["reserved"].get<int64_t>());
      return;
    }
  FAIL() << "no family deepseek_v3";
}

} // namespace
