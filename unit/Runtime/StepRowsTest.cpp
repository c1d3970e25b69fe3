// Slices of a step: each row is in one of them, at its place in all arrays.
#include "engine/StepRows.h"
#include "engine/StepArrays.h"
#include "fake/FakeBundle.h"
#include "program/Bundle.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace k2c;
using namespace k2c::runtime;

namespace {

std::string said(const std::vector<RowRange> &ranges) {
  std::string text;
  for (const RowRange &range : ranges)
    text += (text.empty() ? "" : ", ") + std::to_string(range.begin) + " to " + std::to_string(range.end);
  return text;
}

class Slices : public testing::Test {
protected:
  /// A step of so many rows of one sequence, of which these are output rows.
  k2rt_ir_step stepOf(int64_t rows, const std::vector<int32_t> &outputs) {
    k2rt_ir_step step = arrays.step();
    step.token_rows = step.layer_rows = rows;
    std::iota(arrays.tokenIds, arrays.tokenIds + rows, 40);
    std::iota(arrays.positions, arrays.positions + rows, 0);
    std::copy(outputs.begin(), outputs.end(), arrays.outputs);
    step.output_rows = static_cast<int64_t>(outputs.size());
    step.logits = logits.data();
    step.capture_hidden = hidden.data();
    return step;
  }

  FakeBundle fake;
  Manifest manifest = *readManifest(*readFileList(fake.folder));
  std::vector<float> logits = std::vector<float>(16 * manifest.vocab), hidden = std::vector<float>(1000);
  StepArrays arrays = std::move(*StepArrays::allocateOwn(manifest));
};

} // namespace

TEST_F(Slices, DifferByARowAtMost) {
  EXPECT_EQ(said(rowsOfSlice(7, 0, 2, /*inHalves=*/false)), "0 to 3");
  EXPECT_EQ(said(rowsOfSlice(7, 1, 2, /*inHalves=*/false)), "3 to 7");
  EXPECT_EQ(said(rowsOfSlice(1, 0, 4, /*inHalves=*/false)), "0 to 0");
  EXPECT_EQ(said(rowsOfSlice(1, 3, 4, /*inHalves=*/false)), "0 to 1");
}

TEST_F(Slices, AreOfEachHalf) {
  EXPECT_EQ(said(rowsOfSlice(7, 0, 2, /*inHalves=*/true)), "0 to 2, 4 to 5");
  EXPECT_EQ(said(rowsOfSlice(7, 1, 2, /*inHalves=*/true)), "2 to 4, 5 to 7");
}

TEST_F(Slices, HaveEachRowAndEachOutputOnce) {
  const std::vector<int32_t> outputs = {0, 2, 3, 6};
  int64_t rows = 0, seen = 0;
  for (int64_t slice = 0; slice < 3; ++slice) {
    k2rt_ir_step whole = stepOf(7, outputs);
    const k2rt_ir_step own = takeSlice(whole, manifest, slice, 3);
    EXPECT_EQ(own.gathered, &whole);
    EXPECT_EQ(whole.output_rows, 0);
    EXPECT_EQ(own.layer_rows, 7);
    EXPECT_EQ(static_cast<float *>(own.capture_hidden) - hidden.data(), rows * manifest.hidden);
    EXPECT_EQ(static_cast<float *>(own.logits) - logits.data(), seen * manifest.vocab);
    for (int64_t output = 0; output < own.output_rows; ++output, ++seen)
      EXPECT_EQ(static_cast<const int32_t *>(own.outputs)[output] + rows, outputs[static_cast<size_t>(seen)]);
    for (int64_t row = 0; row < own.token_rows; ++row, ++rows)
      EXPECT_EQ(static_cast<const int32_t *>(own.token_ids)[row], 40 + rows);
  }
  EXPECT_EQ(rows, 7);
  EXPECT_EQ(seen, 4);
}

TEST_F(Slices, EnterAtTheFirstStageAlone) {
  k2rt_ir_step whole = stepOf(5, {});
  EXPECT_EQ(takeSlice(whole, manifest, 1, 2).entering_rows, 0);
  whole.entering_rows = 5;
  EXPECT_EQ(takeSlice(whole, manifest, 1, 2).entering_rows, 3);
}
