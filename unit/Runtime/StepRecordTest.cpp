// Records of steps: what is written is read, and no number beyond the limits is used.
#include "engine/StepRecord.h"
#include "fake/FakeBundle.h"
#include "program/Bundle.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// Two sequences, of 3 rows behind 62 tokens and of 2 rows; the last row of each is an output row, which is sampled.
class Records : public testing::Test {
protected:
  Records() {
    StepArrays &a = from;
    const int32_t ids[] = {5, 6, 7, 8, 9}, positions[] = {62, 63, 64, 0, 1}, begins[] = {0, 3, 5};
    for (int i = 0; i < 5; ++i) {
      a.tokenIds[i] = ids[i];
      a.positions[i] = positions[i];
      a.rowForm[i] = i < 3 ? K2RT_FORM_ABSORBED : K2RT_FORM_EXPANDED;
    }
    std::copy_n(begins, 3, a.seqBegin);
    a.outputs[0] = 2;
    a.outputs[1] = 4;
    a.lastSample[0] = 4;
    a.lastSample[1] = -1;
    a.seqLen[0][0] = 62;
    a.seqLen[0][1] = 0;
    a.stepTables[0][0] = 11;
    a.stepTables[0][1] = 12;
    a.stepTables[0][a.blockStride] = 13;
    a.sampling[0] = {0.5f, 0.9f, 0, 3, 77, 0, 65};
    a.sampling[1] = {0, 1, 0, 0, 78, 1, 2};
    step = a.step();
    step.token_rows = 5;
    step.output_rows = step.seq_rows = 2;
    step.sampling = a.sampling;
  }
  std::vector<std::byte> written() const {
    std::vector<std::byte> record;
    writeStepRecord(manifest, from, step, 3, wanted, record);
    return record;
  }
  Expected<ReceivedStep> read(const std::vector<std::byte> &record) {
    return readStepRecord(manifest, record.data(), static_cast<int64_t>(record.size()), 3, /*tables=*/2, to);
  }
  /// What is said of a record of which `change` has changed the arrays or the step.
  template <class Change> std::string saidOf(Change change) {
    change();
    Expected<ReceivedStep> received = read(written());
    return received ? "" : received.error().message;
  }
  template <class T> std::string saidOfHeader(T StepRecordHeader::*field, int64_t value) {
    std::vector<std::byte> record = written();
    reinterpret_cast<StepRecordHeader *>(record.data())->*field = static_cast<T>(value);
    Expected<ReceivedStep> received = read(record);
    return received ? "" : received.error().message;
  }

  FakeBundle fake;
  Manifest manifest = *readManifest(*readFileList(fake.folder));
  StepArrays from = std::move(*StepArrays::allocateOwn(manifest)), to = std::move(*StepArrays::allocateOwn(manifest));
  k2rt_ir_step step;
  WantedOutputs wanted = {/*logits=*/true};
};

} // namespace

TEST_F(Records, AreReadAsTheyWereWritten) {
  Expected<ReceivedStep> received = read(written());
  ASSERT_TRUE(received) << received.error().text();
  EXPECT_EQ(received->header.step, 3);
  EXPECT_EQ(received->header.flags, uint32_t(hasSampling | givesLogits));
  EXPECT_EQ(received->step.token_rows, 5);
  EXPECT_EQ(received->step.seq_rows, 2);
  EXPECT_EQ(std::vector<int32_t>(to.tokenIds, to.tokenIds + 5), (std::vector<int32_t>{5, 6, 7, 8, 9}));
  EXPECT_EQ(std::vector<int32_t>(to.rowSeq, to.rowSeq + 5), (std::vector<int32_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(std::vector<int64_t>(to.appendSlots[0], to.appendSlots[0] + 5),
            (std::vector<int64_t>{11 * 64 + 62, 11 * 64 + 63, 12 * 64, 13 * 64, 13 * 64 + 1}));
  EXPECT_EQ(to.sampling[0].seed, 77u);
  EXPECT_EQ(to.sampling[1].position, 2);
  EXPECT_EQ(received->step.forced_experts, nullptr);
  EXPECT_EQ(received->targets, nullptr);
}

TEST_F(Records, TargetsTravelAlong) {
  const int32_t targets[] = {96, -1};
  wanted = {/*logits=*/false, targets};
  const std::vector<std::byte> record = written();
  Expected<ReceivedStep> received = read(record);
  ASSERT_TRUE(received) << received.error().text();
  EXPECT_EQ(received->header.flags, uint32_t(hasSampling | givesLogProbabilities));
  EXPECT_EQ(std::vector<int32_t>(received->targets, received->targets + 2), (std::vector<int32_t>{96, -1}));
  const ResultLayout layout = resultLayout(manifest, 5, 2, received->header.flags);
  EXPECT_EQ(layout.logProbabilities, 8) << "behind two samples";
  EXPECT_EQ(layout.bytes, 16);
}

TEST_F(Records, TargetsOutsideTheVocabularyAreRefused) {
  const int32_t targets[] = {3, 97};
  wanted = {/*logits=*/false, targets};
  EXPECT_EQ(saidOf([] {}), "targets[1] is 97, must be within -1..96");
}

TEST_F(Records, ForcedRoutesTravelAlong) {
  const std::vector<int32_t> experts = {1, 2, 3, 4, K2RT_ROUTE_FREE, K2RT_ROUTE_FREE, 7, K2RT_ROUTE_NONE, 9, 15};
  const std::vector<float> weights(10, 0.25f);
  step.forced_experts = const_cast<int32_t *>(experts.data());
  step.forced_weights = const_cast<float *>(weights.data());
  const std::vector<std::byte> record = written();
  Expected<ReceivedStep> received = read(record);
  ASSERT_TRUE(received) << received.error().text();
  const auto *read = static_cast<const int32_t *>(received->step.forced_experts);
  EXPECT_EQ(std::vector<int32_t>(read, read + 10), experts);
  EXPECT_EQ(static_cast<const float *>(received->step.forced_weights)[9], 0.25f);
}

TEST_F(Records, NoneIsLargerThanTheCapacity) {
  EXPECT_LE(static_cast<int64_t>(written().size()), recordCapacity(manifest, from));
  EXPECT_EQ(recordCapacity(manifest, from) % recordUnit, 0);
}

TEST_F(Records, TheEndIsOne) {
  std::vector<std::byte> record;
  writeOtherRecord(endRecord, 3, record);
  Expected<ReceivedStep> received = read(record);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->header.kind, uint32_t(endRecord));
}

TEST_F(Records, CountsBeyondTheLimitsAreRefused) {
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::tokenRows, 49), "token_rows is 49, must be within 0..48");
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::tokenRows, -1), "token_rows is -1, must be within 0..48");
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::outputRows, 6), "output_rows is 6, must be within 0..5");
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::outputRows, 5), "output_rows is 5, must be within 0..4")
      << "as many parameters of sampling as sequences";
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::seqRows, 5), "seq_rows is 5, must be within 0..4");
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::tablePages, 17), "block table is 17, must be within 0..16");
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::tokenRows, 9), "has " + std::to_string(written().size()) +
                                                               " bytes, its counts need " +
                                                               std::to_string(written().size() + 3 * 16));
}

TEST_F(Records, HalvesAreOfProgramsThatHaveThem) {
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::flags, inHalves), "flags is 256, must be within 0..255");
  manifest.ranks.halves = {4, 1};
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::kind, stepRecord), "token_rows is 5, must be within 0..4");
  std::vector<std::byte> record = written();
  setShared(record.data(), /*table=*/1, /*goesInHalves=*/true);
  Expected<ReceivedStep> received = read(record);
  ASSERT_TRUE(received) << received.error().text();
  EXPECT_EQ(received->header.table, 1u);
  EXPECT_EQ(received->header.flags, uint32_t(hasSampling | givesLogits | inHalves));
}

TEST_F(Records, WhatIsTooShortIsRefused) {
  std::vector<std::byte> record = written();
  record.resize(10);
  Expected<ReceivedStep> received = read(record);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().text(),
            "step record: has 10 bytes, its header 56; start the same build of k2c on every host");
}

TEST_F(Records, AnotherFormatIsRefused) {
  std::vector<std::byte> record = written();
  record[0] = std::byte{9};
  Expected<ReceivedStep> received = read(record);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().where, "record of step 3");
  EXPECT_EQ(received.error().code, K2RT_PEER_FAILED);
}

TEST_F(Records, AnotherStepIsRefused) {
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::step, 4), "step is 4, must be within 3..3");
  std::vector<std::byte> end;
  writeOtherRecord(endRecord, 2, end);
  Expected<ReceivedStep> received = read(end);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().message, "step is 2, must be within 3..3");
}

TEST_F(Records, WhatHasNoMeaningYetIsRefused) {
  EXPECT_EQ(saidOfHeader(&StepRecordHeader::table, 2), "table is 2, must be within 0..1");
}

TEST_F(Records, WhatSaysNoDrawIsRefused) {
  EXPECT_EQ(saidOf([&] { from.sampling[1].choice = -1; }),
            "sampling[1].choice is -1, must be within 0..9223372036854775807");
  EXPECT_EQ(saidOf([&] { from.sampling[1] = {0, 1, 0, 0, 78, 1, 1001}; }),
            "sampling[1].position is 1001, must be within 0..1000");
}

TEST_F(Records, AnExpertIsForcedOnceForARow) {
  std::vector<int32_t> experts(10, K2RT_ROUTE_NONE);
  const std::vector<float> weights(10, 0.25f);
  step.forced_experts = experts.data();
  step.forced_weights = const_cast<float *>(weights.data());
  EXPECT_EQ(saidOf([&] { experts[1] = experts[2] = 5; }), "") << "of two rows";
  EXPECT_EQ(saidOf([&] { experts[3] = 5; }), "forced_experts[3] is 5, which its row has twice");
}

TEST_F(Records, IdsOutsideTheVocabularyAreRefused) {
  EXPECT_EQ(saidOf([&] { from.tokenIds[1] = 97; }), "token_ids[1] is 97, must be within 0..96");
}

TEST_F(Records, PositionsBeyondTheContextAreRefused) {
  EXPECT_EQ(saidOf([&] { from.positions[0] = 1000; }), "positions[0] is 1000, must be within 0..999");
}

TEST_F(Records, PagesThatDoNotExistAreRefused) {
  EXPECT_EQ(saidOf([&] { from.stepTables[0][1] = 64; }), "block table[1] is 64, must be within 0..63");
}

TEST_F(Records, SequencesWithoutRowsAreRefused) {
  EXPECT_EQ(saidOf([&] { from.seqBegin[1] = 0; }), "seq_begin[1] is 0 behind 0, must be more");
}

TEST_F(Records, OutputRowsAscend) {
  EXPECT_EQ(saidOf([&] { from.outputs[1] = 2; }), "outputs[1] is 2 behind 2, must be more");
}

TEST_F(Records, LengthsBeyondTheContextAreRefused) {
  EXPECT_EQ(saidOf([&] { from.seqLen[0][1] = -1; }), "seq_len is -1, must be within 0..126");
}

TEST_F(Records, ForcedExpertsThatDoNotExistAreRefused) {
  const std::vector<int32_t> experts(10, 16);
  const std::vector<float> weights(10, 0.25f);
  EXPECT_EQ(saidOf([&] {
              step.forced_experts = const_cast<int32_t *>(experts.data());
              step.forced_weights = const_cast<float *>(weights.data());
            }),
            "forced_experts[0] is 16, must be within -2..15");
}

// Any one byte changed: read or refused, never out of bounds (a sanitizer sees it).
TEST_F(Records, DamageIsReadOrRefused) {
  const std::vector<std::byte> whole = written();
  for (size_t at = 0; at < whole.size(); ++at)
    for (unsigned value : {0u, 1u, 0x7fu, 0x80u, 0xffu}) {
      std::vector<std::byte> record = whole;
      record[at] = std::byte(value);
      (void)bool(read(record));
    }
}
