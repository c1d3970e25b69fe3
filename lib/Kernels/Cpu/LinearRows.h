//===- LinearRows.h - How a linear cuts its rows --------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_LINEARROWS_H
#define K2C_LIB_KERNELS_CPU_LINEARROWS_H

#include "Builder.h"
#include "k2c/Kernels/TileConfig.h"
#include <utility>

namespace k2c::emit {

/// Rows [first, second) of a block. As many blocks as rowsPerItem asks for, of equally many register tiles (give or
/// take one): workers that share out the items then have equal work. Of warps all blocks but the last are full.
std::pair<Value, Value> rowsOfBlock(KernelBuilder &b, const TileConfig &tile, Value rows, Value block);

/// Rows of a register tile: as few tiles as mr allows. The last has as few rows as fill the pipes, the others all the
/// more: a full tile loads least for its arithmetic.
Value tileRows(KernelBuilder &b, const TileConfig &tile, Value rows);

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_LINEARROWS_H
