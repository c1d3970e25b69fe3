//===- TileConfig.h - How a kernel is computed --------------------------------===//
//
// KernelDesc says what; a TileConfig says how, and changes no bit. candidates() lists the tiles a target's registers
// can hold, tileCost() prices one in cycles, chooseTile() takes the cheapest, gridOf() cuts the kernel into items.
//
// A linear's register tile is `mr` rows x `nrVectors * lanes` columns: mr * nrVectors accumulators stay in registers
// over a whole leaf of the contraction. Panels have 32 columns on every CPU, so the packed weights do not depend on the
// registers; matrices that lie in rows are read 32 columns at a time, too. Grid items, and how an item number is read
// (blocks = ceil(rows / rowsPerItem)):
//   linear               item = block * panels + panel                   one row block, one panel
//   linear, grouped      item = panel * matrices + matrix                all slots of one expert, one panel
//   head linear          item = (block * heads + head) * panels + panel
//   gqa attention        item = kvHead * tokens + token                  all query heads of the kv head
//   expanded attention   item = head * tokens + token
//   absorbed attention   item = (headTileIndex * tokens + token) * valueParts + part     `headTile` heads
//   split-KV attention   item = (item of the above without part * 16 + partial) * valueParts + part
//   permutation          one item; of warps 16
//   block argmax         item = row * blocks + block
//   all others           item = row
// Of warps, each panel of a linear, grouped or of heads, too, is four items, which a CTA takes together; those of a
// grouped one are shared out when it is known which experts have slots.
// Panel-major grouped items and head-major attention items give every worker a fair share whatever the routing and
// however causal masking loads the tokens, because a worker takes a contiguous range of items. What items share is
// computed once where they are one worker's: up to `rowsPerItem` tokens of a head share its keys, the parts of values
// of the same heads share their scores. So few tokens still occupy many workers, and many are computed together.
//
// Splitting. In a step of at most `splitTokens` tokens, the partials of N3 of a long sequence go to different workers.
// The kernel then runs twice: items write closed partials to a buffer, then the heads of each token are merged in N3's
// order. Items are places on a scale: a worker takes the partials whose share of all keys lies in its share of items.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_TILECONFIG_H
#define K2C_KERNELS_TILECONFIG_H

#include "k2c/Kernels/WeightLayout.h"
#include <cstdint>
#include <string>
#include <vector>

namespace k2c {

/// Which emitter writes the inner loops. Generic: the vector dialect, any target with FMA. Avx512: 512-bit intrinsics.
enum class InstructionSet : uint8_t { Generic, Avx512 };

/// What tiles depend on, of a CPU core.
struct TargetInfo {
  int64_t lanes = 8;                           ///< f32 lanes of a vector register
  int64_t vectorRegisters = 16;                ///< that a kernel can name: 16 with AVX2, 32 with AVX-512
  bool hasFma = true;                          ///< false: no kernel is legal (numerics N1 is made of FMA chains)
  bool hasAvx512 = false;                      ///< F, VL, BW and DQ: what the Avx512 instruction set needs
  bool hasAvx512Bf16 = false;                  ///< vdpbf16ps
  int64_t l1Bytes = 32 << 10;                  ///< data cache of a core
  int64_t l2Bytes = 1 << 20;                   ///< cache of a core, code and data
  WeightLayout weights = WeightLayout::Panels; ///< that kernels read matrices in
};

/// The core that has these of LLVM's features, and data caches of these bytes.
TargetInfo cpuTarget(const std::vector<std::string> &features, int64_t l1Bytes, int64_t l2Bytes);

/// A warp of a GPU: 32 lanes, each with 24 of its registers for tiles.
TargetInfo gpuTarget();

/// How one kernel is computed: its register tile, its grid items, what it fetches ahead. Plain data; legal only for the
/// descriptions and targets for which isLegal says so.
struct TileConfig {
  InstructionSet instructionSet = InstructionSet::Generic; ///< which emitter writes it
  int64_t lanes = 8;                                       ///< f32 lanes of a vector
  int64_t mr = 1;          ///< rows of a register tile; attention: query rows (tokens x heads) computed together
  int64_t nrVectors = 1;   ///< vectors of columns of a register tile; nrVectors * lanes divides 32
  int64_t prefetch = 0;    ///< contraction steps (of kStep) a tile alone fetches its panel ahead; 0: no tile does
  int64_t rowsPerItem = 1; ///< rows of a grid item; 0: all rows; attention: tokens computed together
  int64_t headTile = 1;    ///< attention: heads of a grid item
  int64_t valueParts = 1;  ///< absorbed attention: parts that the columns of the output are cut into
  int64_t splitTokens = 0; ///< attention: tokens of the largest step that is split by partials
  WeightLayout weights = WeightLayout::Panels; ///< how the kernel's matrices lie

  /// Whether a vector lies over the lanes of a warp, as one of a panel's width does.
  bool isOfWarp() const { return lanes == panelColumns; }
};

/// True when `tile` fits the target's registers and instructions and the kernel's shape.
bool isLegal(const KernelDesc &desc, const TileConfig &tile, const TargetInfo &target);

/// All legal tiles of `desc`; empty only when the target has no FMA.
std::vector<TileConfig> candidates(const KernelDesc &desc, const TargetInfo &target);

/// Cycles of one core for a thousand multiply-adds of the inner loop, data in the nearest cache, and the loads among
/// them; tiles are ordered by cycles, then by loads.
struct TileCost {
  double cycles = 0; ///< of one core, for 1,000 multiply-adds
  double loads = 0;  ///< vector loads for 1,000 multiply-adds
};
TileCost tileCost(const KernelDesc &desc, const TileConfig &tile, const TargetInfo &target);

/// The cheapest candidate, the first among equals. The target must have FMA.
TileConfig chooseTile(const KernelDesc &desc, const TargetInfo &target);

/// Items of a launch: ceil(rows / rowsPerItem) * itemsPerBlock, or itemsPerBlock when rowsPerItem is 0.
Grid gridOf(const KernelDesc &desc, const TileConfig &tile);

/// The most tokens of a step whose attention should be split for `workers`: fewer (token, tile of heads) than workers,
/// and sequences long enough to have `minSplit` partials. A step has at most `tokens`, a sequence `positions`.
int64_t splitTokensFor(const KernelDesc &desc, const TileConfig &tile, int64_t workers, int64_t tokens,
                       int64_t positions);

/// Partials of a query from which on it is split: two of unequal length share the work less well than parts of values.
constexpr int64_t minSplit = 3;

/// The buffer of a split-KV attention, f32: of each (token, head), maxPartials rows of partialStride(value columns): o,
/// m, l. 0 bytes when `tile` does not split.
int64_t partialBytes(const KernelDesc &desc, const TileConfig &tile);
/// How many f32 elements lie from one partial of `valueDim` value columns to the next.
int64_t partialStride(int64_t valueDim);

/// Items of the second launch of a split-KV attention: heads of tokens.
Grid mergeGrid(const KernelDesc &desc);

/// Items of a launch over `rows` rows of the grid's row space.
int64_t itemCount(const Grid &grid, int64_t rows);

} // namespace k2c

#endif // K2C_KERNELS_TILECONFIG_H
