//===- GoldenTest.cpp - Against test/Planner/golden.json ----------------------===//
#include "TestModels.h"
#include "base/Json.h"
#include "k2c/Kernels/Cost.h"
#include "k2c/Planner/Planner.h"

using namespace k2c;
using namespace k2c::test;

static const nlohmann::json &golden() {
  static const Expected<JsonDocument> document =
      readJsonFile(std::string(K2C_SOURCE_DIR) + "/test/Planner/golden.json");
  EXPECT_TRUE(document);
  return document->root();
}

TEST(Golden, ParametersOfPublishedConfigs) {
  for (const nlohmann::json &model : golden()["models"]) {
    ParameterCounts counts = countParameters(published(model["config"]));
    EXPECT_EQ(counts.total, model["total"].get<int64_t>()) << model["config"];
    EXPECT_EQ(counts.active, model["active"].get<int64_t>()) << model["config"];
    EXPECT_EQ(counts.activeWithEmbedding, model["active_with_embedding"].get<int64_t>()) << model["config"];
  }
}

TEST(Golden, CacheBytesPerToken) {
  for (const nlohmann::json &model : golden()["models"]) {
    if (!model.contains("cache_bytes_per_token_bf16"))
      continue;
    ModelSpec spec = published(model["config"]);
    PlanOptions options;
    options.cache = DType::BF16;
    Expected<Plan> plan = planHost(spec, machine(gibibytes(1 << 14)), defaultLimits(spec), options);
    ASSERT_TRUE(plan) << plan.error().text();
    EXPECT_EQ(plan->cachePerToken.value, model["cache_bytes_per_token_bf16"].get<int64_t>()) << model["config"];
  }
}

TEST(Golden, MeanNumberOfExpertsHit) {
  for (const nlohmann::json &hit : golden()["expert_hits"])
    EXPECT_NEAR(hitExperts(hit["experts"], hit["topk"], hit["tokens"]), hit["value"].get<double>(),
                1e-9 * hit["value"].get<double>());
}

TEST(Golden, MlaCrossover) {
  for (const nlohmann::json &item : golden()["mla_crossover"]) {
    MlaSpec mla;
    mla.latent = item["latent"];
    mla.nope = item["nope"];
    mla.rope = item["rope"];
    mla.value = item["value"];
    EXPECT_NEAR(*mlaCrossover(attentionSizes(mla), item["context"].get<double>()), item["value_tokens"].get<double>(),
                1e-7);
  }
}
