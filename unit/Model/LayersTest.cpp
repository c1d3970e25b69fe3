//===- LayersTest.cpp - The ops of a layer, with their sizes --------------===//

#include "k2c/Model/Layers.h"

#include <gtest/gtest.h>
#include <set>

using namespace k2c;

namespace {

ModelSpec published(const std::string &name) {
  Expected<ModelSpec> spec = loadModelSpec(K2C_SOURCE_DIR "/models/configs/" + name, {{}, LoadPurpose::Plan});
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
  return spec ? *spec : ModelSpec();
}

int64_t product(const std::vector<int64_t> &row) {
  int64_t elements = 1;
  for (int64_t size : row)
    elements *= size;
  return elements;
}

/// Every weight of a layer, but biases, is read by one op; matrices are as large as the rows before and after them.
void checkAgainstFamilies(const ModelSpec &spec, const LayersOfKind &run) {
  std::vector<std::vector<int64_t>> rows = {{spec.hidden}};
  std::multiset<std::string> read;
  for (const LayerOp &op : layerOps(spec, run.kind)) {
    for (size_t input : op.inputs)
      ASSERT_LT(input, rows.size()) << "a value is used before it arises";
    for (const std::string &id : op.weights) {
      ASSERT_TRUE(spec.find(id)) << id;
      read.insert(id);
    }
    if (op.kind == LayerOpKind::Linear) {
      const WeightFamily &family = *spec.find(op.weights[0]);
      const int64_t alternatives = std::max<int64_t>(1, int64_t(family.alternatives.size()));
      EXPECT_EQ(product(op.results[0]), family.shape[0] * alternatives) << family.id;
      EXPECT_EQ(product(rows[op.inputs[0]]), family.shape[1]) << family.id;
    } else if (op.kind == LayerOpKind::RmsNorm) {
      EXPECT_EQ(op.results[0].back(), spec.find(op.weights[0])->shape[0]) << op.weights[0];
    }
    rows.insert(rows.end(), op.results.begin(), op.results.end());
  }
  EXPECT_EQ(rows.back(), std::vector<int64_t>{spec.hidden});
  for (const WeightFamily &family : spec.weights) {
    const bool isBias = family.id.size() > 5 && family.id.rfind("_bias") == family.id.size() - 5;
    if (family.hasLayer(run.range.begin) && (!isBias || family.id == "selection_bias")) {
      EXPECT_EQ(read.count(family.id), 1u) << family.id;
    }
  }
}

} // namespace

TEST(Layers, ListsReadEveryFamilyOnceInItsSize) {
  for (const std::string &name : publishedModels()) {
    SCOPED_TRACE(name);
    const ModelSpec spec = published(name);
    if (canCompile(spec) || spec.family == "grok_1") // which has norms behind attention and experts
      for (const LayersOfKind &run : spec.layersByKind())
        checkAgainstFamilies(spec, run);
  }
}

TEST(Layers, LatentAttentionHasTwoForms) {
  const AttentionSizes sizes = attentionLayers(published("deepseek-v3")).front().sizes;
  EXPECT_TRUE(sizes.isLatent());
  EXPECT_EQ(sizes.heads, 128);
  EXPECT_EQ(sizes.keyHeads, 128);
  EXPECT_EQ(sizes.key, 128 + 64);
  EXPECT_EQ(sizes.value, 128);
  EXPECT_EQ(sizes.absorbedKey, 512 + 64);
  EXPECT_EQ(sizes.absorbedValue, 512);
  EXPECT_EQ(sizes.expansion, 512 * 256);
  EXPECT_EQ(sizes.cachedHeads(), 1) << "one row for all heads";
  EXPECT_EQ(sizes.cache[0].width() + sizes.cache[1].width(), 576);
}

TEST(Layers, GroupedQueriesCacheHeads) {
  const AttentionSizes sizes = attentionLayers(published("llama-3.3-70b")).front().sizes;
  EXPECT_FALSE(sizes.isLatent());
  EXPECT_EQ(sizes.heads, 64);
  EXPECT_EQ(sizes.keyHeads, 8);
  EXPECT_EQ(sizes.cachedHeads(), 8);
  EXPECT_EQ(sizes.cache[1].dims(), (std::vector<int64_t>{8, 128}));
  EXPECT_EQ(sizes.absorbedKey, sizes.key);
}

TEST(Layers, KindsSayWhetherQueriesAndKeysAreRotated) {
  const ModelSpec spec = published("smollm3-3b");
  std::vector<int64_t> rotations;
  for (const LayerKind &kind : layerKinds(spec)) {
    const std::vector<LayerOp> ops = layerOps(spec, kind);
    rotations.push_back(
        std::count_if(ops.begin(), ops.end(), [](const LayerOp &op) { return op.kind == LayerOpKind::Rotary; }));
  }
  EXPECT_EQ(rotations, (std::vector<int64_t>{2, 0}));
}

// GPT-OSS: every other layer sees 128 keys. DeepSeek V3.2 chooses 2,048 of them with 64 queries of 128.
TEST(Layers, WindowsAndIndexersBoundTheKeys) {
  const std::vector<AttentionLayers> attentions = attentionLayers(published("gpt-oss-120b"));
  ASSERT_EQ(attentions.size(), 2u);
  EXPECT_EQ(attentions[0].layers, (IndexSet{{0, 35, 2}}));
  EXPECT_EQ(attentions[0].sizes.seenKeys(100), 100);
  EXPECT_EQ(attentions[0].sizes.seenKeys(1128), 128);
  EXPECT_EQ(attentions[1].layers, (IndexSet{{1, 36, 2}}));
  EXPECT_EQ(attentions[1].sizes.seenKeys(1128), 1128);
  EXPECT_EQ(attentions[1].sizes.indexingFlops(1, 1000), 0);
  const AttentionSizes chosen = attentionLayers(published("deepseek-v3.2")).front().sizes;
  EXPECT_EQ(chosen.seenKeys(100), 100);
  EXPECT_EQ(chosen.seenKeys(5000), 2048);
  EXPECT_EQ(chosen.indexingFlops(3, 5000), 2.0 * 3 * 5000 * 64 * 128);
}

// Layers with a window keep fewer tokens than the others; equal rows of all tokens are one group.
TEST(Layers, CacheGroupsHaveEqualRowsAndLengths) {
  const std::vector<CachePool> pools = cachePools(published("gpt-oss-120b"));
  ASSERT_EQ(pools.size(), 2u);
  for (int64_t group : {0, 1}) {
    EXPECT_EQ(pools[group].group, group);
    EXPECT_EQ(pools[group].rows[0].dims(), (std::vector<int64_t>{8, 64}));
    EXPECT_EQ(pools[group].layers.front().from, group);
  }
  for (const char *name : {"smollm3-3b", "kimi-k2"}) {
    const ModelSpec spec = published(name);
    ASSERT_EQ(cachePools(spec).size(), 1u) << name;
    EXPECT_EQ(cachePools(spec)[0].layers, (IndexSet{{0, spec.layerCount(), 1}})) << name;
  }
}

TEST(Layers, RowsOfHeads) {
  const std::map<std::string, int64_t> latent = headsOfWeights(published("kimi-k2"));
  EXPECT_EQ(latent, (std::map<std::string, int64_t>{{"kv_b", 64}, {"q_b", 64}}));
  const std::map<std::string, int64_t> grouped = headsOfWeights(published("qwen3-235b-a22b"));
  EXPECT_EQ(grouped, (std::map<std::string, int64_t>{{"k", 4}, {"q", 64}, {"v", 4}}));
}
