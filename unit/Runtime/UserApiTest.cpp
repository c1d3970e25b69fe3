// k2rt.h: the same run through the C interface, greedy and drawn, and what each call refuses.
#include "../LimitedChild.h"
#include "fake/FakeBundle.h"
#include "k2rt/k2rt.h"
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// What a call left in its status, in one line.
std::string said(const k2rt_status &status) {
  return std::string(k2rt_code_name(status.code)) + "| " + status.place + "| " + status.message + "| " + status.remedy;
}

class UserApi : public testing::Test {
protected:
  ~UserApi() override {
    k2rt_session_destroy(session);
    k2rt_close(bundle);
  }

  void open(const FakeBundle &fake, k2rt_session_options options = {2, 0, nullptr, nullptr, 0}) {
    ASSERT_EQ(k2rt_open(fake.folder.c_str(), &bundle, &status), K2RT_OK) << said(status);
    ASSERT_EQ(k2rt_session_create(bundle, &options, &session, &status), K2RT_OK) << said(status);
  }
  /// The number of a queued sequence, -1 when it was refused.
  int64_t add(const std::vector<int32_t> &ids, int64_t maxNew, const k2rt_sampling &sampling) {
    int64_t number = -1;
    k2rt_sequence_add(session, ids.data(), static_cast<int64_t>(ids.size()), maxNew, &sampling, &number, &status);
    return number;
  }
  void drain() {
    for (int64_t active = 1; active > 0;)
      ASSERT_EQ(k2rt_step(session, &active, &status), K2RT_OK) << said(status);
  }
  std::vector<int32_t> read(int64_t sequence, int32_t expectFinished) {
    int32_t ids[64], finished = -1;
    int64_t count = -1;
    EXPECT_EQ(k2rt_sequence_read(session, sequence, ids, 64, &count, &finished, &status), K2RT_OK) << said(status);
    EXPECT_EQ(finished, expectFinished);
    return {ids, ids + std::max<int64_t>(count, 0)};
  }

  k2rt_status status = {};
  k2rt_bundle *bundle = nullptr;
  k2rt_session *session = nullptr;
};

constexpr k2rt_sampling greedyAlways = {0, 1, 0, 0, 0, 1, 0};
constexpr int32_t running = 0, reachedMaxNew = 1, endOfSequence = 2;

} // namespace

TEST_F(UserApi, GeneratesTwoSequences) {
  FakeBundle fake;
  open(fake);
  EXPECT_EQ(add({1, 2, 3}, 5, greedyAlways), 0);
  EXPECT_EQ(add({4, 5}, 9, greedyAlways), 1);
  drain();
  EXPECT_EQ(read(0, reachedMaxNew), fakeContinuation({1, 2, 3}, 5, 1));
  EXPECT_EQ(read(1, reachedMaxNew), fakeContinuation({4, 5}, 9, 1));
}

TEST_F(UserApi, SeveralRanksAreRefused) {
  const FakeBundle fake("fake_ranks2");
  k2rt_bundle *opened = nullptr;
  EXPECT_EQ(k2rt_open(fake.folder.c_str(), &opened, &status), K2RT_UNSUPPORTED);
  EXPECT_EQ(opened, nullptr);
  EXPECT_EQ(std::string(status.message), "is of 2 ranks, which this call does not start");
}

TEST_F(UserApi, ReadsWhatThereIsSoFar) {
  FakeBundle fake;
  open(fake);
  const std::vector<int32_t> all = fakeContinuation({1, 2, 3}, 5, 1);
  add({1, 2, 3}, 5, greedyAlways);
  EXPECT_EQ(read(0, running), std::vector<int32_t>());
  int64_t active = 0, count = 0;
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(k2rt_step(session, &active, &status), K2RT_OK) << said(status);
  EXPECT_EQ(active, 1);
  EXPECT_EQ(read(0, running), std::vector<int32_t>(all.begin(), all.begin() + 3));
  int32_t ids[3] = {-1, -1, -1};
  EXPECT_EQ(k2rt_sequence_read(session, 0, ids, 2, &count, nullptr, nullptr), K2RT_OK);
  EXPECT_EQ(count, 3) << "all there are, not what was copied";
  EXPECT_EQ(std::vector<int32_t>(ids, ids + 3), (std::vector<int32_t>{all[0], all[1], -1}));
  EXPECT_EQ(k2rt_sequence_read(session, 0, nullptr, 0, nullptr, nullptr, &status), K2RT_OK);
}

TEST_F(UserApi, EndsAtAnEndOfSequenceId) {
  FakeBundle fake;
  const std::vector<int32_t> all = fakeContinuation({5, 6, 7}, 12, 1);
  fake.manifest["eos"] = {all[4]};
  fake.write();
  open(fake);
  k2rt_sampling untilEos = greedyAlways;
  untilEos.ignore_eos = 0;
  add({5, 6, 7}, 12, untilEos);
  add({5, 6, 7}, 12, greedyAlways);
  ASSERT_EQ(k2rt_sequence_add(session, std::vector<int32_t>{5, 6, 7}.data(), 3, 12, nullptr, nullptr, &status),
            K2RT_OK);
  drain();
  const size_t end = std::find(all.begin(), all.end(), all[4]) - all.begin() + 1;
  EXPECT_EQ(read(0, endOfSequence), std::vector<int32_t>(all.begin(), all.begin() + end));
  EXPECT_EQ(read(1, reachedMaxNew), all);
  EXPECT_EQ(read(2, endOfSequence), read(0, endOfSequence)) << "null is greedy and heeds eos";
}

// Each field reaches the draw as itself: another one in its place would draw other tokens.
TEST_F(UserApi, DrawsByEachFieldOfSampling) {
  FakeBundle fake;
  open(fake);
  const std::vector<int32_t> prompt = {1, 2, 3};
  const k2rt_sampling settings[] = {
      {1, 1, 0, 0, 7, 1, 0},          {0.5f, 1, 0, 0, 7, 1, 0}, {1, 0.4f, 0, 0, 7, 1, 0},
      {1, 1, 0.28f, 0, 7, 1, 0},      {1, 1, 0, 9, 7, 1, 0},    {1, 1, 0, 0, 8, 1, 0},
      {1, 1, 0, 0, 1ull << 40, 1, 0}, {1, 1, 0, 0, 7, 1, 2},    {2, 0.9f, 0.3f, 60, 9, 1, 3}};
  std::vector<std::vector<int32_t>> drawn;
  for (const k2rt_sampling &setting : settings)
    add(prompt, 30, setting);
  drain();
  for (const k2rt_sampling &s : settings) {
    drawn.push_back(read(static_cast<int64_t>(drawn.size()), reachedMaxNew));
    EXPECT_EQ(drawn.back(), fakeDraws(prompt, 30, 1, {s.temperature, s.top_p, s.min_p, s.top_k, s.seed, s.choice, 0}));
    EXPECT_EQ(std::count(drawn.begin(), drawn.end(), drawn.back()), 1) << "each setting draws its own tokens";
  }
}

TEST_F(UserApi, TheSameKeyDrawsTheSameTokensAnywhere) {
  FakeBundle fake;
  open(fake, {3, 1, nullptr, nullptr, 0});
  const std::vector<int32_t> prompt = {9, 8, 7, 6};
  const k2rt_sampling key = {2, 1, 0, 0, 5, 1, 1};
  k2rt_sampling otherChoice = key;
  otherChoice.choice = 0;
  add(prompt, 20, key);
  add({1}, 7, greedyAlways);
  add(prompt, 20, otherChoice);
  drain();
  add({1, 2, 3, 4, 5}, 3, key); // the session has served others before
  add(prompt, 20, key);
  drain();
  EXPECT_EQ(read(4, reachedMaxNew), read(0, reachedMaxNew));
  EXPECT_NE(read(2, reachedMaxNew), read(0, reachedMaxNew)) << "several continuations of one prompt differ";
}

TEST_F(UserApi, OpenRefuses) {
  EXPECT_EQ(k2rt_open("/nonexistent", &bundle, &status), K2RT_INVALID_BUNDLE);
  EXPECT_STREQ(status.place, "/nonexistent");
  EXPECT_EQ(k2rt_open("/nonexistent", &bundle, nullptr), K2RT_INVALID_BUNDLE);
  EXPECT_EQ(k2rt_open(nullptr, &bundle, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_EQ(said(status), "invalid argument| dir| is null| ");
  EXPECT_EQ(k2rt_open("/nonexistent", nullptr, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_EQ(said(status), "invalid argument| bundle| is null| ");
  EXPECT_EQ(bundle, nullptr);
  k2rt_close(nullptr);
}

TEST_F(UserApi, MemoryThatTheSystemRefusesIsACode) {
  if (!k2c::test::canLimitMemory)
    GTEST_SKIP() << "a sanitizer takes memory itself";
  FakeBundle fake;
  std::filesystem::resize_file(fake.path("files.json"), 32 << 20);
  EXPECT_EQ(k2c::test::saidInChild([&] {
              k2c::test::limitMoreMemory(1 << 20);
              k2rt_open(fake.folder.c_str(), &bundle, &status);
              return said(status);
            }),
            "out of memory| k2rt| the system refuses memory| ");
}

TEST_F(UserApi, SessionCreateRefuses) {
  FakeBundle fake;
  ASSERT_EQ(k2rt_open(fake.folder.c_str(), &bundle, &status), K2RT_OK) << said(status);
  const auto refusal = [&](k2rt_session_options options) {
    EXPECT_NE(k2rt_session_create(bundle, &options, &session, &status), K2RT_OK);
    EXPECT_EQ(session, nullptr);
    return said(status);
  };
  EXPECT_EQ(refusal({-1, 0, nullptr, nullptr, 0}), "invalid argument| --threads| is -1, must be within 1..4096| ");
  EXPECT_EQ(refusal({1, -1, nullptr, nullptr, 0}), "invalid argument| --chunk| is -1, must be at least 1| ");
  EXPECT_EQ(refusal({1, 0, "/nonexistent/t", nullptr, 0}),
            "invalid argument| --trace /nonexistent/t| cannot be written: No such "
            "file or directory| name a file in an existing folder");
  EXPECT_EQ(k2rt_session_create(nullptr, nullptr, &session, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_EQ(said(status), "invalid argument| bundle| is null| ");
  EXPECT_EQ(k2rt_session_create(bundle, nullptr, nullptr, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_EQ(said(status), "invalid argument| session| is null| ");
  EXPECT_EQ(k2rt_session_create(bundle, nullptr, &session, nullptr), K2RT_OK) << "no options, no status";
  k2rt_session_destroy(nullptr);
}

TEST_F(UserApi, SequenceAddRefuses) {
  FakeBundle fake;
  open(fake);
  const auto refusal = [&](const std::vector<int32_t> &ids, int64_t maxNew, k2rt_sampling sampling) {
    EXPECT_EQ(add(ids, maxNew, sampling), -1);
    return said(status);
  };
  EXPECT_EQ(refusal({}, 1, greedyAlways), "invalid argument| ids| is null| ");
  EXPECT_EQ(refusal({1}, 0, greedyAlways), "invalid argument| max_new| must be at least 1| ");
  EXPECT_EQ(refusal({1, 97}, 1, greedyAlways),
            "invalid argument| sequence 0| token 1 is id 97, the vocabulary is 0..96| ");
  EXPECT_EQ(refusal({1, 2}, 1000, greedyAlways),
            "invalid argument| sequence 0| 2 prompt tokens and 1000 new ones exceed max_context 1000| "
            "use -n 999 at most or compile with a larger --max-context");
  EXPECT_EQ(refusal({1}, 1, {1, 1, 0, 0, 0, 1, -1}), "invalid argument| sampling.choice| is -1, must be at least 0| ");
  const int32_t ids[] = {1};
  EXPECT_EQ(k2rt_sequence_add(session, ids, 0, 1, nullptr, nullptr, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_EQ(said(status), "invalid argument| n| must be at least 1| ");
  EXPECT_EQ(k2rt_sequence_add(nullptr, ids, 1, 1, nullptr, nullptr, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_EQ(said(status), "invalid argument| session| is null| ");
  EXPECT_EQ(add({1}, 1, greedyAlways), 0) << "what was refused has no number";
}

TEST_F(UserApi, SequenceReadRefuses) {
  FakeBundle fake;
  open(fake);
  add({1}, 1, greedyAlways);
  int32_t ids[1] = {-1};
  int64_t count = -1;
  for (const int64_t sequence : {-1, 1}) {
    EXPECT_EQ(k2rt_sequence_read(session, sequence, ids, 1, &count, nullptr, &status), K2RT_INVALID_ARGUMENT);
    EXPECT_EQ(said(status), "invalid argument| sequence| is " + std::to_string(sequence) + ", 1 were added| ");
  }
  EXPECT_EQ(k2rt_sequence_read(session, 0, nullptr, 1, &count, nullptr, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_EQ(said(status), "invalid argument| ids| is null| ");
  EXPECT_EQ(k2rt_sequence_read(nullptr, 0, ids, 1, &count, nullptr, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_EQ(said(status), "invalid argument| session| is null| ");
  EXPECT_EQ(count, -1);
}

TEST_F(UserApi, StepRefusesNoSession) {
  EXPECT_EQ(k2rt_step(nullptr, nullptr, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_EQ(said(status), "invalid argument| session| is null| ");
}

TEST_F(UserApi, StepNamesTheKernelThatFailed) {
  FakeBundle fake;
  open(fake, {1, 0, nullptr, nullptr, 0});
  add({96, 96}, 1, greedyAlways); // what the fake program refuses
  EXPECT_EQ(k2rt_step(session, nullptr, &status), K2RT_KERNEL_FAILED);
  EXPECT_EQ(said(status), "kernel failed| kernel append| failed with 7 on worker 0| ");
}

TEST_F(UserApi, AnInterruptEndsTheStep) {
  FakeBundle fake;
  open(fake);
  add({1}, 5, greedyAlways);
  k2rt_interrupt(session);
  EXPECT_EQ(k2rt_step(session, nullptr, &status), K2RT_INTERRUPTED);
  EXPECT_STREQ(k2rt_code_name(status.code), "interrupted");
}

TEST_F(UserApi, ASuccessSaysSo) {
  FakeBundle fake;
  status.code = K2RT_SYSTEM;
  open(fake);
  EXPECT_EQ(said(status), "ok| | | ");
}

TEST_F(UserApi, CodesHaveNames) {
  const char *const names[] = {
      "ok",          "invalid argument", "invalid bundle", "unsupported", "out of memory", "kernel failed",
      "interrupted", "system",           "peer failed",    "deadline",    "device failed", "unknown"};
  for (int code = 0; code < 12; ++code)
    EXPECT_STREQ(k2rt_code_name(static_cast<k2rt_code>(code)), names[code]);
}

TEST_F(UserApi, LongTextsAreCut) {
  EXPECT_EQ(k2rt_open(std::string(1000, 'x').c_str(), &bundle, &status), K2RT_INVALID_BUNDLE);
  EXPECT_EQ(std::strlen(status.place), sizeof status.place - 1);
}
