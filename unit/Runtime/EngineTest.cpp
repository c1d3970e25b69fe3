// The engine and its scheduler over a device without workers: what is asked of a device, in which order, and where its
// errors go.
#include "engine/Scheduler.h"
#include "fake/FakeDevice.h"
#include "fake/OpenExchange.h"
#include "transport/local/LocalTransport.h"
#include <future>
#include <thread>

using namespace k2c;
using namespace k2c::runtime;

TEST_F(EngineOnFake, AllocatesLoadsThenUploadsRunsAndReadsEachStep) {
  Expected<std::unique_ptr<Engine>> engine = create();
  ASSERT_TRUE(engine) << engine.error().text();
  EXPECT_EQ(script.calls, (std::vector<std::string>{"engine: step arrays", "engine: logits", "program: cache",
                                                    "program: cache", "program: arena", "load"}));
  script.calls.clear();
  script.sample = 41;
  std::vector<int32_t> tokens;
  StepEvents events;
  events.token = [&](const Sequence &, int32_t id, bool) { return tokens.push_back(id), true; };
  events.logits = [&](const Sequence &, int64_t, const float *logits) {
    EXPECT_EQ(logits[96], static_cast<float>(script.sample));
    ++script.sample;
  };
  Scheduler scheduler(**engine, std::move(events));
  ASSERT_TRUE(scheduler.add(reading({5, 6, 7}, 2)));
  Status done = scheduler.drain();
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(script.calls, (std::vector<std::string>{"upload", "run", "results", "upload", "run", "results"}));
  EXPECT_EQ(script.entry, bundle->program.entry(serveEntry));
  EXPECT_EQ(tokens, (std::vector<int32_t>{41, 42}));
  EXPECT_EQ(script.ids, std::vector<int32_t>{41}) << "the second step reads the first new token";
}

TEST_F(EngineOnFake, AChunkIsThatOfTheOptions) {
  Expected<std::unique_ptr<Engine>> engine = create({2, ""});
  ASSERT_TRUE(engine) << engine.error().text();
  Scheduler scheduler(**engine, {});
  ASSERT_TRUE(scheduler.add(reading({5, 6, 7}, 0)));
  ASSERT_TRUE(scheduler.step());
  EXPECT_EQ(script.ids, (std::vector<int32_t>{5, 6}));
  ASSERT_TRUE(scheduler.step());
  EXPECT_EQ(script.ids, std::vector<int32_t>{7});
}

TEST_F(EngineOnFake, WhatTheDeviceRefusesAtTheStartIsTheCallers) {
  for (const char *call : {"engine: step arrays", "engine: logits", "program: cache", "program: arena", "load"}) {
    script = Script();
    script.failing = call;
    Expected<std::unique_ptr<Engine>> engine = create();
    ASSERT_FALSE(engine) << call;
    EXPECT_EQ(engine.error().code, K2RT_SYSTEM);
    EXPECT_EQ(engine.error().text(), std::string("fake device: refuses to ") + call);
    EXPECT_EQ(script.calls.back(), call) << "and nothing else is asked";
  }
}

TEST_F(EngineOnFake, AStepThatFailsIsTheCallersAndLeavesNoResults) {
  Expected<std::unique_ptr<Engine>> engine = create();
  ASSERT_TRUE(engine) << engine.error().text();
  script.failing = "run";
  Scheduler scheduler(**engine, {});
  ASSERT_TRUE(scheduler.add(reading({5}, 1)));
  Status done = scheduler.drain();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text(), "fake device: refuses to run");
  EXPECT_EQ(script.calls.back(), "run");
}

TEST_F(EngineOnFake, AnInterruptGoesToTheDevice) {
  Expected<std::unique_ptr<Engine>> engine = create();
  ASSERT_TRUE(engine) << engine.error().text();
  (*engine)->interrupt();
  EXPECT_EQ(script.calls.back(), "interrupt");
}

/// Two ranks with devices that compute nothing, which say 40 and 50 as samples: rank 1 is a thread that serves. Two
/// prompts with two new tokens each.
class TwoRanks {
public:
  explicit TwoRanks(const FakeBundle &fake)
      : first(std::move(*Bundle::open(fake.folder, 0))), second(std::move(*Bundle::open(fake.folder, 1))) {
    scripts[0].sample = 40;
    scripts[1].sample = 50;
    other = std::thread([this] {
      auto member = RankMember::create(second, std::make_unique<FakeDevice>(scripts[1]), nullptr, exchangeOf(1));
      const Status done = member ? (*member)->serve() : Status(member.takeError());
      served = done ? "" : done.error().text();
    });
    auto created = Engine::create(first, std::make_unique<FakeDevice>(scripts[0]), {}, exchangeOf(0));
    EXPECT_TRUE(created) << created.error().text();
    engine = std::move(*created);
    StepEvents events;
    events.token = [&](const Sequence &of, int32_t id, bool) { return tokens[of.number].push_back(id), true; };
    events.logits = [&](const Sequence &, int64_t, const float *row) { logits.push_back(row[96]); };
    scheduler = std::make_unique<Scheduler>(*engine, std::move(events));
    for (const std::vector<int32_t> &prompt : {std::vector<int32_t>{5, 6, 7}, {8, 9}}) {
      Request request;
      request.prompt = prompt;
      request.maxNew = 2;
      EXPECT_TRUE(scheduler->add(std::move(request)));
    }
  }
  /// What the run says at its end, of both ranks.
  std::string drain() {
    Status done = scheduler->drain();
    if (done)
      done = engine->finish();
    other.join();
    return (done ? "" : done.error().text()) + served;
  }

  Script scripts[2];
  std::unique_ptr<Scheduler> scheduler;
  std::vector<std::vector<int32_t>> tokens{2}; ///< of each sequence
  std::vector<float> logits;

private:
  std::unique_ptr<Exchange> exchangeOf(int32_t rank) {
    const auto maker = [&, rank]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[rank]); };
    return std::move(*test::openExchange(maker, gridOf(first.manifest.ranks)));
  }

  const Bundle first, second;
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  std::unique_ptr<Engine> engine;
  std::string served;
  std::thread other;
};

TEST(EngineOfRanks, EachRankUploadsItsOwnSequences) {
  const FakeBundle fake("fake_ranks2");
  TwoRanks both(fake);
  ASSERT_TRUE(both.scheduler->step());
  EXPECT_EQ(both.scripts[0].ids, (std::vector<int32_t>{5, 6, 7}));
  EXPECT_EQ(both.scripts[1].ids, (std::vector<int32_t>{8, 9}));
  EXPECT_EQ(both.drain(), "");
  EXPECT_EQ(both.scripts[1].ids, std::vector<int32_t>{50}) << "the second step reads the first new token";
  EXPECT_EQ(both.tokens, (std::vector<std::vector<int32_t>>{{40, 40}, {50, 50}}));
  EXPECT_EQ(both.logits, (std::vector<float>{40, 50, 40, 50}));
}

/// A stage on each of two ranks. The second has the cache.
class FakeStages : public FakeBundle {
public:
  FakeStages() {
    repeat(2, "pp=2");
    for (const int64_t stage : {0, 1}) {
      const nlohmann::json plane = {{"first", 0}, {"end", 2 * stage}}, layers = {stage, stage + 1};
      manifest["stages"].push_back({{"layers", layers}, {"cache", {plane, plane}}});
      manifest["ranks"][stage]["stage"] = stage;
      manifest["ranks"][stage]["layers"] = layers;
    }
    write();
  }
};

TEST(EngineOfRanks, EachStageHasAMicrobatchUnderWay) {
  const FakeStages fake;
  TwoRanks both(fake);
  ASSERT_TRUE(both.scheduler->step());
  EXPECT_EQ(both.scripts[0].ids, (std::vector<int32_t>{5, 6, 7})) << "the first sequence alone";
  EXPECT_EQ(both.tokens[0], std::vector<int32_t>()) << "whose results nobody has waited for";
  ASSERT_TRUE(both.scheduler->step());
  EXPECT_EQ(both.scripts[0].ids, (std::vector<int32_t>{8, 9})) << "the other one behind it";
  EXPECT_EQ(both.tokens, (std::vector<std::vector<int32_t>>{{50}, {}}));
  ASSERT_TRUE(both.scheduler->step());
  EXPECT_EQ(both.scripts[0].ids, std::vector<int32_t>{50});
  EXPECT_EQ(both.tokens, (std::vector<std::vector<int32_t>>{{50}, {50}}));
  EXPECT_EQ(both.drain(), "");
  EXPECT_EQ(both.tokens, (std::vector<std::vector<int32_t>>{{50, 50}, {50, 50}})) << "samples are of the last stage";
}

// The last stage computes its first step until the first stage has the next one.
TEST(EngineOfRanks, AStageBeginsAStepWhileTheNextOneComputes) {
  const FakeStages fake;
  TwoRanks both(fake);
  std::promise<void> second;
  int uploads = 0, runs = 0;
  both.scripts[0].onUpload = [&] {
    if (++uploads == 2)
      second.set_value();
  };
  both.scripts[1].onRun = [&] {
    if (++runs > 1)
      return;
    EXPECT_EQ(second.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  };
  EXPECT_EQ(both.drain(), "");
  EXPECT_EQ(both.tokens, (std::vector<std::vector<int32_t>>{{50, 50}, {50, 50}}));
}

TEST(EngineOfRanks, WhatIsAbandonedIsWaitedFor) {
  const FakeStages fake;
  TwoRanks both(fake);
  ASSERT_TRUE(both.scheduler->step());
  const Status done = both.scheduler->abandon();
  EXPECT_TRUE(done) << done.error().text();
  EXPECT_EQ(both.scheduler->unfinished(), 0);
  EXPECT_EQ(both.drain(), "");
}

namespace {

/// Sites behind two of the program.
constexpr uint32_t recordSite = 2, loadedSite = 4, countersSite = 5, tracesSite = 6;

/// Rank 1 tells all these words. Rank 0 may have ended the run for them before this returns.
Status tellAll(Exchange &exchange, uint32_t site, std::vector<int64_t> own) {
  std::vector<int64_t> all(2 * own.size());
  Collective gather{Op::allGather, Axis::world, site};
  gather.source = own.data();
  gather.result = all.data();
  gather.bytes = static_cast<int64_t>(own.size() * sizeof own[0]);
  gather.isControl = true;
  return exchange.run(gather);
}

/// What rank 0 says when it asks a rank that has loaded, takes the record and answers like this.
std::string saidOf(const EngineOptions &options, const std::function<Status(Engine &)> &ask,
                   const std::function<void(Exchange &)> &answer) {
  const FakeBundle fake("fake_ranks2");
  const Bundle first = std::move(*Bundle::open(fake.folder, 0));
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  const auto exchangeOf = [&](int32_t rank) {
    const auto maker = [&, rank]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[rank]); };
    return std::move(*test::openExchange(maker, gridOf(first.manifest.ranks)));
  };
  const std::unique_ptr<Exchange> exchange = exchangeOf(1); // up to the end: a rank that leaves is a failure
  std::thread other([&] {
    EXPECT_TRUE(tellAll(*exchange, loadedSite, {1}));
    std::vector<int64_t> record(100), none(2), offsets(2), received{100, 0};
    Collective scatter{Op::scatterRows, Axis::world, recordSite};
    scatter.result = record.data();
    scatter.bytes = recordUnit;
    scatter.rows = {none.data(), offsets.data(), received.data(), offsets.data(), /*isCapacity=*/true};
    scatter.isControl = true;
    EXPECT_TRUE(exchange->run(scatter));
    answer(*exchange);
  });
  Script script;
  auto engine = Engine::create(first, std::make_unique<FakeDevice>(script), options, exchangeOf(0));
  EXPECT_TRUE(engine) << engine.error().text();
  const Status asked = ask(**engine);
  other.join();
  return asked ? "" : asked.error().text();
}

} // namespace

// Rank 1 says that it has fewer counters than none.
TEST(EngineOfRanks, CountersOfARankHaveABound) {
  const auto ask = [](Engine &engine) {
    Expected<std::vector<RankCounters>> counters = engine.counters();
    return counters ? Status() : Status(counters.takeError());
  };
  EXPECT_EQ(saidOf({}, ask, [](Exchange &exchange) { (void)tellAll(exchange, countersSite, {-5, 0, 0}); }),
            "counters: rank 1 has -5 words of them, a rank of this program at most 270; start the same build of k2c on "
            "every host");
}

TEST(EngineOfRanks, TracesOfARankHaveABound) {
  EngineOptions options;
  options.traceFile = "/dev/null";
  const auto ask = [](Engine &engine) { return engine.finish(); };
  EXPECT_EQ(saidOf(options, ask, [](Exchange &exchange) { (void)tellAll(exchange, tracesSite, {4097, 0}); }),
            "--trace: rank 1 says 4097 workers, a rank has 4096 at most; start the same build of k2c on every host");
  const auto answer = [](Exchange &exchange) {
    EXPECT_TRUE(tellAll(exchange, tracesSite, {1, 0}));
    int64_t word = 0;
    Collective passed{Op::send, Axis::world, tracesSite};
    passed.bytes = sizeof word;
    passed.isControl = true;
    for (int i = 0; i < 17; ++i) { // eight questions, eight answers, a count
      passed.op = i % 2 == 0 && i < 16 ? Op::receive : Op::send;
      word = i == 16 ? -1 : word;
      passed.source = passed.op == Op::send ? &word : nullptr;
      passed.result = passed.op == Op::send ? nullptr : &word;
      (void)exchange.run(passed);
    }
  };
  EXPECT_EQ(saidOf(options, ask, answer),
            "--trace: rank 1 has -1 records of a ring, which holds 131072; start the same "
            "build of k2c on every host");
}
