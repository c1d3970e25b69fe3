//===- Scratch.cpp - Worker memory that a kernel uses ------------------------------------===//
#include "k2c/Kernels/Emit.h"

namespace k2c {

static int64_t bytesOf(const LinearDesc &d, const TileConfig &tile) {
  return d.normEps > 0 ? tile.rowsPerItem * d.x.width * byteWidth(d.x.type) : 0;
}

/// Dispatch: the next slot of each expert.
static int64_t bytesOf(const DispatchDesc &d, const TileConfig &) { return d.experts * byteWidth(DType::I32); }

template <class Desc> static int64_t bytesOf(const Desc &, const TileConfig &) { return 0; }

int64_t scratchBytes(const KernelDesc &desc, const TileConfig &tile) {
  return std::visit([&](const auto &body) { return bytesOf(body, tile); }, desc.body);
}

} // namespace k2c
