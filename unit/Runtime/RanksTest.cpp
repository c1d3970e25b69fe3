// Programs of several ranks as threads of one process: results of one rank, whoever has a sequence or an expert; and
// that whatever goes wrong on a rank ends all of them, with its name.
#include "../LimitedChild.h"
#include "device/cpu/LocalRanks.h"
#include "engine/Scheduler.h"
#include "fake/FakeBundle.h"
#include "fake/OpenExchange.h"
#include "transport/local/LocalTransport.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// All ranks of a fake bundle, and a scheduler of them.
class Team {
public:
  explicit Team(const FakeBundle &fake, int32_t threads = 1, double deadline = 30,
                const std::vector<PlacementFile> &placements = {})
      : bundle(std::move(*Bundle::open(fake.folder, 0, std::move(*readPlacementFiles(placements))))) {
    CpuOptions onCpu;
    onCpu.threads = threads;
    others = std::move(*LocalRanks::start(
        bundle, onCpu, std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(deadline))));
    Expected<CpuEngine> created = others->createEngine(bundle, {});
    EXPECT_TRUE(created) << created.error().text();
    cpu = std::move(*created);
    StepEvents events;
    events.token = [this](const Sequence &sequence, int32_t id, bool) {
      tokens[sequence.number].push_back(id);
      ranks[sequence.number] = sequence.rank;
      return true;
    };
    scheduler = std::make_unique<Scheduler>(*cpu.engine, std::move(events));
  }
  void add(const std::vector<int32_t> &prompt, int64_t maxNew) {
    Request request;
    request.prompt = prompt;
    request.maxNew = maxNew;
    request.ignoreEos = true;
    ASSERT_TRUE(scheduler->add(std::move(request)));
    tokens.emplace_back();
    ranks.push_back(-1);
  }
  /// What the run says at its end.
  std::string drain() {
    Status done = scheduler->drain();
    if (done)
      done = cpu.engine->finish();
    return done ? "" : done.error().text();
  }

  std::vector<std::vector<int32_t>> tokens; ///< new ones, of each sequence
  std::vector<int32_t> ranks;               ///< which has it

private:
  std::unique_ptr<LocalRanks> others;
  Bundle bundle;

public:
  CpuEngine cpu;
  std::unique_ptr<Scheduler> scheduler;
};

const char fewIds[] = "1,2,3,4,5,6,7,8,9,10";

} // namespace

TEST(Ranks, TokensAreThoseOfOneRank) {
  for (const char *program : {"fake_ranks2", "fake_ranks3", "fake_ranks4"})
    for (int32_t threads : {1, 3}) {
      SCOPED_TRACE(program + (" with " + std::to_string(threads) + " threads"));
      const FakeBundle fake(program);
      Team team(fake, threads);
      std::vector<std::vector<int32_t>> expected;
      for (int32_t i = 0; i < 20; ++i) {
        const std::vector<int32_t> prompt = fakePrompt(3 + 61 * i % 300, i);
        team.add(prompt, 30);
        expected.push_back(fakeContinuation(prompt, 30));
      }
      EXPECT_EQ(team.drain(), "");
      EXPECT_EQ(team.tokens, expected);
    }
}

TEST(Ranks, ReplicasHaveSequencesOfTheirOwn) {
  FakeBundle fake;
  fake.repeat(3, "replicas=3");
  fake.write();
  Team team(fake);
  std::vector<std::vector<int32_t>> expected;
  for (int32_t i = 0; i < 14; ++i) {
    team.add(fakePrompt(40 - i, i), 9);
    expected.push_back(fakeContinuation(fakePrompt(40 - i, i), 9));
  }
  EXPECT_EQ(team.drain(), "");
  EXPECT_EQ(team.tokens, expected);
  for (const int32_t rank : {0, 1, 2})
    EXPECT_EQ(std::count(team.ranks.begin(), team.ranks.begin() + 12, rank), 4) << "slots of each are four";
}

TEST(Ranks, IdleRanksTakeEveryStep) {
  const FakeBundle fake("fake_ranks4");
  Team team(fake);
  team.add(fakePrompt(5, 1), 9);
  EXPECT_EQ(team.drain(), "");
  EXPECT_EQ(team.tokens[0], fakeContinuation(fakePrompt(5, 1), 9));
}

TEST(Ranks, ASequenceGoesToTheRankWithTheFewestTokens) {
  const FakeBundle fake("fake_ranks3");
  Team team(fake);
  for (int64_t length : {30, 20, 10, 5, 5, 5})
    team.add(fakePrompt(length, 1), 1);
  EXPECT_EQ(team.drain(), "");
  EXPECT_EQ(team.ranks, (std::vector<int32_t>{0, 1, 2, 2, 2, 1}));
}

TEST(Ranks, ARankWithoutRoomIsLeftOut) {
  FakeBundle fake("fake_ranks2");
  fake.manifest["limits"]["max_sequences"] = 1;
  fake.write();
  Team team(fake);
  team.add(fakePrompt(40, 1), 30);
  team.add(fakePrompt(4, 2), 2); // rank 1 has the fewer tokens, but no slot until this one has ended
  team.add(fakePrompt(4, 3), 2);
  EXPECT_EQ(team.drain(), "");
  EXPECT_EQ(team.ranks, (std::vector<int32_t>{0, 1, 1}));
}

TEST(Ranks, ExpertsMayBeAnywhere) {
  FakeBundle fake("fake_ranks3"); // of 18 slots two are empty
  json lists = {json::array(), json::array(), json::array()};
  for (int expert = 0; expert < 16; ++expert)
    lists[(expert * 5 + 1) % 3].push_back(15 - expert);
  for (json &list : lists)
    while (list.size() < 6)
      list.insert(list.begin(), json());
  fake.placement["layers"]["1"]["both"] = lists;
  fake.write();
  Team team(fake);
  for (int32_t i = 0; i < 6; ++i)
    team.add(fakePrompt(20 + i, i), 5);
  EXPECT_EQ(team.drain(), "");
  for (int32_t i = 0; i < 6; ++i)
    EXPECT_EQ(team.tokens[i], fakeContinuation(fakePrompt(20 + i, i), 5)) << i;
}

TEST(Ranks, ExpertsMayMoveBetweenSteps) {
  FakeBundle fake("fake_ranks3");
  json later = fake.placement, phases = fake.placement;
  std::swap(later["layers"]["1"]["both"][0], later["layers"]["1"]["both"][1]);
  phases["layers"]["1"] = {{"prefill", later["layers"]["1"]["both"]},
                           {"decode", fake.placement["layers"]["1"]["both"]}};
  fake.writeFile("later.json", later.dump());
  fake.writeFile("phases.json", phases.dump());
  Team team(fake, 1, 30, {{fake.path("later.json"), 2}, {fake.path("phases.json"), 4}});
  for (int32_t i = 0; i < 6; ++i)
    team.add(fakePrompt(20 + i, i), 9);
  EXPECT_EQ(team.drain(), "");
  for (int32_t i = 0; i < 6; ++i)
    EXPECT_EQ(team.tokens[i], fakeContinuation(fakePrompt(20 + i, i), 9)) << i;
}

TEST(Ranks, AStepMayBeLongInComing) {
  const FakeBundle fake("fake_ranks2");
  Team team(fake, 1, /*deadline=*/0.05);
  team.add(fakePrompt(5, 1), 3);
  ASSERT_TRUE(team.scheduler->step());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(team.drain(), "");
  EXPECT_EQ(team.tokens[0], fakeContinuation(fakePrompt(5, 1), 3));
}

TEST(Ranks, AFailureOfOneEndsAll) {
  const FakeBundle fake("fake_ranks3");
  Team team(fake, 2);
  team.add(fakePrompt(30, 1), 5);
  team.add({1, 96, 96}, 5); // of rank 1
  team.add(fakePrompt(3, 1), 5);
  EXPECT_EQ(team.drain(), "rank 1: has ended the run: kernel append: failed with 7 on worker 1");
}

TEST(Ranks, AFailureOfTheFirstEndsAll) {
  const FakeBundle fake("fake_ranks2");
  Team team(fake, 2);
  team.add({1, 96, 96}, 5);
  EXPECT_EQ(team.drain(), "kernel append: failed with 7 on worker 1");
}

TEST(Ranks, ADeadlineNamesWhoIsMissing) {
  const FakeBundle fake("fake_ranks2");
  Team team(fake, 1, /*deadline=*/0.3);
  team.add({1, 2}, 5);
  team.add({95}, 5); // hangs rank 1
  const std::string text = team.drain();
  EXPECT_NE(text.find("site 0 (all_to_all_rows, layer 1, group ep, step 0): the deadline of 0.3 s has passed: rank 1 "
                      "has not posted"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("its workers hang behind site 2"), std::string::npos) << text;
}

TEST(Ranks, AnInterruptEndsAll) {
  const FakeBundle fake("fake_ranks2");
  Team team(fake);
  team.add({1, 2}, 50);
  team.cpu.engine->interrupt();
  const Status done = team.scheduler->drain();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, K2RT_INTERRUPTED);
}

TEST(Ranks, ARankThatCannotLoadEndsTheStart) {
  FakeBundle fake("fake_ranks2");
  std::string blob(16 * 4096, 'e'); // only ranks that map an expert see that it is another one
  for (int32_t expert = 0; expert < 8; ++expert) {
    const int32_t says = 1000 + expert;
    blob.replace(expert * 4096, 4, reinterpret_cast<const char *>(&says), 4);
  }
  fake.writeFile("weights/blob1.bin", blob);
  const Outcome outcome = runBundle(fake, {"generate", "--prompt-ids", fewIds, "--transport", "local"});
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_NE(outcome.err.find("rank 1: has ended the run: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("weights/blob1.bin: bytes 32768 to 36864 hash to "), std::string::npos) << outcome.err;
}

TEST(Ranks, AThreadThatCannotStartIsSaidAtOnce) {
  if (!test::canLimitMemory)
    GTEST_SKIP() << "a sanitizer takes memory itself";
  const FakeBundle fake("fake_ranks4");
  Expected<Bundle> bundle = Bundle::open(fake.folder, 0);
  ASSERT_TRUE(bundle) << bundle.error().text();
  CpuOptions onCpu;
  onCpu.threads = 1;
  onCpu.container = readContainer();
  const std::string text = test::saidInChild([&]() -> std::string {
    test::limitMoreMemory(20 << 20); // a stack takes 8 MiB
    const auto started = LocalRanks::start(*bundle, onCpu, std::chrono::seconds(30));
    return started ? "started" : started.error().text();
  });
  EXPECT_NE(text.find(" cannot be started: Resource temporarily unavailable"), std::string::npos) << text;
}

TEST(RanksRun, EveryCommandGivesWhatOneRankGives) {
  const FakeBundle one, several("fake_ranks2");
  const FakeBundle file;
  file.writeFile("batch.json", "[[1,2,3],{\"ids\":[4,5],\"seed\":7},[6,7,8,9,1,2,3,4,5]]");
  file.writeFile("text.json", "[[1,2,3,4,5,6],[9,8,7]]");
  const std::vector<std::vector<std::string>> commands = {{"logits", "--prompt-ids", fewIds, "--all", "--json"},
                                                          {"logits", "--batch-file", file.path("batch.json"), "--json"},
                                                          {"routes", "--prompt-ids", fewIds, "--json", "--chunk", "3"},
                                                          {"hidden", "--prompt-ids", fewIds, "--json"},
                                                          {"perplexity", file.path("text.json"), "--json"}};
  for (std::vector<std::string> command : commands) {
    const Outcome expected = runBundle(one, command);
    command.insert(command.end(), {"--transport", "local"});
    const Outcome outcome = runBundle(several, command);
    EXPECT_EQ(outcome.exitCode, 0) << command[0] << ": " << outcome.err;
    EXPECT_EQ(outcome.out, expected.out) << command[0];
  }
}

TEST(RanksRun, GeneratesABatch) {
  const FakeBundle one, several("fake_ranks3");
  one.writeFile("batch.json", "[[1,2,3],{\"ids\":[4,5],\"seed\":7},[6,7,8,9,1,2,3,4,5]]");
  std::vector<std::string> words = {"generate",      "--batch-file", one.path("batch.json"), "-n", "7", "--json",
                                    "--temperature", "0.8",          "--logprobs",           "2"};
  json expected = runJson(one, words);
  words.insert(words.end(), {"--transport", "local", "--threads", "2"});
  json given = runJson(several, words);
  ASSERT_EQ(given.size(), 3u) << given;
  for (size_t i = 0; i < 3; ++i)
    for (const char *key : {"ids", "text", "finish", "logprobs"})
      EXPECT_EQ(given[i][key], expected[i][key]) << i;
}

TEST(RanksRun, ForcedRoutesReachTheirRank) {
  const FakeBundle one, several("fake_ranks2");
  const Outcome routes = runBundle(one, {"routes", "--prompt-ids", fewIds, "--json"});
  one.writeFile("routes.json", routes.out);
  std::vector<std::string> words = {"hidden", "--prompt-ids", fewIds, "--json", "--routes", one.path("routes.json")};
  const Outcome expected = runBundle(one, words);
  words.insert(words.end(), {"--transport", "local"});
  EXPECT_EQ(runBundle(several, words).out, expected.out);
}

TEST(RanksRun, Bench) {
  const FakeBundle several("fake_ranks2");
  const json result = runJson(several, {"bench", "--prefill", "20", "--decode", "3", "--batch", "6", "--context", "4",
                                        "--repeat", "2", "--json", "--transport", "local"});
  EXPECT_EQ(result["batch"], 6) << result;
  EXPECT_EQ(result["prompts"], 1) << result;
  const json &communication = result["communication"];
  EXPECT_GT(communication["payload_bytes"], 0) << result;
  EXPECT_GE(communication["seconds"], communication["waited_s"]);
  EXPECT_NEAR(communication["seconds"].get<double>(),
              communication["waited_s"].get<double>() + communication["hidden_s"].get<double>(), 1e-9);
  ASSERT_EQ(result["ranks"].size(), 2u) << result;
  for (size_t rank = 0; rank < 2; ++rank) {
    const json &of = result["ranks"][rank];
    EXPECT_EQ(of["rank"], rank) << of;
    EXPECT_GT(of["busy_s"], 0) << of;
    EXPECT_GE(of["peak_rss_bytes"], result["peak_rss_bytes"]) << "ranks that are threads have the process's";
  }
  const json prompts = runJson(several, {"bench", "--prefill", "20", "--prompts", "3", "--decode", "0", "--repeat", "1",
                                         "--json", "--transport", "local"});
  EXPECT_EQ(prompts["prompts"], 3) << prompts;
  const Outcome tooManyPrompts = runBundle(several, {"bench", "--prompts", "9", "--transport", "local"});
  EXPECT_EQ(tooManyPrompts.err, "run: error: --prompts: is 9, the bundle's max_sequences of all ranks is 8; choose "
                                "less, or compile with larger limits\n");
  const Outcome tooMany = runBundle(several, {"bench", "--batch", "9", "--transport", "local"});
  EXPECT_EQ(tooMany.err, "run: error: --batch: is 9, the bundle's max_sequences of all ranks is 8; choose less, or "
                         "compile with larger limits\n");
}

TEST(RanksRun, ExitCodes) {
  const FakeBundle several("fake_ranks2");
  const auto generate = [&](const std::string &batch) {
    several.writeFile("batch.json", batch);
    return runBundle(several, {"generate", "--batch-file", several.path("batch.json"), "-n", "3", "--transport",
                               "local", "--deadline", "0.3"});
  };
  EXPECT_EQ(generate("[[1],[96,96]]").exitCode, 3);
  EXPECT_EQ(generate("[[1],[95]]").exitCode, 124);
}

TEST(RanksRun, WithoutTransportTheRemedyIsNamed) {
  const FakeBundle several("fake_ranks2");
  const Outcome outcome = runBundle(several, {"generate", "--prompt-ids", "1"});
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_EQ(outcome.err, "run: error: " + several.folder +
                             ": is of 2 ranks, which this call does not start; use DIR/launch.sh COMMAND, or "
                             "DIR/run COMMAND --transport local: ranks as threads of one process\n");
}

TEST(RanksRun, OneRankNeedsNoTransportAndTakesOne) {
  const FakeBundle one;
  const Outcome plain = runBundle(one, {"logits", "--prompt-ids", fewIds, "--json"});
  EXPECT_EQ(runBundle(one, {"logits", "--prompt-ids", fewIds, "--json", "--transport", "local"}).out, plain.out);
}

TEST(RanksRun, InfoHasEveryRank) {
  const FakeBundle several("fake_ranks3");
  const json info = runJson(several, {"info", "--json"});
  EXPECT_EQ(info["layout"], "ep=3,dp=3") << info;
  EXPECT_EQ(info["groups"], (json{{{"name", "ep"}, {"size", 3}}, {{"name", "dp"}, {"size", 3}}}));
  EXPECT_EQ(info["transports"], json{"local"});
  EXPECT_EQ(info["placement"], (json{{"hash", "0"}, {"experts", 16}, {"slots", 18}}));
  EXPECT_EQ(info["collectives"].size(), 2u);
  ASSERT_EQ(info["ranks"].size(), 3u);
  EXPECT_EQ(info["ranks"][2]["rank"], 2);
  EXPECT_EQ(info["ranks"][2]["layers"], (json{0, 2}));
  EXPECT_EQ(info["ranks"][2]["slots"], 6);
  EXPECT_EQ(info["ranks"][2]["owned"]["weights"], 7 * 4096);
  EXPECT_EQ(info["ranks"][2]["threads"], 1) << "the topology's cores";
}

// A program that waits for what it has not started is told so, by each worker's barrier.
TEST(Collectives, AWaitNeedsAStart) {
  const k2rt_ir_collective site = {K2RT_ALL_TO_ALL_ROWS, K2RT_AXIS_EP, 8, 4, 2, 0};
  k2rt_ir_program program = {};
  program.n_collectives = 1;
  program.collectives = const_cast<k2rt_ir_collective *>(&site);
  Collectives collectives(program, nullptr);
  const Status done = collectives.wait(Half::first, 0);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text(), "program.so: waits for a collective before its start");
}

TEST(Collectives, WhatArrivesIsAStepOfSoManyRows) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(1);
  const auto maker = [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[0]); };
  const std::unique_ptr<Exchange> exchange = std::move(*test::openExchange(maker, Grid()));
  const k2rt_ir_collective site = {K2RT_ALL_TO_ALL_ROWS, K2RT_AXIS_EP, 8, 4, 2, 0};
  k2rt_ir_program program = {};
  program.n_collectives = 1;
  program.collectives = const_cast<k2rt_ir_collective *>(&site);
  Collectives collectives(program, exchange.get());
  int64_t source[] = {5, 6, 7}, outgoing[] = {2, 1}, result[4] = {}, incoming[2] = {};
  void *const buffers[] = {source, outgoing, result, incoming};
  k2rt_ir_step step = {};
  step.token_rows = 3;
  collectives.start(Half::first, 0, 3, 0, step, buffers);
  EXPECT_TRUE(collectives.wait(Half::first, 0));
  EXPECT_EQ(collectives.arrived(Half::first)->token_rows, 2);
  EXPECT_EQ(incoming[0], 2);
  EXPECT_EQ(result[0], 6);
  EXPECT_EQ(result[1], 7);
  EXPECT_TRUE(exchange->close());
}
