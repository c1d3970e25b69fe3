//===- Orders.cpp - The orders of numerics N1, N3, N5, from shapes alone ------===//
//
// Where a contraction is cut, where a softmax restarts, how many leaves a combine tree has, and where the packed weight
// of (matrix, column, row) lies. Evaluation, emission, packing and partitioning all ask here.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/KernelDesc.h"
#include <algorithm>
#include <numeric>

namespace k2c {

namespace {
constexpr int64_t leafUnit = 512;         // N1: K / 512 bounds the leaves
constexpr int64_t leafAlignment = 128;    // N1: leaves are rounded up to 128
constexpr int64_t maxLeaves = 8;          // N1
constexpr int64_t minRestart = 1024;      // N3
constexpr int64_t restartFraction = 16;   // N3
constexpr int64_t maxCombineLeaves = 128; // N5: m at most 7

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
} // namespace

int64_t leafCount(int64_t k) {
  int64_t leaves = 1;
  while (leaves < maxLeaves && leaves * 2 * leafUnit <= k)
    leaves *= 2;
  return leaves;
}

int64_t leafLength(int64_t k, int64_t leaves) { return ceilDiv(ceilDiv(k, leaves), leafAlignment) * leafAlignment; }

int64_t softmaxRestart(int64_t position) {
  int64_t restart = minRestart;
  while (restart * restartFraction < position + 1)
    restart *= 2;
  return restart;
}

int64_t softmaxPartials(int64_t position) { return position / softmaxRestart(position) + 1; }

int64_t combineLeaves(int64_t experts) {
  int64_t leaves = 1;
  while (leaves < maxCombineLeaves && experts % (leaves * 2) == 0)
    leaves *= 2;
  return leaves;
}

PanelLayout::Place PanelLayout::place(int64_t matrix, int64_t column) const {
  int64_t panel = column / columns, lane = column % columns;
  if (interleave == 2) {
    constexpr int64_t half = columns / 2;
    bool up = column >= n / 2;
    int64_t within = up ? column - n / 2 : column;
    panel = within / half;
    lane = within % half + (up ? half : 0);
  }
  return {matrix * panels() + panel, lane};
}

int64_t PanelLayout::index(int64_t matrix, int64_t column, int64_t row) const {
  auto [panel, lane] = place(matrix, column);
  int64_t step = kStep();
  return panel * (panelBytes() / byteWidth(type)) + row / step * (columns * step) + lane * step + row % step;
}

int64_t PanelLayout::scaleOffset(int64_t matrix, int64_t column, int64_t row) const {
  auto [panel, lane] = place(matrix, column);
  int64_t scale = row / scaleRows * (columns / scaleColumns) + lane / scaleColumns;
  return panel * panelBytes() + panelElements() + scale * byteWidth(DType::F32);
}

void PanelLayout::storeBlocks(int64_t blockColumns, int64_t blockRows) {
  type = DType::F8E4M3;
  scaleColumns = std::gcd(columns / interleave, blockColumns);
  scaleRows = blockRows;
}

} // namespace k2c
