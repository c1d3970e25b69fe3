//===- Reference.h - Slots that are pieces of a checkpoint ------------------===//
//
// A slot whose bytes are those of the checkpoint needs no blob: the index names the pieces of its files, and whoever
// fills memory with them reads these. What has to be changed on the way is refused.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_WEIGHTS_REFERENCE_H
#define K2C_LIB_WEIGHTS_REFERENCE_H

#include "SlotPacker.h"

namespace k2c::weights {

/// Error: the layout of `slot`, or how it reads a tensor, is not how tensors are stored. Asks no checkpoint.
Status checkReference(const WeightSlot &slot);

/// The pieces of `slot`, which has one range: ascending, payloadBytes of it but for what lies between matrices. Errors:
/// those of OperandStream::open and of checkReference, and an element type that would be converted.
Expected<std::vector<FilePiece>> piecesOf(const WeightSlot &slot, const TensorSource &tensors);

/// The ranges of a slot made of tensors as pieces of these, hashed as a packer would write them.
Expected<PackedSlot> referToOperand(const WeightSlot &slot, const TensorSource &tensors, const Meter &meter);

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_REFERENCE_H
