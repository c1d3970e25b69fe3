//===- RopeConfigTest.cpp - both spellings of the rotary embedding --------===//

#include "TestFiles.h"
#include "k2c/Model/ModelSpec.h"

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

/// Loads the llama oracle's config with these changes; null removes nothing,
/// "-" removes the key.
Expected<ModelSpec> load(const TempFolder &folder, const json &changes, const std::string &family = "llama") {
  json config = configOf(oracle(family));
  for (const auto &[key, value] : changes.items())
    value == "-" ? void(config.erase(key)) : void(config[key] = value);
  folder.write("config.json", config.dump());
  return loadModelSpec(folder.path);
}

std::string failure(const json &changes, const std::string &family = "llama") {
  TempFolder folder;
  Expected<ModelSpec> spec = load(folder, changes, family);
  return spec ? "" : spec.error().message;
}

RopeSpec rope(const json &changes, const std::string &family = "llama") {
  TempFolder folder;
  Expected<ModelSpec> spec = load(folder, changes, family);
  EXPECT_TRUE(spec) << spec.error().text();
  return spec ? spec->ropes["rope"] : RopeSpec();
}

const json yarn = {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};

json with(json object, const json &changes) {
  object.update(changes);
  return object;
}

TEST(RopeConfig, OldSpelling) {
  RopeSpec spec = rope(json::object());
  EXPECT_EQ(spec.theta, 500000);
  EXPECT_EQ(spec.dims, 16);
  EXPECT_EQ(spec.pairs, RopePairs::Half);
  ASSERT_TRUE(std::holds_alternative<RopeLlama3>(spec.scaling));
  EXPECT_EQ(std::get<RopeLlama3>(spec.scaling).originalContext, 128);
}

TEST(RopeConfig, NewSpelling) {
  RopeSpec spec = rope({{"rope_theta", "-"},
                        {"rope_scaling", "-"},
                        {"rope_parameters", {{"rope_theta", 1e6}, {"rope_type", "linear"}, {"factor", 2.0}}}});
  EXPECT_EQ(spec.theta, 1e6);
  EXPECT_EQ(std::get<RopeLinear>(spec.scaling).factor, 2);
}

TEST(RopeConfig, NullIsUnscaled) {
  RopeSpec spec = rope({{"rope_scaling", nullptr}});
  EXPECT_TRUE(std::holds_alternative<RopeUnscaled>(spec.scaling));
}

TEST(RopeConfig, DefaultType) {
  RopeSpec spec = rope({{"rope_scaling", {{"rope_type", "default"}}}});
  EXPECT_TRUE(std::holds_alternative<RopeUnscaled>(spec.scaling));
}

TEST(RopeConfig, ThetaOfOldFilesIsTheDefault) {
  EXPECT_EQ(rope({{"rope_theta", "-"}}).theta, 10000);
  EXPECT_EQ(failure({{"rope_theta", "-"}}, "kimi_k2"), "key 'rope_theta' is missing");
}

TEST(RopeConfig, BothSpellingsAtOnce) {
  EXPECT_EQ(failure({{"rope_parameters", {{"rope_type", "default"}}}}),
            "rope_scaling and rope_parameters are both given");
  EXPECT_EQ(failure({{"rope_scaling", "-"}, {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5.0}}}}),
            "rope_theta 500000.0 differs from rope_parameters.rope_theta 5.0");
}

TEST(RopeConfig, TypeSpelledTwice) {
  EXPECT_EQ(failure({{"rope_scaling", with(yarn, {{"rope_type", "linear"}})}}),
            "rope_type \"linear\" differs from type \"yarn\"");
  EXPECT_EQ(failure({{"rope_scaling", {{"factor", 2}}}}), "rope_scaling must name its rope_type");
}

TEST(RopeConfig, TypesOutsideThisBuild) {
  for (const char *type : {"longrope", "mrope", "su", "proportional"})
    EXPECT_EQ(failure({{"rope_scaling", {{"rope_type", type}}}}),
              std::string("rope type '") + type + "' is not in this build");
}

TEST(RopeConfig, MissingAndUnknownParameters) {
  EXPECT_EQ(failure({{"rope_scaling", {{"rope_type", "linear"}}}}), "rope_scaling.factor is missing");
  EXPECT_EQ(failure({{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}}),
            "rope_scaling.original_max_position_embeddings is missing");
  EXPECT_EQ(failure({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2}, {"beta", 1}}}}),
            "unknown key 'rope_scaling.beta' with value 1");
}

TEST(RopeConfig, BadNumbers) {
  EXPECT_EQ(failure({{"rope_theta", 1.0}}), "rope_theta must be above 1, got 1.0");
  EXPECT_EQ(failure({{"rope_theta", "a"}}), "rope_theta must be a number above 0, got \"a\"");
  EXPECT_EQ(failure({{"rope_scaling", with(yarn, {{"factor", -1}})}}),
            "rope_scaling.factor must be a number above 0, got -1");
  EXPECT_EQ(failure({{"rope_scaling", with(yarn, {{"beta_fast", 0.5}})}}), "beta_fast must be at least beta_slow");
  EXPECT_EQ(failure({{"rope_scaling", with(yarn, {{"truncate", 1}})}}), "truncate must be true or false");
  json llama3 = configOf(oracle("llama"))["rope_scaling"];
  EXPECT_EQ(failure({{"rope_scaling", with(llama3, {{"high_freq_factor", 1}})}}),
            "high_freq_factor must be above low_freq_factor");
  EXPECT_EQ(failure({{"rope_scaling", 4}}), "rope_scaling must be an object or null");
}

TEST(RopeConfig, DynamicIsUnscaledWithinItsContext) {
  RopeSpec spec = rope({{"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}});
  EXPECT_EQ(spec.maxContext, 1024);
  EXPECT_EQ(
      failure({{"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 64}}}}),
      "rope type 'dynamic' with original_max_position_embeddings 64 "
      "beside max_position_embeddings 1024 is not in this build");
}

TEST(RopeConfig, YarnMagnitudes) {
  // Without mscale keys the magnitude is on cos and sin; grouped-query
  // attention leaves the softmax scale alone.
  RopeSpec plain = rope({{"rope_scaling", yarn}});
  EXPECT_NEAR(plain.cosSinScale, 0.1 * std::log(4.0) + 1, 1e-15);
  EXPECT_EQ(plain.attentionScale, 1);
  RopeSpec given = rope({{"rope_scaling", with(yarn, {{"attention_factor", 2}})}});
  EXPECT_EQ(given.cosSinScale, 2);
  RopeSpec mla = rope(json::object(), "kimi_k2");
  EXPECT_EQ(mla.cosSinScale, 1);
  EXPECT_EQ(mla.pairs, RopePairs::Interleaved);
  EXPECT_NEAR(mla.attentionScale, std::pow(0.1 * std::log(4.0) + 1, 2), 1e-15);
}

TEST(RopeConfig, MagnitudesComeTogether) {
  EXPECT_EQ(failure({{"rope_scaling", with(yarn, {{"mscale", 0.7}})}}),
            "mscale and mscale_all_dim must be given together");
}

TEST(RopeConfig, OddWidth) {
  EXPECT_EQ(failure({{"qk_rope_head_dim", 15}}, "kimi_k2"), "rotary width 15 is odd, pairs need an even one");
}

// MiniMax-M2 names the elements of a head that are rotated, or their share of it, at either of two places.
TEST(RopeConfig, PartOfAHead) {
  auto dims = [](json changes) {
    return rope(with({{"head_dim", 32}, {"rotary_dim", "-"}}, changes), "odd_minimax_m2").dims;
  };
  const json parameters = {{"rope_type", "default"}, {"rope_theta", 5e6}, {"partial_rotary_factor", 0.25}};
  EXPECT_EQ(dims({{"rotary_dim", 10}}), 10);
  EXPECT_EQ(dims({{"partial_rotary_factor", 0.5}}), 16);
  EXPECT_EQ(dims({{"rope_parameters", parameters}, {"rotary_dim", 8}, {"partial_rotary_factor", 0.25}}), 8);
  for (const json &none : {json::object(), json{{"rotary_dim", nullptr}}, json{{"rotary_dim", 32}}})
    EXPECT_EQ(dims(none), 32);
}

TEST(RopeConfig, PartsThatCannotBeRotated) {
  auto refused = [](json changes) { return failure(with({{"rotary_dim", "-"}}, changes), "odd_minimax_m2"); };
  EXPECT_EQ(refused({{"rotary_dim", 24}}), "rotary_dim 24 exceeds head_dim 22");
  EXPECT_EQ(refused({{"rotary_dim", 9}}), "rotary_dim 9 of head_dim 22 is odd: pairs need an even number");
  EXPECT_EQ(refused({{"partial_rotary_factor", 0.5}}),
            "partial_rotary_factor rotates 11 of head_dim 22: pairs need an even number");
  EXPECT_EQ(refused({{"rope_parameters", {{"partial_rotary_factor", 0.5}}}}),
            "rope_parameters.partial_rotary_factor rotates 11 of head_dim 22: pairs need an even number");
  EXPECT_EQ(refused({{"partial_rotary_factor", 0.4}}),
            "partial_rotary_factor 0.4 of head_dim 22 is 8.8, not a whole number of at most 22");
}

TEST(RopeConfig, PartsThatDiffer) {
  auto refused = [](json changes) { return failure(with({{"head_dim", 32}}, changes), "odd_minimax_m2"); };
  EXPECT_EQ(refused({{"rotary_dim", 8}, {"partial_rotary_factor", 0.5}}),
            "rotary_dim 8 differs from the 16 of head_dim 32 that partial_rotary_factor rotates");
  EXPECT_EQ(refused({{"partial_rotary_factor", 0.25}, {"rope_parameters", {{"partial_rotary_factor", 0.5}}}}),
            "partial_rotary_factor rotates 8 of head_dim 32, rope_parameters.partial_rotary_factor 16");
}

} // namespace
