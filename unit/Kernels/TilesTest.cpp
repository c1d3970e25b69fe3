//===- TilesTest.cpp - Legality, cost and grids of tiles ----------------------===//

#include "k2c/Kernels/Cta.h"
#include "k2c/Kernels/WeightShare.h"

#include <gtest/gtest.h>

using namespace k2c;

namespace {

const TargetInfo zen4{16, 32, true, true, true, 32 << 10, 1 << 20};
const TargetInfo haswell{8, 16, true, false, false, 32 << 10, 256 << 10};

KernelDesc linear(DType act, DType weight, bool grouped = false) {
  LinearDesc d;
  RowSpace space = grouped ? RowSpace::Slot : RowSpace::Token;
  d.x = {space, 7168, 7168, act};
  d.y = {space, 2048, 2048, act};
  d.w = {weight, grouped ? 384 : 1, 2048, 7168, 1};
  d.order = {7168, leafCount(7168)};
  d.grouped = grouped;
  return {"linear", d};
}

TEST(Tiles, LinearsTakeTheKnownTiles) {
  for (DType weight : {DType::F32, DType::BF16}) {
    TileConfig wide = chooseTile(linear(DType::F32, weight), zen4);
    EXPECT_EQ(wide.instructionSet, InstructionSet::Avx512);
    EXPECT_EQ(wide.lanes, 16);
    EXPECT_EQ(wide.mr, 14);
    EXPECT_EQ(wide.nrVectors, 2);
    TileConfig narrow = chooseTile(linear(DType::F32, weight), haswell);
    EXPECT_EQ(narrow.instructionSet, InstructionSet::Generic);
    EXPECT_EQ(narrow.lanes, 8);
    EXPECT_EQ(narrow.mr, 3);
    EXPECT_EQ(narrow.nrVectors, 4);
  }
}

TEST(Tiles, EveryCandidateIsLegalAndNoneCostsLessThanTheChosen) {
  for (const TargetInfo &target : {zen4, haswell}) {
    KernelDesc desc = linear(DType::F32, DType::BF16);
    TileCost best = tileCost(desc, chooseTile(desc, target), target);
    for (const TileConfig &tile : candidates(desc, target)) {
      EXPECT_TRUE(isLegal(desc, tile, target));
      EXPECT_GE(tileCost(desc, tile, target).cycles, best.cycles);
    }
  }
}

TEST(Tiles, OneRowIsBoundByLatency) {
  KernelDesc desc = linear(DType::F32, DType::F32);
  TileConfig tile = chooseTile(desc, zen4);
  tile.mr = 1;
  EXPECT_DOUBLE_EQ(tileCost(desc, tile, zen4).cycles, 1000.0 * 4 / 32);
}

TEST(Tiles, RegistersAndInstructionsBoundThem) {
  KernelDesc desc = linear(DType::F32, DType::F32);
  TileConfig tile = chooseTile(desc, zen4);
  tile.mr = 15; // 30 accumulators + 2 weights + 1 broadcast
  EXPECT_FALSE(isLegal(desc, tile, zen4));
  EXPECT_FALSE(isLegal(desc, chooseTile(desc, zen4), haswell));
  TargetInfo skylake = zen4;
  skylake.hasAvx512Bf16 = false;
  KernelDesc pairs = linear(DType::BF16, DType::BF16);
  EXPECT_EQ(chooseTile(pairs, zen4).instructionSet, InstructionSet::Avx512);
  EXPECT_EQ(chooseTile(pairs, skylake).instructionSet, InstructionSet::Generic);
  ExpandedAttentionDesc expanded;
  expanded.shape.heads = 1;
  expanded.shape.cache = DType::BF16;
  for (auto [query, matrix] : {std::pair{DType::F32, DType::BF16}, {DType::BF16, DType::F32}}) {
    expanded.q.type = query;
    expanded.uk.type = expanded.uv.type = matrix;
    EXPECT_EQ(chooseTile({"", expanded}, zen4).instructionSet, InstructionSet::Avx512);
    EXPECT_EQ(chooseTile({"", expanded}, skylake).instructionSet, InstructionSet::Generic)
        << "of queries or of matrices";
  }
  TargetInfo old = haswell;
  old.hasFma = false;
  EXPECT_TRUE(candidates(desc, old).empty());
}

// Scalars take a warp's registers as vectors do.
TEST(Tiles, AttentionOfWarpsCountsScalars) {
  GqaAttentionDesc d;
  d.keyDim = d.valueDim = 22;
  d.kvHeads = 2;
  d.shape.heads = 6;
  TileConfig tile = chooseTile({"attention", d}, gpuTarget());
  EXPECT_EQ(tile.nrVectors, 2);
  EXPECT_EQ(tile.mr, 4);
  tile.mr = 5; // 5 * (2 accumulators, a sum, a weight) and a vector of values fit, 5 scalars beside them do not
  EXPECT_FALSE(isLegal({"attention", d}, tile, gpuTarget()));
}

TEST(Grids, ItemsCoverRowsAndPanels) {
  KernelDesc desc = linear(DType::F32, DType::BF16);
  TileConfig tile = chooseTile(desc, zen4);
  EXPECT_EQ(tile.rowsPerItem % tile.mr, 0);
  Grid grid = gridOf(desc, tile);
  EXPECT_EQ(grid.itemsPerBlock, 64);
  EXPECT_EQ(itemCount(grid, 1), 64);
  EXPECT_EQ(itemCount(grid, tile.rowsPerItem + 1), 128);
  EXPECT_EQ(itemCount(grid, 0), 0);
}

TEST(Grids, ACtaOfWarpsTakesAPanelOfTwoTiles) {
  for (bool grouped : {false, true}) {
    KernelDesc desc = linear(DType::F32, DType::BF16, grouped);
    TileConfig tile = chooseTile(desc, gpuTarget());
    EXPECT_EQ(tile.mr, 16);
    EXPECT_EQ(gridOf(desc, tile).itemsPerBlock, (grouped ? 384 : 1) * 64 * ctaWarps);
    EXPECT_EQ(gridOf(desc, tile).rowsPerItem, grouped ? 0 : 32);
  }
}

TEST(Grids, GroupedLinearsAreExpertsTimesPanels) {
  KernelDesc desc = linear(DType::F32, DType::BF16, true);
  Grid grid = gridOf(desc, chooseTile(desc, zen4));
  EXPECT_EQ(grid.space, RowSpace::Slot);
  EXPECT_EQ(grid.rowsPerItem, 0);
  EXPECT_EQ(itemCount(grid, 17), 384 * 64);
}

TEST(Grids, AbsorbedAttentionHasPartsOfVectorsOfHeads) {
  AbsorbedAttentionDesc d;
  d.shape.heads = 20;
  d.latent = 512;
  d.rope = 64;
  for (auto [target, heads, tiles] : {std::tuple{zen4, 16, 2}, {haswell, 8, 3}}) {
    TileConfig tile = chooseTile({"", d}, target);
    EXPECT_EQ(tile.headTile, heads);
    EXPECT_EQ(itemCount(gridOf({"", d}, tile), 3), tiles * 3 * tile.valueParts);
  }
}

TEST(Grids, GroupedQueryAttentionSharesKeysAmongSixtyFourRows) {
  GqaAttentionDesc d;
  d.shape.heads = 16;
  for (auto [kvHeads, tokens] : {std::pair<int64_t, int64_t>{16, 64}, {8, 32}, {4, 16}, {1, 16}}) {
    d.kvHeads = kvHeads;
    TileConfig wide = chooseTile({"", d}, zen4), narrow = chooseTile({"", d}, haswell);
    EXPECT_EQ(wide.rowsPerItem, tokens);
    EXPECT_EQ(wide.headTile, 16 / kvHeads);
    EXPECT_EQ(wide.mr * (wide.nrVectors + 2), 30); // and one vector of values
    EXPECT_EQ(narrow.mr * (narrow.nrVectors + 2), 12);
  }
}

// Workers that have several tokens of a head compute them together; a few tokens are shared out all the same.
TEST(Grids, HeadsTimesTokensAreTheItemsOfAttention) {
  GqaAttentionDesc gqa;
  gqa.shape.heads = 64;
  gqa.kvHeads = 4;
  ExpandedAttentionDesc expanded;
  expanded.shape.heads = 64;
  for (int64_t tokens : {1, 8, 100}) {
    EXPECT_EQ(itemCount(gridOf({"", gqa}, chooseTile({"", gqa}, zen4)), tokens), 4 * tokens);
    EXPECT_EQ(itemCount(gridOf({"", expanded}, chooseTile({"", expanded}, zen4)), tokens), 64 * tokens);
  }
}

// Fewer (token, tile of heads) than workers, and sequences of three partials: 2,049 positions.
TEST(Grids, AttentionOfFewTokensIsSplitForManyWorkers) {
  AbsorbedAttentionDesc absorbed;
  absorbed.shape.heads = 64;
  absorbed.latent = 512;
  TileConfig tile = chooseTile({"", absorbed}, zen4); // 16 heads
  EXPECT_EQ(splitTokensFor({"", absorbed}, tile, 128, 2048, 8192), 31);
  EXPECT_EQ(splitTokensFor({"", absorbed}, tile, 129, 2048, 8192), 32);
  EXPECT_EQ(splitTokensFor({"", absorbed}, tile, 128, 4, 8192), 4) << "tokens of a step";
  EXPECT_EQ(splitTokensFor({"", absorbed}, tile, 4, 2048, 8192), 0) << "a tile of heads for each worker";
  EXPECT_EQ(splitTokensFor({"", absorbed}, tile, 128, 2048, 2048), 0) << "two partials";
  EXPECT_EQ(splitTokensFor({"", absorbed}, tile, 128, 2048, 2049), 31);
  tile.splitTokens = 15;
  EXPECT_EQ(itemCount(gridOf({"", absorbed}, tile), 1), 4 * 16 * tile.valueParts);
  EXPECT_EQ(itemCount(mergeGrid({"", absorbed}), 3), 3 * 64);
  EXPECT_EQ(partialBytes({"", absorbed}, tile), 15 * 64 * 16 * (512 + 16) * 4) << "m and l in a line of their own";
  GqaAttentionDesc gqa;
  gqa.shape.heads = 64;
  gqa.kvHeads = 4;
  EXPECT_EQ(splitTokensFor({"", gqa}, chooseTile({"", gqa}, zen4), 128, 2048, 8192), 31);
  ExpandedAttentionDesc expanded;
  expanded.shape.heads = 64;
  EXPECT_EQ(splitTokensFor({"", expanded}, chooseTile({"", expanded}, zen4), 128, 2048, 8192), 0);
}

// The panels of an item, and how items are numbered, are those of TileConfig.h.
TEST(Shares, FollowTheGrid) {
  auto shareOf = [](const KernelDesc &desc, size_t operand, WeightLayout weights = WeightLayout::Panels) {
    k2rt_share share = weightShare(desc, operands(desc)[operand], weights);
    return std::vector<int64_t>{share.experts, share.items, share.item_bytes};
  };
  using Share = std::vector<int64_t>;
  EXPECT_EQ(shareOf(linear(DType::F32, DType::BF16), 1), (Share{0, 64, 7168 * 32 * 2}));
  EXPECT_EQ(shareOf(linear(DType::F32, DType::BF16, true), 1), (Share{384, 64, 7168 * 32 * 2}));
  EXPECT_EQ(shareOf(linear(DType::F32, DType::BF16), 0), (Share{0, 0, 0})); // activations
  EXPECT_EQ(shareOf(linear(DType::F32, DType::BF16), 1, WeightLayout::Rows), (Share{0, 0, 0}));
  RmsNormDesc norm;
  norm.x.width = norm.y.width = 64;
  EXPECT_EQ(shareOf({"", norm}, 1), (Share{0, 0, 0}));
  ExpandedAttentionDesc attention;
  attention.shape.heads = 3;
  attention.uk = {DType::BF16, 3, 100, 512};
  attention.uv = {DType::BF16, 3, 64, 512};
  EXPECT_EQ(shareOf({"", attention}, 3), (Share{0, 3, 4 * 512 * 32 * 2}));
  EXPECT_EQ(shareOf({"", attention}, 4), (Share{0, 3, 2 * 512 * 32 * 2}));
}

TEST(Shares, RunsOfSlotsThatAreReadAlike) {
  std::vector<SlotShares> shares;
  for (int64_t slots : {3, 1, 2})
    appendShare(shares, {slots, {0, 4, 64}});
  appendShare(shares, {1, {0, 0, 0}});
  appendShare(shares, {5, {2, 4, 64}});
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares[0].slots, 6);
  EXPECT_EQ(shares[2].share.experts, 2);
}

TEST(Grids, DispatchIsOneItemAndRowKernelsOneARow) {
  EXPECT_EQ(itemCount(gridOf({"", PermutationDesc{8, 2}}, chooseTile({"", PermutationDesc{8, 2}}, zen4)), 9), 1);
  UnpermuteDesc c;
  EXPECT_EQ(itemCount(gridOf({"", c}, chooseTile({"", c}, zen4)), 9), 9);
  RowwiseDesc a;
  a.y.space = RowSpace::Slot;
  a.slotsPerToken = 8;
  EXPECT_EQ(gridOf({"", a}, chooseTile({"", a}, zen4)).slotsPerToken, 8);
  OutputRowsDesc w;
  w.y.space = RowSpace::Output;
  EXPECT_EQ(gridOf({"", w}, chooseTile({"", w}, zen4)).space, RowSpace::Output);
  BlockArgmaxDesc m{{RowSpace::Output, 1000, 1000, DType::F32}, 512};
  EXPECT_EQ(itemCount(gridOf({"", m}, chooseTile({"", m}, zen4)), 9), 18);
  GreedySampleDesc s{m.logits, 2};
  EXPECT_EQ(itemCount(gridOf({"", s}, chooseTile({"", s}, zen4)), 9), 9);
  EXPECT_EQ(gridOf({"", s}, chooseTile({"", s}, zen4)).space, RowSpace::Output);
}

} // namespace
