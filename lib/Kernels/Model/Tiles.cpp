//===- Tiles.cpp - Which register tile, and how a kernel is cut ---------------===//
//
// Three families: register tiles over panels (linears), attention, and row kernels, which have one candidate. The cost
// of a register tile is the slowest of three resources for one step along k, and nothing else: cache misses do not
// depend on the tile, since every tile spans its panel.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/Cta.h"
#include "k2c/Kernels/TileConfig.h"
#include <algorithm>
#include <cassert>

namespace k2c {

namespace {

// Zen 3 to Zen 5 and Golden Cove (vendors' optimisation guides): two FMAs and two vector loads a cycle at full width,
// an FMA's result after four cycles. The measured 270 GF/s of a 4.2 GHz core with 16 lanes is the same two FMAs.
constexpr double fmasPerCycle = 2, loadsPerCycle = 2, fmaLatencyCycles = 4;
// 8 KiB of a bf16 panel. Weights in memory, Zen 4: +5 % over 2 KiB at 8 rows, no difference at 32; in the cache -1 %.
constexpr int64_t prefetchSteps = 64;
// In the emitted code: sign extension, shift, mask, f16 to f32 (two micro-operations), the scale.
constexpr double e4m3Conversions = 6;
// Rows of an item: enough tiles to read a panel from the second cache rather than from memory, few enough to share out.
constexpr int64_t minTilesPerItem = 4, maxTilesPerItem = 16;
// Tokens that are computed together. Expanding a block of keys for a head costs as much as 400 queries on it
// (DeepSeek-V3: 512 * 256 against 320 multiply-adds a key): many tokens share it. A tile's state moves once a block, 2
// bytes a cycle at most, so it need not stay in the second cache.
constexpr int64_t minExpandedTokens = 64, maxExpandedTokens = 1024;
// Turning a block of keys costs as much as 1 query on it.
constexpr int64_t gqaRowsPerItem = 64, minGqaTokens = 16;
// A worker that has one part of four does 5/8 of the work of one that has them all.
constexpr int64_t absorbedValueParts = 4;
// Of the routes that warps permute: each counts all routes and places its part, which takes three times as long a
// route.
constexpr int64_t permutationParts = 16;

enum class Family : uint8_t { Linear, Gqa, Absorbed, Expanded, Permutation, Rows };

/// What the families need of a description.
struct Shape {
  Family family = Family::Rows;
  DType x = DType::F32, w = DType::F32;
  int64_t k = 0, heads = 0, queriesPerKv = 1;
  bool grouped = false;
  int64_t valueDim = 0;   ///< grouped-query and absorbed attention
  int64_t stateBytes = 0; ///< expanded attention: query, partial and total output of a token
};

Shape shapeOf(const KernelDesc &desc) {
  Shape s;
  if (const auto *d = std::get_if<LinearDesc>(&desc.body))
    s = {Family::Linear, d->x.type, d->w.type, d->w.k, 0, 1, d->grouped};
  else if (const auto *d = std::get_if<HeadLinearDesc>(&desc.body))
    s = {Family::Linear, d->x.type, d->w.type, d->w.k, d->heads, 1, false};
  else if (const auto *d = std::get_if<GqaAttentionDesc>(&desc.body))
    s = {Family::Gqa, d->q.type,  d->shape.cache, d->keyDim, d->shape.heads, d->shape.heads / d->kvHeads,
         false,       d->valueDim};
  else if (const auto *d = std::get_if<AbsorbedAttentionDesc>(&desc.body))
    s = {Family::Absorbed, d->qLatent.type, d->shape.cache, d->latent + d->rope, d->shape.heads, 1, false, d->latent};
  else if (const auto *d = std::get_if<ExpandedAttentionDesc>(&desc.body))
    s = {Family::Expanded,
         d->q.type,
         d->uk.type,
         d->latent,
         d->shape.heads,
         1,
         false,
         d->value,
         (d->nope + d->rope) * byteWidth(d->q.type) + 2 * d->value * byteWidth(DType::F32)};
  else if (std::holds_alternative<PermutationDesc>(desc.body) || std::holds_alternative<RoutePlanDesc>(desc.body) ||
           std::holds_alternative<ReturnPlanDesc>(desc.body) || std::holds_alternative<SharePlanDesc>(desc.body) ||
           std::holds_alternative<ShareReturnDesc>(desc.body) || std::holds_alternative<PartPlanDesc>(desc.body))
    s.family = Family::Permutation;
  return s;
}

bool takesPairs(const Shape &s) { return s.x == DType::BF16 && s.w == DType::BF16; }

/// Some of the kernel's products are of pairs: expanded attention multiplies its cache with queries and with matrices.
bool hasPairs(const KernelDesc &desc, const Shape &s) {
  const auto *d = std::get_if<ExpandedAttentionDesc>(&desc.body);
  auto isHalf = [](DType type) { return type == DType::BF16; };
  return d ? isHalf(d->shape.cache) && (isHalf(d->q.type) || isHalf(d->uk.type) || isHalf(d->uv.type)) : takesPairs(s);
}

/// Accumulators, the shorter side of the tile and one element of the longer side; the scales of block-scaled columns.
int64_t registersOf(const Shape &s, const TileConfig &tile) {
  if (s.family == Family::Gqa) {
    // Of each row: accumulators, the sum of its weights, a weight; one vector of values. How many keys a row sees is a
    // scalar, and scalars of a warp lie among its vectors.
    const int64_t scalars = tile.isOfWarp() ? 1 : 0;
    return tile.mr * (tile.nrVectors + 2 + scalars) + 1;
  }
  int64_t scales = s.w == DType::F8E4M3 ? tile.nrVectors : 0;
  return tile.mr * tile.nrVectors + std::min(tile.mr, tile.nrVectors) + 1 + scales;
}

/// Instructions that make f32 of one vector of weights.
double conversions(const Shape &s) {
  if (s.w == DType::F8E4M3)
    return e4m3Conversions;
  return s.w == DType::BF16 && !takesPairs(s) ? 1 : 0;
}

int64_t linearRowsPerItem(const Shape &s, int64_t mr, const TargetInfo &target) {
  int64_t fit = target.l2Bytes / 2 / (std::max<int64_t>(s.k, 1) * byteWidth(s.x)) / mr;
  return mr * std::clamp(fit, minTilesPerItem, maxTilesPerItem);
}

int64_t expandedTokens(const Shape &s, const TargetInfo &target) {
  int64_t tokens = minExpandedTokens;
  while (tokens < maxExpandedTokens && 2 * tokens * s.stateBytes <= 2 * target.l2Bytes)
    tokens *= 2;
  return tokens;
}

TileConfig tileFor(const Shape &s, InstructionSet instructionSet, int64_t mr, const TargetInfo &target) {
  TileConfig tile;
  tile.instructionSet = instructionSet;
  tile.lanes = std::min<int64_t>(instructionSet == InstructionSet::Avx512 ? 16 : target.lanes, panelColumns);
  tile.mr = mr;
  tile.nrVectors = panelColumns / tile.lanes;
  switch (s.family) {
  case Family::Linear:
    tile.weights = target.weights;
    if (tile.weights == WeightLayout::Panels && !tile.isOfWarp())
      tile.prefetch = prefetchSteps * (s.w == DType::F8E4M3 ? 4 : 1); // the same bytes ahead as bf16
    tile.rowsPerItem = s.grouped ? 0 : tile.isOfWarp() ? ctaTiles * mr : linearRowsPerItem(s, mr, target);
    break;
  case Family::Gqa:
    tile.nrVectors = std::min<int64_t>(target.vectorRegisters >= 32 ? 4 : 2, softmaxBlock / tile.lanes);
    tile.rowsPerItem = std::max(gqaRowsPerItem / s.queriesPerKv, minGqaTokens);
    tile.headTile = s.queriesPerKv;
    break;
  case Family::Expanded:
    tile.weights = target.weights;
    tile.rowsPerItem = expandedTokens(s, target);
    break;
  case Family::Absorbed:
    // One vector of heads: it shares what is loaded of a key, and the values of a block that pairs turn.
    tile.nrVectors = 1;
    tile.headTile = tile.lanes;
    tile.valueParts = absorbedValueParts;
    break;
  case Family::Permutation:
    tile.rowsPerItem = 0;
    break;
  case Family::Rows:
    break;
  }
  return tile;
}

/// An item is a token and a head, or a tile of heads, or a part of their values.
Grid attentionGrid(const KernelDesc &desc, const TileConfig &tile) {
  Shape s = shapeOf(desc);
  int64_t items = (s.heads + tile.headTile - 1) / tile.headTile;
  return {RowSpace::Token, 1, items * tile.valueParts * (tile.splitTokens > 0 ? maxPartials : 1)};
}

/// The rows that items keep to; those of the last operand that has them, as a kernel may choose its rows among others.
RowSpace rowSpaceOf(const KernelDesc &desc) {
  RowSpace space = RowSpace::Token;
  for (const Operand &operand : operands(desc))
    if (operand.effect.isByRow())
      space = operand.rows.space;
  return space;
}

} // namespace

bool isLegal(const KernelDesc &desc, const TileConfig &tile, const TargetInfo &target) {
  Shape s = shapeOf(desc);
  if (!target.hasFma || tile.lanes > target.lanes || tile.mr < 1 || tile.nrVectors < 1)
    return false;
  if (tile.instructionSet == InstructionSet::Avx512 &&
      (!target.hasAvx512 || tile.lanes != 16 || (hasPairs(desc, s) && !target.hasAvx512Bf16)))
    return false;
  if (s.family == Family::Permutation || s.family == Family::Rows)
    return true;
  if (registersOf(s, tile) > target.vectorRegisters)
    return false;
  const bool isOverPanels = s.family == Family::Linear || s.family == Family::Expanded;
  if (tile.isOfWarp() && isOverPanels && (tile.mr & (tile.mr - 1)) != 0)
    return false; // its bodies are of powers of two
  if (s.family == Family::Gqa)
    return tile.mr <= tile.lanes && softmaxBlock % (tile.nrVectors * tile.lanes) == 0;
  if (s.family == Family::Absorbed)
    return tile.headTile == tile.nrVectors * tile.lanes && tile.valueParts >= 1;
  return tile.nrVectors * tile.lanes == panelColumns;
}

TargetInfo cpuTarget(const std::vector<std::string> &features, int64_t l1Bytes, int64_t l2Bytes) {
  auto has = [&](const char *feature) {
    return std::find(features.begin(), features.end(), feature) != features.end();
  };
  TargetInfo target;
  target.hasFma = has("fma");
  target.hasAvx512 = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  target.hasAvx512Bf16 = target.hasAvx512 && has("avx512bf16");
  target.lanes = target.hasAvx512 ? 16 : 8;
  target.vectorRegisters = target.hasAvx512 ? 32 : 16;
  target.l1Bytes = l1Bytes;
  target.l2Bytes = l2Bytes;
  return target;
}

TargetInfo gpuTarget() {
  TargetInfo target;
  target.lanes = 32;
  target.vectorRegisters = 24;
  return target;
}

std::vector<TileConfig> candidates(const KernelDesc &desc, const TargetInfo &target) {
  Shape s = shapeOf(desc);
  bool tiled = s.family != Family::Permutation && s.family != Family::Rows;
  std::vector<TileConfig> legal;
  for (InstructionSet instructionSet : {InstructionSet::Avx512, InstructionSet::Generic})
    for (int64_t mr = tiled ? target.vectorRegisters : 1; mr >= 1; --mr) {
      TileConfig tile = tileFor(s, instructionSet, mr, target);
      if (isLegal(desc, tile, target))
        legal.push_back(tile);
    }
  return legal;
}

TileCost tileCost(const KernelDesc &desc, const TileConfig &tile, const TargetInfo &target) {
  Shape s = shapeOf(desc);
  double accumulators = double(tile.mr * tile.nrVectors);
  double widened = conversions(s) * double(tile.nrVectors);
  double loads = double(tile.mr + tile.nrVectors);
  double cycles = std::max({(accumulators + widened) / fmasPerCycle, loads / loadsPerCycle, fmaLatencyCycles});
  double multiplyAdds = accumulators * double(tile.lanes) * (takesPairs(s) ? 2 : 1);
  return {1000 * cycles / multiplyAdds, 1000 * loads / multiplyAdds};
}

TileConfig chooseTile(const KernelDesc &desc, const TargetInfo &target) {
  std::vector<TileConfig> legal = candidates(desc, target);
  assert(!legal.empty() && "a target without FMA has no kernels");
  auto cheaper = [&](const TileConfig &a, const TileConfig &b) {
    TileCost x = tileCost(desc, a, target), y = tileCost(desc, b, target);
    return x.cycles != y.cycles ? x.cycles < y.cycles : x.loads < y.loads;
  };
  return *std::min_element(legal.begin(), legal.end(), cheaper);
}

int64_t splitTokensFor(const KernelDesc &desc, const TileConfig &tile, int64_t workers, int64_t tokens,
                       int64_t positions) {
  Shape s = shapeOf(desc);
  if ((s.family != Family::Gqa && s.family != Family::Absorbed) || softmaxPartials(positions - 1) < minSplit)
    return 0;
  int64_t tiles = (s.heads + tile.headTile - 1) / tile.headTile;
  return std::min((workers - 1) / tiles, tokens);
}

int64_t partialStride(int64_t valueDim) {
  constexpr int64_t line = 16; // f32
  return (valueDim + 2 + line - 1) / line * line;
}

int64_t partialBytes(const KernelDesc &desc, const TileConfig &tile) {
  Shape s = shapeOf(desc);
  return tile.splitTokens * s.heads * maxPartials * partialStride(s.valueDim) * byteWidth(DType::F32);
}

Grid mergeGrid(const KernelDesc &desc) { return {RowSpace::Token, 1, shapeOf(desc).heads}; }

Grid gridOf(const KernelDesc &desc, const TileConfig &tile) {
  const int64_t ofPanel = tile.isOfWarp() ? ctaWarps : 1;
  if (const auto *d = std::get_if<LinearDesc>(&desc.body)) {
    if (d->grouped)
      return {RowSpace::Slot, 0, panelCount(d->w) * d->w.count * ofPanel, d->slotsPerToken};
    return {d->x.space, tile.rowsPerItem, panelCount(d->w) * ofPanel, d->slotsPerToken};
  }
  if (const auto *d = std::get_if<HeadLinearDesc>(&desc.body))
    return {d->x.space, tile.rowsPerItem, d->heads * panelCount(d->w) * ofPanel};
  if (std::holds_alternative<PermutationDesc>(desc.body) && tile.isOfWarp())
    return {RowSpace::Token, 0, permutationParts};
  if (const auto *d = std::get_if<RowwiseDesc>(&desc.body))
    return {d->y.space, tile.rowsPerItem, 1, d->slotsPerToken};
  if (const auto *d = std::get_if<BlockArgmaxDesc>(&desc.body))
    return {d->logits.space, tile.rowsPerItem, d->blocks()};
  switch (shapeOf(desc).family) {
  case Family::Gqa:
  case Family::Absorbed:
  case Family::Expanded:
    return attentionGrid(desc, tile);
  case Family::Permutation:
    return {RowSpace::Token, 0, 1};
  default:
    return {rowSpaceOf(desc), tile.rowsPerItem, 1};
  }
}

int64_t itemCount(const Grid &grid, int64_t rows) {
  if (grid.rowsPerItem == 0)
    return grid.itemsPerBlock;
  return (rows + grid.rowsPerItem - 1) / grid.rowsPerItem * grid.itemsPerBlock;
}

} // namespace k2c
