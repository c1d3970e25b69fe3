//===- TensorFamilyTest.cpp - Names and slots of a family ---------------------===//
#include "k2c/Weights/TensorFamily.h"
#include <gtest/gtest.h>

using namespace k2c;

static std::vector<std::string> names(const TensorFamily &family, std::optional<int64_t> layer) {
  std::vector<std::string> result;
  for (const SourceTensor &source : sourcesOf(family, layer))
    result.push_back(source.name);
  return result;
}

TEST(TensorFamily, ExpertsOutsideAlternativesInside) {
  TensorFamily family;
  family.pattern = "l.{layer}.e.{expert}.{gate|up}.w";
  family.experts = IndexSet{{0, 2, 1}};
  EXPECT_EQ(names(family, 7),
            (std::vector<std::string>{"l.7.e.0.gate.w", "l.7.e.0.up.w", "l.7.e.1.gate.w", "l.7.e.1.up.w"}));
}

TEST(TensorFamily, PlainName) {
  TensorFamily family;
  family.pattern = "model.norm.weight";
  EXPECT_EQ(names(family, std::nullopt), std::vector<std::string>{"model.norm.weight"});
}

TEST(TensorFamily, OneSlotALayer) {
  TensorFamily family;
  family.name = "kv_b_uk";
  family.pattern = "l.{layer}.kv_b";
  family.layers = IndexSet{{3, 6, 2}, {1, 2, 1}};
  family.shape = {4, 24, 16};
  family.slice = TensorSlice{1, 0, 8};
  family.transpose = true;
  WeightMap map;
  map.slots.push_back({0, "first", {}, {}, Table{1, "", nullptr}});
  EXPECT_EQ(appendSlots(map, family, PanelLayout()), 1);
  ASSERT_EQ(map.slots.size(), 4u);
  EXPECT_EQ(map.slots[3].slot, 3);
  EXPECT_EQ(map.slots[3].layer, 5);
  EXPECT_EQ(map.slots[3].family, "kv_b_uk");
  EXPECT_EQ(map.slots[3].sources[0].name, "l.5.kv_b");
  EXPECT_EQ(map.slots[3].sources[0].slice->to, 8);
  EXPECT_TRUE(map.slots[3].sources[0].transpose);
}

TEST(TensorFamily, EachPartHasASlotInEachLayer) {
  TensorFamily family;
  family.pattern = "l.{layer}.kv_b";
  family.layers = IndexSet{{3, 5, 1}};
  family.shape = {4, 24, 16};
  family.slice = TensorSlice{1, 0, 8};
  family.parts = 2;
  WeightMap map;
  appendSlots(map, family, PanelLayout());
  ASSERT_EQ(map.slots.size(), 4u);
  EXPECT_EQ(map.slots[1].layer, 3);
  EXPECT_EQ(map.slots[1].sources[0].part->dimension, 0);
  EXPECT_EQ(map.slots[1].sources[0].part->from, 2);
  EXPECT_EQ(map.slots[1].sources[0].part->to, 4);
  EXPECT_EQ(map.slots[2].layer, 4);
  EXPECT_EQ(map.slots[2].sources[0].part->from, 0);
  family.along = 1; // of what the slice leaves
  EXPECT_EQ(sourcesOf(family, 3, 1)[0].part->from, 4);
  EXPECT_EQ(sourcesOf(family, 3, 1)[0].part->to, 8);
}

TEST(TensorFamily, WholeModelIsOneSlot) {
  TensorFamily family;
  family.pattern = "lm_head.weight";
  WeightMap map;
  appendSlots(map, family, RowMajor());
  ASSERT_EQ(map.slots.size(), 1u);
  EXPECT_FALSE(map.slots[0].layer);
}
