//===- MlaFormsTest.cpp - Expanded or absorbed latent attention -------------===//
#include "k2c/Planner/MlaForms.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

AttentionSizes mla(int64_t latent, int64_t nope, int64_t rope, int64_t value) {
  MlaSpec spec;
  spec.heads = 4;
  spec.latent = latent;
  spec.nope = nope;
  spec.rope = rope;
  spec.value = value;
  return attentionSizes(spec);
}

} // namespace

// 512 * 256 / ((1024 + 64) - (128 + 64 + 128)) = 131072 / 768.
TEST(MlaForms, CrossoverOfDeepSeekV3) {
  AttentionSizes v3 = mla(512, 128, 64, 128);
  EXPECT_DOUBLE_EQ(*mlaCrossover(v3), 131072.0 / 768);
  EXPECT_NEAR(*mlaCrossover(v3, 1024), 146.3, 0.05);
  EXPECT_EQ(expandedFrom(v3, MlaForms::Phased), 171);
}

TEST(MlaForms, BothFormsCostTheSameAtTheCrossover) {
  AttentionSizes v3 = mla(512, 128, 64, 128);
  for (double keys : {64.0, 1000.0, 1e6}) {
    double queries = *mlaCrossover(v3, keys);
    EXPECT_NEAR(expandedFlops(v3, queries, keys).value / absorbedFlops(v3, queries, keys).value, 1, 1e-12);
    EXPECT_LT(expandedFlops(v3, queries + 1, keys).value, absorbedFlops(v3, queries + 1, keys).value);
    EXPECT_GT(expandedFlops(v3, queries - 1, keys).value, absorbedFlops(v3, queries - 1, keys).value);
  }
}

TEST(MlaForms, ASmallLatentIsNeverWorthExpanding) { // 2 * 16 + 16 <= 16 + 16 + 16
  AttentionSizes small = mla(16, 16, 16, 16);
  EXPECT_FALSE(mlaCrossover(small));
  EXPECT_EQ(expandedFrom(small, MlaForms::Phased), -1);
}

TEST(MlaForms, NamesReadBack) {
  for (MlaForms forms : {MlaForms::Phased, MlaForms::Absorbed, MlaForms::Expanded})
    EXPECT_EQ(parseMlaForms(name(forms)), forms);
  EXPECT_EQ(parseMlaForms("both"), std::nullopt);
}

// What is cached as it is meets queries as it is: one form, which no option changes.
TEST(MlaForms, GroupedQueriesHaveOneForm) {
  GqaSpec gqa;
  gqa.heads = 8;
  gqa.kvHeads = 2;
  gqa.headDim = 16;
  const AttentionSizes sizes = attentionSizes(gqa);
  EXPECT_EQ(expandedFlops(sizes, 3, 5).value, 4.0 * 8 * 3 * 5 * 16);
  EXPECT_EQ(absorbedFlops(sizes, 3, 5).value, expandedFlops(sizes, 3, 5).value);
  EXPECT_EQ(expandedFrom(sizes, MlaForms::Expanded), -1);
}

TEST(MlaForms, TheOptionDecides) {
  AttentionSizes v3 = mla(512, 128, 64, 128);
  EXPECT_EQ(expandedFrom(v3, MlaForms::Absorbed), -1);
  EXPECT_EQ(expandedFrom(v3, MlaForms::Expanded), 0);
}
