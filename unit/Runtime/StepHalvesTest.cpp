// Steps in two halves: each row is in one of them, with all that the step says of it.
#include "engine/StepHalves.h"
#include "engine/StepArrays.h"
#include "fake/FakeBundle.h"
#include "program/Bundle.h"
#include <gtest/gtest.h>
#include <tuple>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// What a half says of one row.
struct Row {
  int32_t id, position, form, firstPage;
  int64_t tokenOfGroup, slot;

  bool operator==(const Row &other) const {
    return std::tie(id, position, form, firstPage, tokenOfGroup, slot) ==
           std::tie(other.id, other.position, other.form, other.firstPage, other.tokenOfGroup, other.slot);
  }
};

class Halves : public testing::Test {
protected:
  /// A step of sequences of so many rows, each behind 10 tokens more than the one before; of each the last row is an
  /// output row.
  k2rt_ir_step stepOf(const std::vector<int32_t> &rows) {
    StepArrays &a = arrays;
    k2rt_ir_step step = a.step();
    a.seqBegin[0] = 0;
    for (size_t s = 0; s < rows.size(); ++s) {
      a.seqLen[0][s] = static_cast<int32_t>(10 * s);
      a.lastSample[s] = static_cast<int32_t>(100 + s);
      a.stepTables[0][s * a.blockStride] = static_cast<int32_t>(7 + s);
      a.fillSlots(0, static_cast<int64_t>(s), step.token_rows, rows[s]);
      for (int32_t i = 0; i < rows[s]; ++i) {
        const int64_t row = step.token_rows++;
        a.tokenIds[row] = static_cast<int32_t>(row + 40);
        a.positions[row] = static_cast<int32_t>(10 * s) + i;
        a.rowSeq[row] = static_cast<int32_t>(s);
        a.rowForm[row] = static_cast<int32_t>(row % 2);
      }
      a.outputs[step.output_rows++] = static_cast<int32_t>(step.token_rows - 1);
      a.seqBegin[s + 1] = static_cast<int32_t>(step.token_rows);
    }
    step.seq_rows = static_cast<int64_t>(rows.size());
    step.layer_rows = step.token_rows;
    step.sampling = a.sampling;
    step.logits = logits.data();
    return step;
  }
  static std::vector<Row> rowsOf(const k2rt_ir_step &step) {
    std::vector<Row> rows;
    for (int64_t row = 0; row < step.token_rows; ++row) {
      const int32_t s = static_cast<const int32_t *>(step.row_seq)[row];
      const auto *begin = static_cast<const int32_t *>(step.seq_begin);
      EXPECT_LE(begin[s], row);
      EXPECT_GT(begin[s + 1], row);
      rows.push_back({static_cast<const int32_t *>(step.token_ids)[row],
                      static_cast<const int32_t *>(step.positions)[row],
                      static_cast<const int32_t *>(step.row_form)[row],
                      static_cast<int32_t *const *>(step.block_tables)[0][s * step.block_stride],
                      static_cast<int32_t *const *>(step.seq_len)[0][s] + row - begin[s],
                      static_cast<int64_t *const *>(step.append_slots)[0][row]});
    }
    return rows;
  }
  static std::vector<int32_t> outputsOf(const k2rt_ir_step &step, int32_t firstRow) {
    const auto *outputs = static_cast<const int32_t *>(step.outputs);
    std::vector<int32_t> rows(outputs, outputs + step.output_rows);
    for (int32_t &row : rows)
      row += firstRow;
    return rows;
  }
  /// Cuts `step` and holds both halves together against it.
  void expectHalves(const k2rt_ir_step &step) {
    const k2rt_ir_step &first = halves.cut(step);
    const auto &second = *static_cast<const k2rt_ir_step *>(first.second);
    EXPECT_EQ(first.token_rows, (step.token_rows + 1) / 2);
    std::vector<Row> rows = rowsOf(first);
    const std::vector<Row> behind = rowsOf(second);
    rows.insert(rows.end(), behind.begin(), behind.end());
    EXPECT_EQ(rows, rowsOf(step));
    std::vector<int32_t> outputs = outputsOf(first, 0);
    const std::vector<int32_t> later = outputsOf(second, static_cast<int32_t>(first.token_rows));
    outputs.insert(outputs.end(), later.begin(), later.end());
    EXPECT_EQ(outputs, outputsOf(step, 0));
    EXPECT_EQ(static_cast<float *>(second.logits) - static_cast<float *>(step.logits),
              first.output_rows * manifest.vocab);
    EXPECT_EQ(static_cast<int32_t *>(second.samples) - static_cast<int32_t *>(step.samples), first.output_rows);
    EXPECT_EQ(static_cast<k2rt_ir_sampling *>(second.sampling) - static_cast<k2rt_ir_sampling *>(step.sampling),
              first.output_rows);
    EXPECT_EQ(first.layer_rows, step.token_rows);
    EXPECT_EQ(second.layer_rows, step.token_rows);
  }

  FakeBundle fake;
  Manifest manifest = *readManifest(*readFileList(fake.folder));
  std::vector<float> logits = std::vector<float>(manifest.limits.max_sequences * manifest.vocab);
  StepArrays arrays = std::move(*StepArrays::allocateOwn(manifest));
  StepHalves halves{manifest};
};

} // namespace

TEST_F(Halves, AreCutBetweenSequences) { expectHalves(stepOf({2, 2})); }

TEST_F(Halves, AreCutThroughASequence) { expectHalves(stepOf({3, 4, 2})); }

TEST_F(Halves, AreOfOneSequence) { expectHalves(stepOf({7})); }

TEST_F(Halves, OfOneRowAreARowAndNone) {
  expectHalves(stepOf({1}));
  const auto &second = *static_cast<const k2rt_ir_step *>(halves.cut(stepOf({1})).second);
  EXPECT_EQ(second.token_rows, 0);
  EXPECT_EQ(second.seq_rows, 0);
}

TEST_F(Halves, OfNoRowsHaveNone) { expectHalves(stepOf({})); }

TEST_F(Halves, OfManySequencesHaveEachOnce) {
  for (int32_t first = 1; first < 9; ++first)
    expectHalves(stepOf({first, 1, 5, 1}));
}

// What is captured of a row is where it would be of the whole step.
TEST_F(Halves, CaptureAtTheirRows) {
  std::vector<float> hidden(1000), weights(1000);
  std::vector<int32_t> experts(1000);
  k2rt_ir_step step = stepOf({5, 4});
  step.capture_hidden = hidden.data();
  step.capture_weights = weights.data();
  step.capture_experts = experts.data();
  const auto &second = *static_cast<const k2rt_ir_step *>(halves.cut(step).second);
  EXPECT_EQ(static_cast<float *>(second.capture_hidden) - hidden.data(), 5 * manifest.hidden);
  EXPECT_EQ(static_cast<float *>(second.capture_weights) - weights.data(), 5 * manifest.topK);
  EXPECT_EQ(static_cast<int32_t *>(second.capture_experts) - experts.data(), 5 * manifest.topK);
  EXPECT_EQ(second.forced_experts, nullptr);
}
