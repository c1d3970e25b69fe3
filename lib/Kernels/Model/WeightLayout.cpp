//===- WeightLayout.cpp - How the matrices of a kernel lie in memory -----------===//
#include "k2c/Kernels/WeightLayout.h"
#include <numeric>

namespace k2c {

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t roundUp(int64_t bytes, int64_t unit) { return ceilDiv(bytes, unit) * unit; }

constexpr int64_t cacheLine = 64;    // bytes
constexpr int64_t rowAlignment = 16; // bytes: the unit of NVIDIA's tensor copies
constexpr int64_t scaleBytes = 4;    // f32

/// Columns that a panel has of each part.
static int64_t partWidth(const Matrix &matrix) { return panelColumns / matrix.parts; }

int64_t panelCount(const Matrix &matrix) { return ceilDiv(matrix.partColumns(), partWidth(matrix)); }

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

namespace {
/// Number and lane of the panel that holds a column.
struct Place {
  int64_t panel, lane;
};
} // namespace

static Place placeOf(const Matrix &matrix, int64_t m, int64_t column) {
  int64_t part = column / matrix.partColumns(), inPart = column % matrix.partColumns(), width = partWidth(matrix);
  return {m * panelCount(matrix) + inPart / width, inPart % width + part * width};
}

int64_t PanelLayout::scaleColumns() const { return std::gcd(partWidth(matrix), matrix.blockColumns); }

int64_t PanelLayout::panelElements() const { return roundUp(matrix.k, matrix.kStep()) * panelColumns; }

int64_t PanelLayout::panelBytes() const {
  int64_t bytes = panelElements() * byteWidth(matrix.type);
  if (!matrix.isScaled())
    return bytes;
  int64_t scales = ceilDiv(matrix.k, matrix.blockRows) * (panelColumns / scaleColumns());
  return roundUp(bytes + scales * scaleBytes, cacheLine);
}

int64_t PanelLayout::offset(int64_t m, int64_t column, int64_t row) const {
  auto [panel, lane] = placeOf(matrix, m, column);
  int64_t step = matrix.kStep(), element = row / step * (panelColumns * step) + lane * step + row % step;
  return panel * panelBytes() + element * byteWidth(matrix.type);
}

int64_t PanelLayout::scaleOffset(int64_t m, int64_t column, int64_t row) const {
  auto [panel, lane] = placeOf(matrix, m, column);
  int64_t scale = row / matrix.blockRows * (panelColumns / scaleColumns()) + lane / scaleColumns();
  return panel * panelBytes() + panelElements() + scale * scaleBytes;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

int64_t RowLayout::rowBytes() const { return roundUp(matrix.k * byteWidth(matrix.type), rowAlignment); }

int64_t RowLayout::scaleSteps() const { return ceilDiv(matrix.k, matrix.blockRows); }

int64_t RowLayout::partBlocks() const { return ceilDiv(matrix.partColumns(), matrix.blockColumns); }

int64_t RowLayout::matrixBytes() const {
  int64_t scales = matrix.isScaled() ? matrix.parts * partBlocks() * scaleSteps() : 0;
  return roundUp(elementBytes() + scales * scaleBytes, cacheLine);
}

int64_t RowLayout::offset(int64_t m, int64_t column, int64_t row) const {
  return m * matrixBytes() + column * rowBytes() + row * byteWidth(matrix.type);
}

int64_t RowLayout::scaleOffset(int64_t m, int64_t column, int64_t row) const {
  int64_t part = column / matrix.partColumns(), inPart = column % matrix.partColumns();
  int64_t block = part * partBlocks() + inPart / matrix.blockColumns;
  return m * matrixBytes() + elementBytes() + (block * scaleSteps() + row / matrix.blockRows) * scaleBytes;
}

//===----------------------------------------------------------------------===//
// Either
//===----------------------------------------------------------------------===//

MatrixLayout layoutOf(const Matrix &matrix, WeightLayout layout) {
  if (layout == WeightLayout::Panels)
    return PanelLayout{matrix};
  return RowLayout{matrix};
}

int64_t weightBytes(const Matrix &matrix, WeightLayout layout) {
  return std::visit([](const auto &known) { return known.bytes(); }, layoutOf(matrix, layout));
}

int64_t weightBytes(const Operand &operand, WeightLayout layout) {
  return operand.isMatrix() ? weightBytes(operand.matrix, layout) : operand.elements * byteWidth(operand.type);
}

} // namespace k2c
