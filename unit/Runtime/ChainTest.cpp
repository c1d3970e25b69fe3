// Steps on a device that takes one more before the one that runs is collected: which are submitted so, what they name
// of each other's samples, and what becomes of sequences that end meanwhile.
#include "fake/FakeDevice.h"
#include <algorithm>
#include <map>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// Steps on a device that chains, and what comes of them.
struct Chained {
  Chained(Engine &engine, bool wantsLogits = false) {
    StepEvents events;
    events.token = [this](const Sequence &sequence, int32_t id, bool) {
      tokens[sequence.number].push_back(id);
      return tokens[sequence.number].size() != stopAt;
    };
    events.finished = [this](const Sequence &sequence) { finished.push_back(sequence.number); };
    if (wantsLogits)
      events.logits = [](const Sequence &, int64_t, const float *) {};
    scheduler = std::make_unique<Scheduler>(engine, std::move(events));
  }
  void step() {
    Expected<bool> more = scheduler->step();
    ASSERT_TRUE(more) << more.error().text();
  }

  std::map<int64_t, std::vector<int32_t>> tokens;
  std::vector<int64_t> finished;
  size_t stopAt = 0; ///< tokens at which the caller ends a sequence; 0: it does not
  std::unique_ptr<Scheduler> scheduler;
};

class ChainOnFake : public EngineOnFake {};

} // namespace

// The second step is submitted before the first is collected, and names its samples; the third one those of the second.
TEST_F(ChainOnFake, AStepIsSubmittedBehindOneThatIsUnderWay) {
  script.chains = true;
  script.sample = 41;
  Expected<std::unique_ptr<Engine>> engine = create();
  ASSERT_TRUE(engine) << engine.error().text();
  Chained chained(**engine);
  for (int64_t tokens : {3, 1})
    ASSERT_TRUE(chained.scheduler->add(reading({5, 6}, tokens)));
  script.calls.clear();
  chained.step();
  EXPECT_EQ(script.calls, (std::vector<std::string>{"upload", "run"}));
  EXPECT_EQ(script.ids, (std::vector<int32_t>{5, 6, 5, 6}));
  chained.step();
  EXPECT_EQ(script.ids, std::vector<int32_t>{-1}) << "the other sequence has its token, which nobody reads";
  EXPECT_EQ(script.earlierRows, 2);
  EXPECT_EQ(chained.tokens[0], std::vector<int32_t>{41});
  EXPECT_EQ(chained.finished, std::vector<int64_t>{1});
  ASSERT_TRUE(chained.scheduler->add(reading({7, 8, 9}, 1)));
  chained.step();
  EXPECT_EQ(script.ids, (std::vector<int32_t>{-1, 7, 8, 9})) << "what is added joins";
  EXPECT_EQ(script.earlierRows, 1);
  EXPECT_TRUE(chained.scheduler->drain());
  EXPECT_EQ(script.calls, (std::vector<std::string>{"upload", "run", "upload", "run", "collect", "results", "upload",
                                                    "run", "collect", "results", "collect", "results"}));
  EXPECT_EQ(chained.tokens[0], (std::vector<int32_t>{41, 41, 41}));
  EXPECT_EQ(chained.finished, (std::vector<int64_t>{1, 0, 2}));
}

// That a sequence ends is known when a step behind it is under way: nothing of that is delivered, and its slot is free
// when that has ended, too.
TEST_F(ChainOnFake, AStepTooManyIsThrownAway) {
  script.chains = true;
  script.sample = 41;
  Expected<std::unique_ptr<Engine>> engine = create();
  ASSERT_TRUE(engine) << engine.error().text();
  Chained chained(**engine);
  chained.stopAt = 2;
  const int64_t sequences = bundle->manifest.limits.max_sequences;
  for (int64_t i = 0; i <= sequences; ++i) // one waits for a slot
    ASSERT_TRUE(chained.scheduler->add(reading({5, 6}, 9)));
  script.calls.clear();
  EXPECT_TRUE(chained.scheduler->drain());
  for (int64_t i = 0; i <= sequences; ++i)
    EXPECT_EQ(chained.tokens[i], (std::vector<int32_t>{41, 41})) << i;
  EXPECT_EQ(static_cast<int64_t>(chained.finished.size()), sequences + 1);
  EXPECT_EQ(std::count(script.calls.begin(), script.calls.end(), "run"), 6) << "two and one too many, twice";
  for (const PagePool &pages : (*engine)->pages(0))
    EXPECT_EQ(pages.available(), bundle->manifest.groups[0].pages);
}

// Where the host has to see a step before the next one can be built, one is done behind the other.
TEST_F(ChainOnFake, StepsThatDrawOrGiveLogitsDoNotChain) {
  script.chains = true;
  Expected<std::unique_ptr<Engine>> engine = create();
  ASSERT_TRUE(engine) << engine.error().text();
  const std::vector<std::string> oneByOne = {"upload", "run", "collect", "results",
                                             "upload", "run", "collect", "results"};
  for (const bool wantsLogits : {false, true}) {
    Chained chained(**engine, wantsLogits);
    Request request = reading({5, 6}, 2);
    request.sampling.temperature = wantsLogits ? 0 : 1;
    ASSERT_TRUE(chained.scheduler->add(std::move(request)));
    script.calls.clear();
    EXPECT_TRUE(chained.scheduler->drain());
    EXPECT_EQ(script.calls, oneByOne) << wantsLogits;
  }
}

// What was counted of steps that failed is taken back: the same rows go again.
TEST_F(ChainOnFake, StepsThatFailedGoAgain) {
  script.chains = true;
  script.sample = 41;
  Expected<std::unique_ptr<Engine>> engine = create();
  ASSERT_TRUE(engine) << engine.error().text();
  Chained chained(**engine);
  ASSERT_TRUE(chained.scheduler->add(reading({5, 6}, 3)));
  chained.step();
  script.failing = "collect";
  const Expected<bool> failed = chained.scheduler->step();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text(), "fake device: refuses to collect");
  script.failing = "";
  EXPECT_EQ(script.ids, std::vector<int32_t>{-1});
  chained.step();
  EXPECT_EQ(script.ids, (std::vector<int32_t>{5, 6}));
  EXPECT_TRUE(chained.scheduler->abandon());
}

// A row without a sample leaves it to the caller whether to go on: what was delivered before it stays, and its own
// sequence and those behind it go again, as does what was under way.
TEST_F(ChainOnFake, SequencesBehindARowWithoutASampleGoAgain) {
  for (const bool chains : {false, true}) {
    script.chains = chains;
    Expected<std::unique_ptr<Engine>> engine = create();
    ASSERT_TRUE(engine) << engine.error().text();
    Chained chained(**engine);
    for (int64_t i = 0; i < 3; ++i)
      ASSERT_TRUE(chained.scheduler->add(reading({5, 6}, 3)));
    script.samples = {41, -1, 43};
    if (chains)
      chained.step();
    const Expected<bool> failed = chained.scheduler->step();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().text().substr(0, 61), "sequence 1: no token could be sampled after position 1: the l");
    script.samples = {};
    script.sample = 50;
    chained.step();
    EXPECT_EQ(script.ids, (std::vector<int32_t>{41, 5, 6, 5, 6})) << chains;
    EXPECT_EQ(script.earlierRows, 0) << chains;
    EXPECT_TRUE(chained.scheduler->drain());
    EXPECT_EQ(chained.tokens[0], (std::vector<int32_t>{41, 50, 50})) << chains;
    EXPECT_EQ(chained.tokens[1], (std::vector<int32_t>{50, 50, 50})) << chains;
    EXPECT_EQ(chained.tokens[2], (std::vector<int32_t>{50, 50, 50})) << chains;
  }
}
