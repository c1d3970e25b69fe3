//===- MatrixReader.h - The columns of a matrix, in the layout it has ----------------------===//
//
// A contraction asks for vectors of weights: `lanes` consecutive output columns at an element of k. In panels that is
// one load; in rows the columns lie apart and are gathered. Nothing else of an emitter knows where weights lie.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_MATRIXREADER_H
#define K2C_LIB_KERNELS_CPU_MATRIXREADER_H

#include "InstructionSet.h"
#include <memory>

namespace k2c::emit {

/// The 32 columns that a tile multiplies with.
struct Panel {
  Value address; ///< of the panel; rows: of its matrix
  Value first;   ///< rows: its first column in each part; else null
};

/// `lanes` columns of a part of a panel, from column `first` (i64) of that part on.
struct Columns {
  int64_t part = 0;
  Value first;
};

class MatrixReader {
public:
  static std::unique_ptr<MatrixReader> create(KernelBuilder &b, const Matrix &matrix, const TileConfig &tile);
  virtual ~MatrixReader() = default;

  /// Panel `index` of matrix `m` (i64) of those at `base`.
  virtual Panel panel(Value base, Value m, Value index) const = 0;
  /// The panel `count` behind, of the same matrix.
  virtual Panel behind(const Panel &panel, int64_t count) const = 0;
  /// The kStep elements of each column from element `k` (i64) on; `scale`: what scales() gave for it, null without
  /// scales.
  virtual PanelVector weights(const Panel &panel, const Columns &columns, Value k, Value scale) const = 0;
  /// The columns' scales at element k, as scaledWeights takes them.
  virtual Value scales(const Panel &panel, const Columns &columns, Value k) const = 0;

protected:
  MatrixReader(KernelBuilder &b, const Matrix &matrix, int64_t lanes) : b(b), matrix(matrix), lanes(lanes) {}

  KernelBuilder &b;
  Matrix matrix;
  int64_t lanes;
};

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_MATRIXREADER_H
