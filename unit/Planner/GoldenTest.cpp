//===- GoldenTest.cpp - Against test/Planner/golden.json ----------------------===//
#include "TestModels.h"
#include "base/Json.h"
#include "k2c/Kernels/Cost.h"
#include "k2c/Planner/Count.h"
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
    const ModelSpec spec = published(model["config"]);
    EXPECT_EQ(totalParameters(spec).value(), model["total"].get<int64_t>()) << model["config"];
    EXPECT_EQ(activeParameters(spec, false).value(), model["active"].get<int64_t>()) << model["config"];
    EXPECT_EQ(activeParameters(spec, true).value(), model["active_with_embedding"].get<int64_t>()) << model["config"];
  }
}

TEST(Golden, ATiedTableIsReadAsTheHeadOfEachToken) {
  const ModelSpec tied = published("smollm3-3b");
  EXPECT_EQ(activeParameters(tied, true).value(), totalParameters(tied).value());
  EXPECT_EQ(activeParameters(tied, false).value(), activeParameters(tied, true).value());
}

TEST(Golden, BuffersAreNoParameters) {
  const ModelSpec minimax = published("minimax-m2"), v3 = published("deepseek-v3");
  EXPECT_EQ(totalParameters(minimax).value(), 228689748992);
  EXPECT_EQ(activeParameters(minimax, false).value(), 10415940608);
  const CountOptions withBias{/*mtp=*/false, /*correctionBias=*/true};
  EXPECT_EQ((totalParameters(minimax, withBias) - totalParameters(minimax)).value(), 62 * 256);
  EXPECT_EQ((totalParameters(v3, withBias) - totalParameters(v3)).value(), 58 * 256);
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
