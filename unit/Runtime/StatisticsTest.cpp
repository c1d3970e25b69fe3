// --expert-stats: which sets of experts tokens chose, by layer, phase and the rank that has the token.
#include "engine/ExpertStatistics.h"
#include "fake/FakeBundle.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

std::string readText(const std::string &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs a command with --expert-stats, which must succeed; the text of the file.
std::string statisticsOf(const FakeBundle &fake, std::vector<std::string> words) {
  words.insert(words.end(), {"--expert-stats", fake.path("stats.json")});
  const Outcome outcome = runBundle(fake, words);
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  return readText(fake.path("stats.json"));
}

/// Tokens of all sources by set; a token of id i at position p chooses experts i + p and i + p + 1, modulo 16.
json tokensBySet(const std::string &text, const char *phase) {
  json tokens = json::object(), statistics = json::parse(text);
  for (const json &entry : statistics["layers"]["1"][phase]) {
    json &of = tokens[entry["experts"].dump()];
    of = of.is_null() ? entry["tokens"].get<int64_t>() : of.get<int64_t>() + entry["tokens"].get<int64_t>();
  }
  return tokens;
}

} // namespace

TEST(ExpertStatistics, CountsSetsByLayerPhaseAndSource) {
  Manifest manifest;
  manifest.moeLayers = {3, 5};
  manifest.topK = 2;
  ExpertStatistics statistics(manifest);
  // A prompt of two rows, a generated token, and the last row of a prompt read token by token.
  int32_t begin[] = {0, 2, 3, 4}, last[] = {-1, 7, -1}, outputs[] = {1, 2};
  k2rt_ir_step step = {};
  step.token_rows = 4;
  step.seq_rows = 3;
  step.seq_begin = begin;
  step.last_sample = last;
  step.outputs = outputs;
  step.output_rows = 2;
  const int32_t experts[] = {9, 1, 1, 9, 4, 2, 5, -1, /**/ 0, 1, 2, 3, -1, -1, 1, 0};
  statistics.count({2, 2, 2, 2}, step, experts);
  statistics.count({0, 0, 0, 0}, step, experts);
  using Counts = ExpertStatistics::Counts;
  EXPECT_EQ(statistics.of(0, Phase::prefill),
            (Counts{{{0, {1, 9}}, 2}, {{0, {5}}, 1}, {{2, {1, 9}}, 2}, {{2, {5}}, 1}}));
  EXPECT_EQ(statistics.of(0, Phase::decode), (Counts{{{0, {2, 4}}, 1}, {{2, {2, 4}}, 1}}));
  EXPECT_EQ(statistics.of(1, Phase::prefill),
            (Counts{{{0, {0, 1}}, 2}, {{0, {2, 3}}, 1}, {{2, {0, 1}}, 2}, {{2, {2, 3}}, 1}}));
  EXPECT_EQ(statistics.of(1, Phase::decode), (Counts{{{0, {}}, 1}, {{2, {}}, 1}})) << "a token that was dropped";
  EXPECT_EQ(statistics.outputsOf(Phase::prefill), 2);
  EXPECT_EQ(statistics.outputsOf(Phase::decode), 2);
}

TEST(ExpertStatistics, AFileHasFixedOrderAndAllTokens) {
  const FakeBundle fake;
  EXPECT_EQ(
      statisticsOf(fake, {"perplexity", (fake.writeFile("t.json", "[[15,1,15]]"), fake.path("t.json"))}),
      "{\"format\":1,\"model\":\"fake\",\"experts\":16,\"ranks\":1,\"compute\":\"f32\",\"layers\":{\"1\":{\"prefill\":["
      "{\"source\":0,\"experts\":[0,15],\"tokens\":1},{\"source\":0,\"experts\":[1,2],\"tokens\":1},"
      "{\"source\":0,\"experts\":[2,3],\"tokens\":1}],\"decode\":[]}},\"outputs\":{\"prefill\":3,\"decode\":0}}\n");
}

TEST(ExpertStatistics, RanksCountTheirOwnTokens) {
  const FakeBundle one, several("fake_ranks2");
  one.writeFile("batch.json", "[[1,2,3],[4,5],[6,7,8,9,1,2,3,4,5]]");
  const std::vector<std::string> words = {"generate",     "--batch-file", one.path("batch.json"), "-n", "5",
                                          "--ignore-eos", "--json"};
  std::vector<std::string> local = words;
  local.insert(local.end(), {"--transport", "local"});
  const std::string expected = statisticsOf(one, words), text = statisticsOf(several, local);
  for (const char *phase : {"prefill", "decode"})
    EXPECT_EQ(tokensBySet(text, phase), tokensBySet(expected, phase));
  EXPECT_EQ(statisticsOf(several, local), text) << "equal runs write equal bytes";
  json tokens = {{"prefill", {0, 0}}, {"decode", {0, 0}}}, statistics = json::parse(text);
  for (const char *phase : {"prefill", "decode"})
    for (const json &entry : statistics["layers"]["1"][phase]) {
      json &of = tokens[phase][entry["source"].get<size_t>()];
      of = of.get<int64_t>() + entry["tokens"].get<int64_t>();
    }
  // The last new token of a sequence is never read.
  EXPECT_EQ(tokens, json::parse(R"({"prefill":[9,5],"decode":[4,8]})")) << "the longest prompt has a rank for itself";
}

TEST(ExpertStatistics, CommandsThatCaptureRoutesCountThemToo) {
  const FakeBundle fake;
  const std::vector<std::string> routes = {"routes", "--prompt-ids", "3,5,7", "--json"};
  const Outcome outcome = runBundle(fake, routes);
  std::vector<std::string> counted = routes;
  EXPECT_EQ(tokensBySet(statisticsOf(fake, counted), "prefill"), json::parse(R"({"[3,4]":1,"[6,7]":1,"[9,10]":1})"));
  counted.insert(counted.end(), {"--expert-stats", fake.path("s.json")});
  EXPECT_EQ(runBundle(fake, counted).out, outcome.out);
}

/// Statistics of the layer with experts of a fake bundle, of which each token chose one expert.
static std::string statisticsText(const std::vector<std::pair<int, int>> &tokensOfExpert, int experts = 16,
                                  const std::string &layer = "1") {
  json entries = json::array();
  for (const auto &[expert, tokens] : tokensOfExpert)
    entries.push_back({{"source", 0}, {"experts", {expert}}, {"tokens", tokens}});
  const json phases = {{"prefill", entries}, {"decode", json::array()}};
  return json{{"format", 1}, {"model", "fake"}, {"experts", experts}, {"ranks", 1}, {"layers", {{layer, phases}}}}
      .dump();
}

TEST(ExpertStatistics, InfoListsDeadAndHotExperts) {
  const FakeBundle fake;
  fake.writeFile("s.json", statisticsText({{0, 8}, {2, 9}, {3, 30}, {3, 1}, {4, 16}}));
  const json info = runJson(fake, {"info", "--json", "--threads", "1", "--expert-stats", fake.path("s.json")});
  EXPECT_EQ(info["expert_loads"], json::parse(R"({"1":{"mean_load":4,"dead":[1,5,6,7,8,9,10,11,12,13,14,15],)"
                                              R"("hot":[{"expert":3,"load":31},{"expert":4,"load":16},)"
                                              R"({"expert":2,"load":9}]}})"))
      << "twice the mean is not hot";
  const std::string text = runBundle(fake, {"info", "--threads", "1", "--expert-stats", fake.path("s.json")}).out;
  const std::string line =
      "\n           layer 1: mean 4; dead 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; hot 3 (31), 4 (16), 2 (9)\n";
  EXPECT_NE(text.find(line), text.npos) << text;
  EXPECT_FALSE(runJson(fake, {"info", "--json", "--threads", "1"}).contains("expert_loads"));
}

TEST(ExpertStatistics, InfoRefusesThoseOfOtherModels) {
  const FakeBundle fake;
  const std::string path = fake.path("s.json");
  const auto saying = [&](const std::string &text) {
    fake.writeFile("s.json", text);
    const Outcome outcome = runBundle(fake, {"info", "--threads", "1", "--expert-stats", path});
    EXPECT_EQ(outcome.exitCode, 1);
    return outcome.err;
  };
  const std::string remedy = "; write it with DIR/run COMMAND --expert-stats FILE of this bundle\n";
  EXPECT_EQ(saying(statisticsText({}, 15)), "run: error: " + path + ": experts: is 15, the bundle has 16" + remedy);
  EXPECT_EQ(saying(statisticsText({}, 16, "0")),
            "run: error: " + path + ": layers: has no layer 1, which has experts" + remedy);
  json other = json::parse(statisticsText({})), more = other;
  other["model"] = "odd";
  EXPECT_EQ(saying(other.dump()), "run: error: " + path + ": model: is odd, the bundle is of fake" + remedy);
  more["layers"]["7"] = more["layers"]["1"];
  EXPECT_EQ(saying(more.dump()),
            "run: error: " + path + ": layers: has 2 entries, the bundle has 1 layers with experts" + remedy);
}

TEST(ExpertStatistics, ATraceHasDeadAndHotExperts) {
  const FakeBundle fake;
  runJson(fake, {"routes", "--prompt-ids", "3,5,7", "--json", "--expert-stats", fake.path("s.json"), "--trace",
                 fake.path("t.json")});
  const json layers = json::parse(readText(fake.path("t.json")))["otherData"]["layers"];
  EXPECT_EQ(layers["1"]["mean_load"], 6.0 / 16);
  EXPECT_EQ(layers["1"]["dead"], json::parse("[0,1,2,5,8,11,12,13,14,15]"));
  EXPECT_EQ(layers["1"]["hot"][0], json::parse(R"({"expert":3,"load":1})"));
  EXPECT_FALSE(layers["1"].contains("balancedness")) << "one rank";
}

TEST(ExpertStatistics, AnInterruptedRunHasThoseOfItsSteps) {
  const FakeBundle fake("fake_slow");
  const std::vector<std::string> words = {"generate",       "--prompt-ids",     "1,2,3", "-n", "900",
                                          "--expert-stats", fake.path("s.json")};
  const Outcome outcome = runBundle(fake, words, /*interruptAfterMs=*/60000); // or when the first token is printed
  EXPECT_EQ(outcome.exitCode, 130) << outcome.err;
  EXPECT_EQ(tokensBySet(readText(fake.path("s.json")), "prefill"), json::parse(R"({"[1,2]":1,"[3,4]":1,"[5,6]":1})"));
}

TEST(ExpertStatistics, WhatKeepsThemFromBeingWritten) {
  FakeBundle fake;
  const auto saying = [&](const std::string &command, const std::string &path, int exitCode) {
    const Outcome outcome = runBundle(fake, {command, "--expert-stats", path, "--prompt-ids", "1"});
    EXPECT_EQ(outcome.exitCode, exitCode);
    EXPECT_EQ(outcome.out, "") << "nothing has run, or all has and is not printed";
    return outcome.err;
  };
  EXPECT_EQ(saying("routes", "/nonexistent/s", 1),
            "run: error: --expert-stats /nonexistent/s: cannot be written: No such file or directory; name a file in "
            "an existing folder\n");
  EXPECT_EQ(saying("routes", "/dev/full", 3), "run: error: --expert-stats /dev/full: could not be written completely: "
                                              "No space left on device; free space on its disk\n");
  EXPECT_EQ(saying("routes", fake.path("manifest.json"), 1),
            "run: error: --expert-stats " + fake.path("manifest.json") +
                ": is a file of the bundle, which would be damaged; name another file\n");
  fake.manifest["model"]["moe_layers"] = json::array();
  fake.write();
  EXPECT_EQ(saying("logits", fake.path("s"), 1),
            "run: error: --expert-stats: the model has no experts to count; leave it out\n");
  for (const auto &entry : std::filesystem::directory_iterator(fake.folder))
    EXPECT_EQ(entry.path().string().find("partial"), std::string::npos) << entry.path();
}
