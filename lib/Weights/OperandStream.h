//===- OperandStream.h - One operand, from tensors to packed bytes --------===//
//
// Opens the sources of a slot, checks them against its layout, and either hashes them or streams the packed bytes to a
// sink. The range's name depends on the stored bytes, on how they are read and on the layout; not on tensor names.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_WEIGHTS_OPERANDSTREAM_H
#define K2C_LIB_WEIGHTS_OPERANDSTREAM_H

#include "SourceReader.h"

namespace k2c::weights {

/// Takes packed bytes in order.
using Sink = std::function<Status(const char *data, int64_t bytes)>;

/// The content of one slot as a stream that can be run once. A slot with a table is not an operand stream.
class OperandStream {
public:
  /// Errors: a missing tensor, another shape or element type, rows or columns that do not add up to the layout.
  static Expected<OperandStream> open(const TensorSource &tensors, const WeightSlot &slot);

  /// Streams payloadBytes(slot.transform) bytes to `sink`.
  Status pack(const Sink &sink);
  /// Reads what `pack` would read, in the same order.
  Status skim();
  /// In place of either of the two: the rows of part `part`, to be taken.
  RowStream &rowsOf(int64_t part) { return parts[size_t(part)]; }
  /// After pack or skim: 32 hex digits.
  std::string rangeName() const;

private:
  struct PanelBatch;
  OperandStream(const WeightSlot &slot) : slot(&slot) {}
  Status packRows(const RowMajor &layout, const Sink &sink);
  Status packPanels(const PanelLayout &layout, const Sink &sink);
  Status packMatrixRows(const RowLayout &layout, const Sink &sink);

  const WeightSlot *slot;
  std::string recipe;           // how the bytes are read and laid out: part of the name
  std::vector<RowStream> parts; // one; gate and up of matrices with two parts
};

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_OPERANDSTREAM_H
