// The sampler: which tokens can come, how often they come, and what a draw
// depends on.
#include "k2rt/Sampler.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

k2rt_ir_sampling parameters(float temperature, int32_t topK = 0, float topP = 1, float minP = 0) {
  return {temperature,   topP, minP, topK, /*seed=*/7, /*choice=*/0,
          /*position=*/0};
}

/// How often each token comes at positions 0 .. draws-1.
std::vector<int> histogram(const std::vector<float> &logits, k2rt_ir_sampling p, int draws) {
  Sampler sampler(int64_t(logits.size()));
  std::vector<int> counts(logits.size(), 0);
  for (p.position = 0; p.position < draws; ++p.position)
    ++counts[sampler.sample(logits.data(), p)];
  return counts;
}

/// Pearson's statistic of counts against the softmax over `kept` tokens.
double chiSquare(const std::vector<int> &counts, const std::vector<float> &logits, const std::vector<int> &kept,
                 double temperature) {
  double total = 0, draws = 0, statistic = 0;
  for (int id : kept)
    total += std::exp(logits[id] / temperature);
  for (int count : counts)
    draws += count;
  for (int id : kept) {
    double expected = draws * std::exp(logits[id] / temperature) / total;
    statistic += (counts[id] - expected) * (counts[id] - expected) / expected;
  }
  return statistic;
}

const std::vector<float> logits = {1.0f, 2.5f, -0.5f, 0.0f, 2.0f, 1.5f};

TEST(Greedy, LowestIdOnTies) {
  const float ties[] = {1, 3, 2, 3, 3};
  EXPECT_EQ(greedy(ties, 5), 1);
}

TEST(Greedy, NeverNaN) {
  const float some[] = {NAN, -INFINITY, NAN, -2, NAN};
  EXPECT_EQ(greedy(some, 5), 3);
  const float lowest[] = {NAN, -INFINITY, -INFINITY};
  EXPECT_EQ(greedy(lowest, 3), 1);
  const float none[] = {NAN, NAN};
  EXPECT_EQ(greedy(none, 2), -1);
}

// The known answers published with Random123 for philox4x32-10.
TEST(Philox, KnownAnswers) {
  PhiloxBlock zero = philox(0, 0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[1], 0xe169c58du);
  EXPECT_EQ(zero.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  PhiloxBlock ones = philox(~uint64_t(0), ~uint64_t(0), ~uint64_t(0));
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[1], 0x41c83b0eu);
  EXPECT_EQ(ones.word[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
  // Counter and key are digits of pi, no two words alike.
  PhiloxBlock digits = philox(0x85a308d3243f6a88u, 0x0370734413198a2eu, 0x299f31d0a4093822u);
  EXPECT_EQ(digits.word[0], 0xd16cfe09u);
  EXPECT_EQ(digits.word[1], 0x94fdccebu);
  EXPECT_EQ(digits.word[2], 0x5001e420u);
  EXPECT_EQ(digits.word[3], 0x24126ea1u);
}

// Computed by test/Harness/sampler.py, which shares no code with the runtime: where each part of the key has its place.
TEST(Philox, NumbersOfAKey) {
  EXPECT_EQ(uniform(0x0123456789abcdefu, 0x1122334455667788, 0x7766554433221100), 0x1.aff2275645e72p-2);
  EXPECT_EQ(uniform(7, 1, 3), 0x1.035297dde506ap-2);
  EXPECT_EQ(uniform(7, 0, 3), 0x1.8f9058590021ap-2);
  EXPECT_EQ(uniform(7, 3, 1), 0x1.2cbefd9ceb746p-1);
}

TEST(Philox, UniformIsUniform) {
  double sum = 0;
  std::vector<int> bins(16, 0);
  for (int i = 0; i < 16000; ++i) {
    double u = uniform(3, i % 7, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    ++bins[int(u * 16)];
  }
  EXPECT_NEAR(sum / 16000, 0.5, 0.01);
  double statistic = 0;
  for (int count : bins)
    statistic += (count - 1000.0) * (count - 1000.0) / 1000;
  EXPECT_LT(statistic, 37.7); // 0.1 % of chi-square with 15 degrees of freedom
}

/// 100,000 draws of which one part of the key differs: 0 seed, 1 choice, 2 position.
std::vector<int> histogramOf(int part, k2rt_ir_sampling p) {
  Sampler sampler(int64_t(logits.size()));
  std::vector<int> counts(logits.size(), 0);
  for (int i = 0; i < 100000; ++i) {
    p.seed = part == 0 ? uint64_t(i) : 7;
    p.choice = part == 1 ? i : 3;
    p.position = part == 2 ? i : 50;
    ++counts[sampler.sample(logits.data(), p)];
  }
  return counts;
}

// Shares at temperature 1, by id: 0.096, 0.429, 0.021, 0.035, 0.260, 0.158; at 2 (weights beside the first): 0.472, 1,
// 0.223, 0.287, 0.779, 0.607. `kept` is what each filter leaves of them.
TEST(Sampler, FollowsTheExactDistributionUnderEachFilter) {
  struct Case {
    const char *what;
    k2rt_ir_sampling parameters;
    std::vector<int> kept;
  };
  const Case cases[] = {{"temperature 0.7", parameters(0.7f), {0, 1, 2, 3, 4, 5}},
                        {"temperature 1", parameters(1), {0, 1, 2, 3, 4, 5}},
                        {"temperature 2", parameters(2), {0, 1, 2, 3, 4, 5}},
                        {"top-k 3", parameters(1, 3), {1, 4, 5}},
                        {"top-k 5", parameters(1, 5), {0, 1, 3, 4, 5}},
                        {"top-p 0.9", parameters(1, 0, 0.9f), {0, 1, 4, 5}},
                        {"min-p 0.3", parameters(1, 0, 1, 0.3f), {1, 4, 5}},
                        {"top-p 0.8 of top-k 3", parameters(1, 3, 0.8f), {1, 4}},
                        {"all", parameters(2, 5, 0.9f, 0.5f), {1, 4, 5}}};
  // 0.1 % points of chi-square, by degrees of freedom.
  constexpr double most[] = {0, 10.83, 13.82, 16.27, 18.47, 20.52};
  for (const Case &test : cases)
    for (int part = 0; part < 3; ++part) {
      const std::vector<int> counts = histogramOf(part, test.parameters);
      int drawn = 0;
      for (int id : test.kept)
        drawn += counts[id];
      EXPECT_EQ(drawn, 100000) << test.what << ": a token was drawn that the filters drop";
      EXPECT_LT(chiSquare(counts, logits, test.kept, test.parameters.temperature), most[test.kept.size() - 1])
          << test.what << ", part " << part << " of the key";
    }
}

TEST(Sampler, TopKBreaksTiesByLowestId) {
  auto counts = histogram({1, 1, 1, 1, 1}, parameters(1, 2), 500);
  EXPECT_GT(counts[0], 0);
  EXPECT_GT(counts[1], 0);
  EXPECT_EQ(counts[2] + counts[3] + counts[4], 0);
}

TEST(Sampler, TopKOfOneIsGreedy) { EXPECT_EQ(histogram(logits, parameters(5, 1), 200)[1], 200); }

// Shares 0.4, 0.3, 0.2, 0.1: the shortest prefix that reaches p.
TEST(Sampler, TopPKeepsTheShortestPrefix) {
  std::vector<float> shares = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};
  auto support = [&](float p) {
    std::vector<int> ids;
    auto counts = histogram(shares, parameters(1, 0, p), 2000);
    for (int id = 0; id < 4; ++id)
      if (counts[id])
        ids.push_back(id);
    return ids;
  };
  EXPECT_EQ(support(0.39f), (std::vector<int>{1}));
  EXPECT_EQ(support(0.69f), (std::vector<int>{1, 3}));
  EXPECT_EQ(support(0.71f), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(support(1.0f), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(support(0.0f), (std::vector<int>{1}));
}

TEST(Sampler, TopPReachesBeyondTheFirstSortedPart) {
  std::vector<float> flat(1000, 0.0f);
  auto counts = histogram(flat, parameters(1, 0, 0.5f), 20000);
  for (int id = 0; id < 1000; ++id)
    EXPECT_EQ(counts[id] > 0, id < 500) << id;
}

TEST(Sampler, TopPCountsWithinTopK) {
  // Of the two kept, the first has 0.622 of the share.
  auto counts = histogram(logits, parameters(1, 2, 0.6f), 300);
  EXPECT_EQ(counts[1], 300);
}

TEST(Sampler, MinPIsRelativeToTheMostLikely) {
  // exp(-1) = 0.368: token 5 stays at 0.36 and goes at 0.37.
  EXPECT_GT(histogram(logits, parameters(1, 0, 1, 0.36f), 500)[5], 0);
  EXPECT_EQ(histogram(logits, parameters(1, 0, 1, 0.37f), 500)[5], 0);
  EXPECT_EQ(histogram(logits, parameters(1, 0, 1, 2.0f), 500)[1], 500);
  EXPECT_GT(histogram({0, 0}, parameters(1, 0, 1, 1.0f), 500)[1], 0) << "as likely as min-p is likely enough";
}

TEST(Sampler, NaNAndMinusInfinityNeverCome) {
  auto counts = histogram({NAN, 0, -INFINITY, 1, NAN}, parameters(1), 1000);
  EXPECT_EQ(counts[1] + counts[3], 1000);
  counts = histogram({NAN, 0, -INFINITY, 1, NAN}, parameters(1, 4, 0.99f), 1000);
  EXPECT_EQ(counts[1] + counts[3], 1000);
}

TEST(Sampler, AllNaNIsNoToken) {
  const float none[] = {NAN, NAN, NAN};
  EXPECT_EQ(Sampler(3).sample(none, parameters(1)), -1);
}

TEST(Sampler, InfiniteLogitWins) {
  const float one[] = {0, INFINITY, 5};
  EXPECT_EQ(Sampler(3).sample(one, parameters(1)), 1);
}

TEST(Sampler, TemperatureZeroIsGreedyAndTinyIsNearlySo) {
  EXPECT_EQ(histogram(logits, parameters(0), 50)[1], 50);
  EXPECT_EQ(histogram(logits, parameters(1e-30f), 50)[1], 50);
}

TEST(Sampler, DependsOnKeyAndLogitsAlone) {
  std::vector<float> wide(5000);
  for (size_t i = 0; i < wide.size(); ++i)
    wide[i] = float((i * 2654435761u) % 1000) / 250;
  Sampler used(5000);
  std::vector<int32_t> first;
  for (int position = 0; position < 64; ++position) {
    k2rt_ir_sampling p = parameters(0.9f, 0, 0.8f);
    p.position = position;
    first.push_back(used.sample(wide.data(), p));
  }
  // Backwards, with another sampler each time, after unrelated draws.
  for (int position = 63; position >= 0; --position) {
    Sampler fresh(5000);
    k2rt_ir_sampling other = parameters(2, 50);
    other.seed = 99;
    fresh.sample(wide.data(), other);
    k2rt_ir_sampling p = parameters(0.9f, 0, 0.8f);
    p.position = position;
    EXPECT_EQ(fresh.sample(wide.data(), p), first[position]);
  }
}

TEST(Sampler, EachPartOfTheKeyCounts) {
  auto draws = [](k2rt_ir_sampling p) {
    std::vector<float> flat(1 << 16, 0.0f);
    return Sampler(1 << 16).sample(flat.data(), p);
  };
  k2rt_ir_sampling base = parameters(1), other = base;
  other.seed = base.seed + 1;
  EXPECT_NE(draws(base), draws(other));
  other = base;
  other.choice = 1;
  EXPECT_NE(draws(base), draws(other));
  other = base;
  other.position = 1;
  EXPECT_NE(draws(base), draws(other));
}

// Fixed draws: a change of these changes what every seed generates.
TEST(Sampler, Bits) {
  std::vector<int32_t> drawn;
  Sampler sampler(int64_t(logits.size()));
  for (int position = 0; position < 12; ++position) {
    k2rt_ir_sampling p = parameters(1.3f, 5, 0.95f);
    p.position = position;
    drawn.push_back(sampler.sample(logits.data(), p));
  }
  EXPECT_EQ(drawn, (std::vector<int32_t>{3, 4, 1, 4, 1, 1, 5, 1, 1, 4, 5, 5}));
}

TEST(LogProbabilities, AreTheLogOfTheSoftmax) {
  double total = 0;
  for (float x : logits)
    total += std::exp(double(x));
  auto entries = logProbabilities(logits.data(), 6, /*chosen=*/2, /*top=*/3);
  ASSERT_EQ(entries.size(), 4u);
  const int ids[] = {2, 1, 4, 5};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(entries[i].id, ids[i]);
    EXPECT_NEAR(entries[i].value, logits[ids[i]] - std::log(total), 1e-6);
  }
}

TEST(LogProbabilities, OfImpossibleTokens) {
  const float some[] = {NAN, 0, -INFINITY};
  auto entries = logProbabilities(some, 3, 0, 5);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].value, -INFINITY);
  EXPECT_EQ(entries[1].value, 0.0f);
  EXPECT_EQ(entries[2].value, -INFINITY);
}

} // namespace
