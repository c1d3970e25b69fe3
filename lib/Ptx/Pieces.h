//===- Pieces.h - What a bulk copy moves ----------------------------------===//
#ifndef K2C_LIB_PTX_PIECES_H
#define K2C_LIB_PTX_PIECES_H

#include "Execution.h"
#include "k2c/Ptx/TensorMap.h"

namespace k2c::ptx {

/// The box of `map` at `coordinates`, as it lies in shared memory from `shared` on: line after line, with chunks of 16
/// bytes exchanged as the map's swizzle says.
std::vector<Piece> piecesOf(const TensorMap &map, const int32_t *coordinates, uint64_t shared);

/// Whether all of `pieces` lie in memory, were written where they are read, and race with nothing; else it is recorded.
bool mayCopy(Machine &machine, Warp &warp, const Operation &operation, int lane, Cta &cta,
             const std::vector<Piece> &pieces, bool isToShared, const Agent &readBy, const Agent &writtenBy,
             uint32_t time);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_PIECES_H
