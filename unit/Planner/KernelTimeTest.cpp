//===- KernelTimeTest.cpp - Seconds of a compiled program's step --------------===//
#include "k2c/Planner/KernelTime.h"
#include "TestKernels.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

KernelRates rates(const char *kind, DType x, DType w, int64_t depth, std::vector<int64_t> rows,
                  std::vector<double> near, std::vector<double> memory = {}) {
  return {kind, x, w, depth, std::move(rows), std::move(near), std::move(memory)};
}

/// Two workers: a launch of 1 us, 100 GB/s up to 1 MiB, 10 GB/s from 64 MiB on; 1 GFLOP/s for one row, 4 for four.
TeamRates team() {
  TeamRates team;
  team.workers = 2;
  team.launch = Seconds(1e-6);
  team.read = {{mebibytes(1), Bandwidth(100e9)}, {mebibytes(64), Bandwidth(10e9)}};
  team.kernels = {
      rates("linear", DType::F32, DType::BF16, 512, {1, 4}, {1e9, 4e9}, {0.5e9, 2e9}),
      rates("linear", DType::F32, DType::BF16, 1024, {1, 4}, {1e9, 4e9}, {0.5e9, 2e9}),
      rates("gqa", DType::F32, DType::F32, 256, {1}, {1e9}),
      rates("add", DType::F32, DType::F32, 768, {1, 64}, {1e9, 1e9}),
      rates("sample", DType::F32, DType::F32, 4000, {1}, {4e9}),
  };
  return team;
}

ProgramKernel linear(int64_t n, int64_t k) {
  ProgramKernel kernel{{"linear", test::linearOf(n, k)}, {}, 1};
  kernel.tile.mr = 4;
  kernel.tile.rowsPerItem = 16;
  return kernel;
}

/// Two panels of each of `count` experts; a token goes to two.
ProgramKernel experts(int64_t count) {
  ProgramKernel kernel = linear(64, 512);
  auto &d = std::get<LinearDesc>(kernel.desc.body);
  d.grouped = true;
  d.slotsPerToken = 2;
  d.w.count = count;
  kernel.tile.rowsPerItem = 0;
  return kernel;
}

StepOptions step(int64_t sequences, int64_t tokens, int64_t context) {
  StepOptions options;
  options.shape = {sequences, tokens, context};
  options.outputRows = sequences;
  options.vocab = 1000;
  return options;
}

double secondsOf(const ProgramKernel &kernel, const StepOptions &options, const TeamRates &rates = team(),
                 const std::vector<LinkRates> &links = {}) {
  Expected<StepTime> time = timeStep({kernel}, rates, links, options);
  EXPECT_TRUE(time) << (time ? "" : time.error().text());
  return time ? time->kernels[0].seconds.value : 0;
}

} // namespace

// 64 columns: two panels, one a worker. 2 x 32 x 512 FLOP of a row at 1 GFLOP/s, weights near.
TEST(KernelTime, AWorkerTakesItsPanelsAtTheRateOfItsRows) {
  EXPECT_NEAR(secondsOf(linear(64, 512), step(1, 1, 0)), 1e-6 + 32768e-9, 1e-12);
  EXPECT_NEAR(secondsOf(linear(64, 512), step(4, 1, 0)), 1e-6 + 32768e-9, 1e-12) << "four rows at four times the rate";
  EXPECT_NEAR(secondsOf(linear(64, 512), step(16, 1, 0)), 1e-6 + 4 * 32768e-9, 1e-12) << "four tiles";
}

TEST(KernelTime, TheBusiestWorkerDecides) {
  double two = secondsOf(linear(64, 512), step(1, 1, 0)), three = secondsOf(linear(96, 512), step(1, 1, 0));
  EXPECT_NEAR(three - 1e-6, 2 * (two - 1e-6), 1e-12);
}

TEST(KernelTime, IsInterpolatedInDepthAndProportionalBeyond) {
  double half = secondsOf(linear(64, 512), step(1, 1, 0)), whole = secondsOf(linear(64, 1024), step(1, 1, 0));
  EXPECT_NEAR(secondsOf(linear(64, 768), step(1, 1, 0)), (half + whole) / 2, 1e-12);
  EXPECT_NEAR(secondsOf(linear(64, 4096), step(1, 1, 0)) - 1e-6, 4 * (whole - 1e-6), 1e-12);
}

// 65,536 x 512 bf16 are 64 MiB: all of it comes from memory, at half the rate.
TEST(KernelTime, WeightsBeyondTheCachesComeFromMemory) {
  double near = 32768e-9 * 1024;
  EXPECT_NEAR(secondsOf(linear(65536, 512), step(1, 1, 0)), 1e-6 + 2 * near, 1e-9);
}

TEST(KernelTime, OnlyTheFirstTileOfRowsWaitsForMemory) {
  double near = 32768e-9 * 1024;
  EXPECT_NEAR(secondsOf(linear(65536, 512), step(4, 1, 0)), 1e-6 + 2 * near, 1e-9);
  EXPECT_NEAR(secondsOf(linear(65536, 512), step(16, 1, 0)), 1e-6 + 5 * near, 1e-9);
}

TEST(KernelTime, ExpertsThatNobodyChoosesCostNothing) {
  // One token meets 2 of 8 experts; each worker has one of their two panels.
  EXPECT_NEAR(secondsOf(experts(8), step(1, 1, 0)), 1e-6 + 2 * 32768e-9, 1e-10);
}

TEST(KernelTime, ATokenThatGoesToAllExpertsVisitsEachOnce) {
  EXPECT_NEAR(secondsOf(experts(2), step(1, 4, 0)), 1e-6 + 2 * 32768e-9, 1e-10);
}

TEST(KernelTime, TokensOfAPromptGoToTheExpertsThatItHits) {
  // Four tokens that agree on two experts are four rows of each: one tile of each panel.
  StepOptions agreed = step(1, 4, 0), uniform = agreed;
  agreed.expertsHit = 2;
  EXPECT_NEAR(secondsOf(experts(8), agreed), 1e-6 + 2 * 32768e-9, 1e-10);
  EXPECT_GT(secondsOf(experts(8), uniform), 2 * secondsOf(experts(8), agreed));
}

TEST(KernelTime, RanksThatShareExpertsComputeTheRowsOfAll) {
  StepOptions alone = step(1, 1, 0), shared = alone;
  shared.etp = 2;
  EXPECT_DOUBLE_EQ(secondsOf(experts(8), shared), secondsOf(experts(8), step(2, 1, 0)));
  EXPECT_GT(secondsOf(experts(8), shared), secondsOf(experts(8), alone));
  EXPECT_DOUBLE_EQ(secondsOf(linear(64, 512), shared), secondsOf(linear(64, 512), alone));
}

TEST(KernelTime, AttentionGrowsWithTheKeysAndIsNoFasterThanReadingThem) {
  ProgramKernel attention;
  GqaAttentionDesc d;
  d.shape.heads = d.kvHeads = 2;
  d.keyDim = d.valueDim = 128;
  attention.desc = {"attention", d};
  attention.tile.rowsPerItem = 16;
  // A head a worker, 2 x 256 FLOP a key at 1 GFLOP/s.
  EXPECT_NEAR(secondsOf(attention, step(1, 1, 99)), 1e-6 + 100 * 512e-9, 1e-12);
  TeamRates fast = team();
  for (KernelRates &kernel : fast.kernels)
    kernel.near.assign(kernel.near.size(), 1e15);
  // 100 keys of 2 x 256 f32 at 100 GB/s.
  EXPECT_NEAR(secondsOf(attention, step(1, 1, 99), fast), 1e-6 + 100 * 2048 / 100e9, 1e-12);
}

// Two heads of keys, five tokens: five of the ten (head, token) for each of two workers, together where they are of one
// sequence; of twelve workers, one each for ten.
TEST(KernelTime, TokensOfAttentionAreSharedOut) {
  ProgramKernel attention;
  GqaAttentionDesc d;
  d.shape.heads = d.kvHeads = 2;
  d.keyDim = d.valueDim = 128;
  attention.desc = {"attention", d};
  attention.tile.rowsPerItem = 4;
  TeamRates many = team();
  many.workers = 12;
  EXPECT_NEAR(secondsOf(attention, step(5, 1, 99)), 1e-6 + 5 * 100 * 512e-9, 1e-12);
  EXPECT_NEAR(secondsOf(attention, step(5, 1, 99), many), 1e-6 + 100 * 512e-9, 1e-12);
  EXPECT_NEAR(secondsOf(attention, step(1, 5, 97), many), 1e-6 + 100 * 512e-9, 1e-12);
}

// One head of 4,000 keys is four partials of 1,024, the last one shorter: two workers take two each. The second launch
// adds up four rows of 128 f32 at 1 GB/s, three of them moved for each.
TEST(KernelTime, PartialsOfALongSequenceAreSharedOut) {
  ProgramKernel attention;
  GqaAttentionDesc d;
  d.shape.heads = d.kvHeads = 1;
  d.keyDim = d.valueDim = 128;
  attention.desc = {"attention", d};
  attention.tile.rowsPerItem = 16;
  double whole = 4000 * 512e-9;
  EXPECT_NEAR(secondsOf(attention, step(1, 1, 3999)), 1e-6 + whole, 1e-12);
  attention.tile.splitTokens = 1;
  EXPECT_NEAR(secondsOf(attention, step(1, 1, 3999)), 2 * 1e-6 + whole / 2 + 4 * 3 * 512e-9, 1e-9);
  EXPECT_NEAR(secondsOf(attention, step(1, 1, 2047)), 2 * 1e-6 + 2048 * 512e-9, 1e-12) << "two partials";
  EXPECT_NEAR(secondsOf(attention, step(2, 1, 3999)), 2 * 1e-6 + whole, 1e-12) << "a sequence a worker";
}

TEST(KernelTime, RowsTakeTheirBytes) {
  Rows rows = {RowSpace::Token, 64, 64, DType::F32};
  RowwiseDesc d{{rows, rows}, {}, rows};
  ProgramKernel add{{"add", d}, {}, 3};
  EXPECT_NEAR(secondsOf(add, step(1, 8, 0)), 3 * (1e-6 + 4 * 768e-9), 1e-12) << "four rows a worker, three launches";
}

TEST(KernelTime, OpenLaunchesHaveNoBarrier) {
  Rows rows = {RowSpace::Token, 64, 64, DType::F32};
  RowwiseDesc d{{rows, rows}, {}, rows};
  ProgramKernel add{{"add", d}, {}, 3, 2};
  EXPECT_NEAR(secondsOf(add, step(1, 8, 0)), 1e-6 + 3 * 4 * 768e-9, 1e-12);
}

/// 1 us for a line and 1 GB/s beyond, both ways.
std::vector<LinkRates> links(int64_t count, double rate = 1e9) {
  std::vector<ReadRate> sizes = {{Bytes(64), Bandwidth(64 / 1e-6)},
                                 {Bytes(64 + 1000000), Bandwidth(1000064 / (1e-6 + 1e6 / rate))}};
  return {{"cache", count, Seconds(1e-6), sizes, sizes}};
}

// Rows of 512 f32, of which the other worker wrote 1024 bytes; 32 of 64 columns are written, half over lines of the
// other worker: 64 bytes.
TEST(KernelTime, AWorkerReadsWhatTheOthersWrote) {
  double alone = secondsOf(linear(64, 512), step(1, 1, 0));
  double both = secondsOf(linear(64, 512), step(1, 1, 0), team(), links(2));
  // Its own caches would have given them at 50 GB/s. The two first lines come together.
  EXPECT_NEAR(both - alone, 1e-6 + 960e-9 - 1024 / 50e9, 1e-11);
}

TEST(KernelTime, RowsThatStayWithAWorkerAreNotExchanged) {
  TeamRates one = team();
  one.workers = 1;
  EXPECT_EQ(secondsOf(linear(64, 512), step(1, 1, 0), one, links(2)), secondsOf(linear(64, 512), step(1, 1, 0), one));
}

// Two caches of one processor each cost what one cache of two does; four processors' team has three quarters abroad.
TEST(KernelTime, WorkersFillTheInnermostUnitsFirst) {
  std::vector<LinkRates> tiers = links(2);
  tiers.push_back(links(2, 0.5e9).front());
  tiers.back().name = "node";
  EXPECT_EQ(secondsOf(linear(64, 512), step(1, 1, 0), team(), tiers),
            secondsOf(linear(64, 512), step(1, 1, 0), team(), links(2)));
  TeamRates four = team();
  four.workers = 4;
  // 4 panels, one a worker: of 2048 bytes a quarter over the inner tier, half over the outer one.
  double inner = 1e-6 + (512 - 64) * 1e-9 - 512 / 25e9, outer = 1e-6 + (1024 - 64) * 2e-9 - 1024 / 25e9;
  EXPECT_NEAR(secondsOf(linear(128, 512), step(1, 1, 0), four, tiers) -
                  secondsOf(linear(128, 512), step(1, 1, 0), four),
              inner + outer, 1e-10);
}

TEST(KernelTime, MoreRowsNeverTakeLess) {
  double before = 0;
  for (int64_t rows = 1; rows <= 64; ++rows) {
    double seconds = secondsOf(linear(64, 700), step(rows, 1, 0));
    EXPECT_GE(seconds, before * (1 - 1e-9)) << rows;
    before = seconds;
  }
}

TEST(KernelTime, AStepIsTheSumOfItsKernelsAndTheSampler) {
  Expected<StepTime> time = timeStep({linear(64, 512), linear(64, 512)}, team(), {}, step(1, 1, 0));
  ASSERT_TRUE(time);
  ASSERT_EQ(time->kernels.size(), 3u);
  EXPECT_EQ(time->kernels.back().name, "sample");
  EXPECT_NEAR(time->kernels.back().seconds.value, 2e-6 + 1e-6, 1e-12) << "the gate twice, 4000 bytes at 4 GB/s";
  EXPECT_NEAR(time->seconds.value, 2 * (1e-6 + 32768e-9) + 3e-6, 1e-12);
}

TEST(KernelTime, NamesTheRateThatIsMissing) {
  ProgramKernel bf16 = linear(64, 512);
  std::get<LinearDesc>(bf16.desc.body).x.type = DType::BF16;
  Expected<StepTime> time = timeStep({bf16}, team(), {}, step(1, 1, 0));
  ASSERT_FALSE(time);
  EXPECT_EQ(time.error().text(),
            "measured: has no rate of linear of bf16 and bf16 with 2 workers; run k2c calibrate without --quick");
}
