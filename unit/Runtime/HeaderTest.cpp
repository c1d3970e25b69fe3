// The public headers as seen from C++ and, through c_compliance.c, from C11.
#include "k2rt/k2rt.h"
#include "k2rt/program.h"
#include "k2rt/reserve.h"
#include <gtest/gtest.h>

extern "C" int k2rt_c_compliance(void);

TEST(Headers, CompileAsC11) { EXPECT_EQ(k2rt_c_compliance(), 0); }

TEST(Headers, ReserveGrowsWithEveryLimit) {
  const k2rt_limits base = {64, 4, 256, 1, 1000, 0, 3};
  k2rt_limits larger = base;
  larger.tokenizer_bytes = 1 << 20;
  EXPECT_GT(k2rt_reserve_bytes(&larger), k2rt_reserve_bytes(&base));
  for (int64_t k2rt_limits::*field : {&k2rt_limits::step_tokens, &k2rt_limits::max_sequences, &k2rt_limits::max_context,
                                      &k2rt_limits::cache_groups, &k2rt_limits::vocab, &k2rt_limits::experts}) {
    larger = base;
    larger.*field *= 2;
    EXPECT_GT(k2rt_reserve_bytes(&larger), k2rt_reserve_bytes(&base));
  }
}

// 8 KiB of stack each; of a vocabulary of 1,000, 8 bytes an entry for those that sample: at most 4, or a sequence each.
TEST(Headers, WorkersHaveStacksAndSamplers) {
  k2rt_limits limits = {64, 6, 256, 1, 1000, 0, 0};
  EXPECT_EQ(k2rt_worker_bytes(&limits, 1), 8192 + 8000);
  EXPECT_EQ(k2rt_worker_bytes(&limits, 3), 3 * (8192 + 8000));
  EXPECT_EQ(k2rt_worker_bytes(&limits, 96), 96 * 8192 + 4 * 8000);
  limits.max_sequences = 2;
  EXPECT_EQ(k2rt_worker_bytes(&limits, 96), 96 * 8192 + 2 * 8000);
}
