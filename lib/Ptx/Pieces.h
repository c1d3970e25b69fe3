//===- Pieces.h - What a bulk copy moves ----------------------------------===//
#ifndef K2C_LIB_PTX_PIECES_H
#define K2C_LIB_PTX_PIECES_H

#include "Decoder.h"
#include "Execution.h"
#include "k2c/Ptx/TensorMap.h"

namespace k2c::ptx {

/// The box of `map` at `coordinates`, as it lies in shared memory from `shared` on: line after line, with chunks of 16
/// bytes exchanged as the map's swizzle says.
std::vector<Piece> piecesOf(const TensorMap &map, const int32_t *coordinates, uint64_t shared);

/// Who copies.
struct Copier {
  bool isToShared, isProxy;
  Agent readBy, writtenBy; ///< stand for it at `time`
  uint32_t time;
  uint32_t reduced = 0; ///< bytes of the elements that it adds to what is there, each at once; 0: it overwrites
};

/// Whether all of `pieces` lie in memory, were written where they are read, and race with nothing; else it is recorded.
bool mayCopy(Machine &machine, Warp &warp, const Operation &operation, int lane, Cta &cta,
             const std::vector<Piece> &pieces, const Copier &copier);

/// What a copy does with what is there. (Atomics.cpp)

/// Takes .add, .min, .max, .and, .or or .xor; none: it is not known.
std::optional<uint32_t> takeReductionKind(Decoder &decoder);
/// That of elements of a type; null: there is none.
Combine reductionOf(uint32_t kind, Type type);
/// Takes a kind and a type, as .add.noftz.bf16, and sets Operation::bytes to those of an element; null: it is not
/// known.
Combine takeReduction(Decoder &decoder);

/// Copies to the shared memory of `cta`; the bytes.
uint64_t fill(Cta &cta, const std::vector<Piece> &pieces);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_PIECES_H
