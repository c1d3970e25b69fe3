//===- Scratch.cpp - Worker memory that a kernel uses ------------------------------------===//
#include "AttentionKernels.h"
#include "Emitters.h"
#include "k2c/Kernels/Cpu.h"

namespace k2c {

static int64_t bytesOf(const LinearDesc &d, const TileConfig &tile) { return emit::linearBytes(d, tile); }

/// Permutation: the next slot of each expert; by a warp two counts of it, where shared memory is too small for them.
static int64_t bytesOf(const PermutationDesc &d, const TileConfig &tile) {
  return (tile.isOfWarp() ? 2 : 1) * d.experts * byteWidth(DType::I32);
}

static int64_t bytesOf(const GqaAttentionDesc &d, const TileConfig &tile) { return emit::layoutOf(d, tile).bytes(); }
static int64_t bytesOf(const AbsorbedAttentionDesc &d, const TileConfig &tile) {
  return emit::layoutOf(d, tile).bytes();
}
static int64_t bytesOf(const ExpandedAttentionDesc &d, const TileConfig &tile) {
  return emit::layoutOf(d, tile).bytes() + emit::expandedBytes(d);
}

static int64_t bytesOf(const RoutingDesc &d, const TileConfig &tile) { return emit::routingBytes(d, tile.lanes); }

template <class Desc> static int64_t bytesOf(const Desc &, const TileConfig &) { return 0; }

int64_t scratchBytes(const KernelDesc &desc, const TileConfig &tile) {
  return std::visit([&](const auto &body) { return bytesOf(body, tile); }, desc.body);
}

} // namespace k2c
