//===- WeightLayoutTest.cpp - Where the elements of a matrix lie ------------------------------===//
#include "k2c/Kernels/WeightLayout.h"
#include <gtest/gtest.h>
#include <set>

using namespace k2c;

namespace {

/// Each element and each scale of block-scaled matrices has bytes of its own, within the layout.
template <class Layout> void expectNoOverlap(const Layout &layout) {
  const Matrix &matrix = layout.matrix;
  std::set<int64_t> elements, scales;
  for (int64_t m = 0; m < matrix.count; ++m)
    for (int64_t n = 0; n < matrix.n; ++n)
      for (int64_t k = 0; k < matrix.k; ++k) {
        const int64_t at = layout.offset(m, n, k);
        for (int64_t byte = 0; byte < byteWidth(matrix.type); ++byte)
          EXPECT_TRUE(elements.insert(at + byte).second) << m << " " << n << " " << k;
        if (matrix.isScaled())
          scales.insert(layout.scaleOffset(m, n, k));
      }
  EXPECT_GE(*elements.begin(), 0);
  EXPECT_LT(*elements.rbegin(), layout.bytes());
  for (int64_t scale : scales)
    for (int64_t byte = 0; byte < 4; ++byte)
      EXPECT_TRUE(elements.insert(scale + byte).second) << "scale at " << scale;
  EXPECT_LT(*elements.rbegin(), layout.bytes());
}

TEST(WeightLayout, EveryElementAndEveryScaleHasBytesOfItsOwn) {
  for (int64_t parts : {1, 2})
    for (DType type : {DType::F32, DType::BF16, DType::F8E4M3}) {
      Matrix matrix{type, 2, parts == 2 ? 40 : 37, 5, parts};
      if (type == DType::F8E4M3)
        matrix.blockColumns = matrix.blockRows = 8;
      expectNoOverlap(PanelLayout{matrix});
      expectNoOverlap(RowLayout{matrix});
    }
}

TEST(WeightLayout, APanelOfTwoPartsHoldsGateThenUp) {
  PanelLayout w{{DType::F32, 1, 40, 3, 2}};
  EXPECT_EQ(panelCount(w.matrix), 2);
  EXPECT_EQ(w.offset(0, 0, 0), 0);
  EXPECT_EQ(w.offset(0, 20, 0), 16 * 4);         // up column 0
  EXPECT_EQ(w.offset(0, 16, 0), w.panelBytes()); // gate column 16
  EXPECT_EQ(w.offset(0, 0, 1), panelColumns * 4);
}

TEST(WeightLayout, PanelsKeepPairsOfBf16Together) {
  PanelLayout w{{DType::BF16, 1, 32, 5}};
  EXPECT_EQ(w.offset(0, 1, 0) - w.offset(0, 0, 0), 4);
  EXPECT_EQ(w.offset(0, 3, 1) - w.offset(0, 3, 0), 2);
  EXPECT_EQ(w.offset(0, 3, 2) - w.offset(0, 3, 0), 128);
  EXPECT_EQ(w.panelElements(), 6 * 32);
}

TEST(WeightLayout, ScalesOfAPanelNeverStraddleABlock) {
  PanelLayout w{{DType::F8E4M3, 1, 2 * 48, 256, 2, /*blockColumns=*/24, /*blockRows=*/128}};
  EXPECT_EQ(w.scaleColumns(), 8); // 16 columns of a part, blocks of 24
  EXPECT_EQ(w.panelBytes(), 32 * 256 + 2 * 4 * 4 + 32);
}

TEST(WeightLayout, RowsArePaddedTo16Bytes) {
  RowLayout w{{DType::BF16, 3, 6, 9}};
  EXPECT_EQ(w.rowBytes(), 32); // 18
  EXPECT_EQ(w.offset(0, 0, 8), 16);
  EXPECT_EQ(w.offset(0, 5, 0), 5 * 32);
  EXPECT_EQ(w.matrixBytes(), 6 * 32);
  EXPECT_EQ(w.offset(2, 1, 1), 2 * 192 + 32 + 2);
}

TEST(WeightLayout, ScalesOfRowsFollowTheElementsOfTheirMatrix) {
  RowLayout w{{DType::F8E4M3, 2, 2 * 20, 40, 2, /*blockColumns=*/8, /*blockRows=*/16}};
  EXPECT_EQ(w.elementBytes(), 40 * 48);
  EXPECT_EQ(w.partBlocks(), 3); // 20 columns in blocks of 8
  EXPECT_EQ(w.scaleSteps(), 3); // 40 elements in blocks of 16
  EXPECT_EQ(w.scaleOffset(0, 7, 15), 40 * 48);
  EXPECT_EQ(w.scaleOffset(0, 8, 16), 40 * 48 + (3 + 1) * 4);
  EXPECT_EQ(w.scaleOffset(0, 20, 0), 40 * 48 + 9 * 4); // the first of up
  EXPECT_EQ(w.scaleOffset(1, 0, 0), w.matrixBytes() + 40 * 48);
  EXPECT_EQ(w.matrixBytes() % 64, 0);
}

} // namespace
