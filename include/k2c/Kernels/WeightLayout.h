//===- WeightLayout.h - How the matrices of a kernel lie in memory -------------===//
//
// A KernelDesc says which matrices a kernel multiplies with; here is where each of their elements lies. The target
// chooses the layout with the tile. Kernels, the packer, map.json and the IR (#rt.panels, #rt.rows) know layouts;
// descriptions and their hashes do not.
//
//   panels   what CPU kernels read: 32 output columns side by side, one load for the lanes of a register
//   rows     each output column on its own, contiguous along k: what a matrix unit or a published tensor has
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_WEIGHTLAYOUT_H
#define K2C_KERNELS_WEIGHTLAYOUT_H

#include "k2c/Kernels/KernelDesc.h"
#include <variant>

namespace k2c {

enum class WeightLayout : uint8_t { Panels, Rows };

/// Blobs of weights start and end on pages: they are mapped, and a vector load past the last element stays inside the
/// mapping.
constexpr int64_t blobAlignment = 4096;

/// Output columns of a panel: what a CPU kernel computes of a matrix at a time, in whichever layout. With two parts, a
/// panel is 16 gate columns, then the 16 up columns of the same range: the gated epilogue stays in registers.
constexpr int64_t panelColumns = 32;
/// Panels of one matrix.
int64_t panelCount(const Matrix &matrix);

/// Matrices in panels of 32 columns: elements [matrix][panel][ceil(k / kStep)][32][kStep], zero padded in n and k.
/// Behind the elements of a block-scaled panel are its f32 scales [ceil(k / blockRows)][32 / scaleColumns()].
struct PanelLayout {
  Matrix matrix;
  /// The most columns of a panel that never straddle a block: each such group has a scale.
  int64_t scaleColumns() const;
  int64_t panelElements() const;
  /// Elements, then scales; panels with scales begin on cache lines.
  int64_t panelBytes() const;
  int64_t bytes() const { return matrix.count * panelCount(matrix) * panelBytes(); }
  /// Byte offset of W[column][row] of matrix `m`; gate columns count first, then up columns.
  int64_t offset(int64_t m, int64_t column, int64_t row) const;
  /// Byte offset of its scale.
  int64_t scaleOffset(int64_t m, int64_t column, int64_t row) const;
};

/// Matrices in rows: elements [matrix][n][k], each output column padded with zeros to 16 bytes. Behind the elements of
/// a block-scaled matrix are its f32 scales [part][ceil(n / parts / blockColumns)][ceil(k / blockRows)]. Matrices begin
/// on cache lines.
struct RowLayout {
  Matrix matrix;
  /// From one output column to the next.
  int64_t rowBytes() const;
  /// Elements of one matrix, where its scales begin.
  int64_t elementBytes() const { return matrix.n * rowBytes(); }
  /// Scales of one output column, and blocks of columns of a part.
  int64_t scaleSteps() const;
  int64_t partBlocks() const;
  int64_t matrixBytes() const;
  int64_t bytes() const { return matrix.count * matrixBytes(); }
  /// As those of PanelLayout.
  int64_t offset(int64_t m, int64_t column, int64_t row) const;
  int64_t scaleOffset(int64_t m, int64_t column, int64_t row) const;
};

using MatrixLayout = std::variant<PanelLayout, RowLayout>;
MatrixLayout layoutOf(const Matrix &matrix, WeightLayout layout);

/// Bytes of matrices, and of a Weight or Table operand of a kernel that reads its matrices in `layout`.
int64_t weightBytes(const Matrix &matrix, WeightLayout layout);
int64_t weightBytes(const Operand &operand, WeightLayout layout);

} // namespace k2c

#endif // K2C_KERNELS_WEIGHTLAYOUT_H
