// k2rt.h: the same run through the C interface, and its refusals.
#include "fake/FakeBundle.h"
#include "k2rt/k2rt.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace k2rt;

TEST(UserApi, GeneratesTwoSequences) {
  FakeBundle fake;
  k2rt_status status;
  k2rt_bundle *bundle = nullptr;
  ASSERT_EQ(k2rt_open(fake.folder.c_str(), &bundle, &status), K2RT_OK) << status.message;
  k2rt_session *session = nullptr;
  const k2rt_session_options options = {2, 0, nullptr};
  ASSERT_EQ(k2rt_session_create(bundle, &options, &session, &status), K2RT_OK) << status.message;
  const int32_t a[] = {1, 2, 3}, b[] = {4, 5};
  int64_t first = -1, second = -1, active = 2;
  k2rt_sampling greedyAlways = {0, 1, 0, 0, 0, 1};
  ASSERT_EQ(k2rt_sequence_add(session, a, 3, 5, &greedyAlways, &first, &status), K2RT_OK);
  ASSERT_EQ(k2rt_sequence_add(session, b, 2, 9, &greedyAlways, &second, &status), K2RT_OK);
  while (active > 0)
    ASSERT_EQ(k2rt_step(session, &active, &status), K2RT_OK) << status.message;
  int32_t ids[16], finished = 0;
  int64_t count = 0;
  ASSERT_EQ(k2rt_sequence_read(session, second, ids, 16, &count, &finished, &status), K2RT_OK);
  EXPECT_EQ(std::vector<int32_t>(ids, ids + count), fakeContinuation({4, 5}, 9, 1));
  EXPECT_EQ(finished, 1);
  k2rt_session_destroy(session);
  k2rt_close(bundle);
}

TEST(UserApi, RefusalsCarryPlaceAndCode) {
  k2rt_status status;
  k2rt_bundle *bundle = nullptr;
  EXPECT_EQ(k2rt_open("/nonexistent", &bundle, &status), K2RT_INVALID_BUNDLE);
  EXPECT_STREQ(status.place, "/nonexistent");
  EXPECT_EQ(k2rt_open(nullptr, &bundle, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_EQ(k2rt_open("/nonexistent", &bundle, nullptr), K2RT_INVALID_BUNDLE);
  EXPECT_EQ(k2rt_step(nullptr, nullptr, &status), K2RT_INVALID_ARGUMENT);
  EXPECT_STREQ(k2rt_code_name(K2RT_OUT_OF_MEMORY), "out of memory");
  k2rt_session_destroy(nullptr);
  k2rt_close(nullptr);
}

TEST(UserApi, LongTextsAreCut) {
  k2rt_status status;
  k2rt_bundle *bundle = nullptr;
  EXPECT_EQ(k2rt_open(std::string(1000, 'x').c_str(), &bundle, &status), K2RT_INVALID_BUNDLE);
  EXPECT_EQ(std::strlen(status.place), sizeof status.place - 1);
}
