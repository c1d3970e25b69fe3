//===- NnStorage.h - What a reader of a stored family sees ----------------===//
//
// `stored` blocks are those of the published matrix. An op reads something else: heads apart, a slice, a transpose.
// What it must know is which elements of the last two dimensions of its weight share a scale; that is the encoding of
// the type it reads. Rows 48 to 95 of a matrix in blocks of 128 rows, cut into heads of 48, are blocks of 16 rows.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_NN_NNSTORAGE_H
#define K2C_DIALECTS_NN_NNSTORAGE_H

#include "dialects/Nn/Nn.h"

namespace k2c::nn {

/// The family's tensor type; of a stored family, encoded with the largest blocks, aligned to every matrix of the last
/// two dimensions, whose elements have one scale.
mlir::RankedTensorType readTypeOf(WeightsOp family);

} // namespace k2c::nn

#endif // K2C_DIALECTS_NN_NNSTORAGE_H
