// --counters: what the exchange of all ranks sent, and what the routes say of nodes, bytes and experts; --trace: when.
#include "engine/OutputFile.h"
#include "engine/RouteTraffic.h"
#include "fake/FakeBundle.h"
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// A layer's table for tokens of `rank`, with expert e in slot e.
std::vector<int32_t> tableInOrder(const k2rt_division &by, int64_t rank) {
  std::vector<int32_t> table(k2rt_placement_entries(by.experts, by.slots), -1);
  std::vector<int32_t> list(k2rt_places_entries(by.experts, by.slots));
  for (int32_t expert = 0; expert < by.experts; ++expert)
    table[expert] = expert;
  k2rt_placement_fill(table.data(), list.data(), by.experts, by.slots, by.ranks, by.nodes, rank);
  return table;
}

/// "nodes 2, sent 1+2, back 1+2": within a node + between nodes.
std::string rowsOf(const k2rt_division &by, int64_t source, const std::vector<int32_t> &chosen) {
  const std::vector<int32_t> table = tableInOrder(by, source);
  const int32_t *places = table.data() + k2rt_placement_places(by.experts, by.slots);
  const auto count = static_cast<int64_t>(chosen.size());
  std::vector<int32_t> slots;
  for (int64_t k = 0; k < count; ++k)
    slots.push_back(k2rt_placement_slot(places, by.experts, by.slots / by.nodes, chosen.data(), count, k));
  const k2rt_token_rows rows = k2rt_rows_of_token(table.data(), &by, source, chosen.data(), slots.data(), count);
  const auto pair = [](const int64_t *of) { return std::to_string(of[0]) + "+" + std::to_string(of[1]); };
  return "nodes " + std::to_string(rows.nodes) + ", sent " + pair(rows.sent) + ", back " + pair(rows.back);
}

/// Four ranks on two nodes.
struct TwoNodes : FakeBundle {
  TwoNodes() : FakeBundle("fake_ranks4") {
    manifest["topology"]["nodes"] = 2;
    manifest["topology"]["tiers"] = {"box", "wire"};
    for (int rank : {2, 3})
      manifest["ranks"][rank]["node"] = 1;
    write();
  }
};

} // namespace

TEST(TokenRows, OneHopCrossesToEachRank) {
  const k2rt_division by = {16, 16, 4, 2, 0};
  EXPECT_EQ(rowsOf(by, 0, {4, 5, 9, 14}), "nodes 2, sent 1+2, back 1+2");
  EXPECT_EQ(rowsOf(by, 1, {4, 5, 7}), "nodes 1, sent 0+0, back 0+0") << "what a rank has itself";
  EXPECT_EQ(rowsOf(by, 1, {}), "nodes 0, sent 0+0, back 0+0");
}

TEST(TokenRows, TwoHopsCrossOnceToANode) {
  const k2rt_division by = {16, 16, 4, 2, 1};
  // Rank 1 to rank 3, which has 14 itself and sends 9 on; the node's eight experts are one subtree.
  EXPECT_EQ(rowsOf(by, 1, {4, 5, 9, 14}), "nodes 2, sent 1+1, back 1+1");
  EXPECT_EQ(rowsOf(by, 0, {4, 9, 14}), "nodes 2, sent 2+1, back 2+1");
}

// Two leaves of three experts; ranks have four and two. A rank that has a part of a leaf sends each row alone.
TEST(TokenRows, PartsOfALeafComeBackSingly) {
  const k2rt_division by = {6, 8, 2, 2, 0};
  EXPECT_EQ(rowsOf(by, 1, {0, 1, 2}), "nodes 1, sent 0+1, back 0+1");
  EXPECT_EQ(rowsOf(by, 1, {0, 2, 3}), "nodes 1, sent 0+1, back 0+2");
  EXPECT_EQ(rowsOf(by, 0, {4, 5}), "nodes 1, sent 0+1, back 0+2");
}

TEST(RouteTraffic, CountsTokensRowsNodesAndBytes) {
  const TwoNodes fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder, 0);
  ASSERT_TRUE(bundle) << bundle.error().text();
  RouteTraffic traffic(*bundle);
  const int32_t experts[] = {0, 4, 9, 14, -1, 1};
  traffic.count({0, 0, 0}, experts, /*table=*/0);
  EXPECT_EQ(traffic.nodes().sum, 1 + 1 + 1);
  EXPECT_EQ(traffic.nodes().most, 1);
  EXPECT_EQ(traffic.bytesBetweenNodes().sum, 2 * (16 + 16)) << "9 and 14 are on two ranks of node 1";
  EXPECT_EQ(traffic.bytesBetweenNodes().most, 64);
  EXPECT_DOUBLE_EQ(traffic.bytesBetweenNodes().mean(), 64.0 / 3);
  EXPECT_EQ(traffic.tokens(0), 3);
  EXPECT_EQ(traffic.expertRows(0), 2);
  EXPECT_EQ(traffic.expertRows(3), 1);
  EXPECT_EQ(traffic.deadExperts(0), 2);
  EXPECT_EQ(traffic.deadExperts(1), 3);
  EXPECT_DOUBLE_EQ(traffic.balancedness(0), 5.0 / 4 / 2);
}

TEST(RunCounters, HaveWhatRanksSent) {
  const TwoNodes fake;
  const Outcome outcome = runBundle(fake, {"logits", "--prompt-ids", "1,2,3,4,5,6,7,8,9,10", "--transport", "local",
                                           "--counters", fake.path("c.json")});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  std::ifstream file(fake.path("c.json"));
  json counters = json::parse(file);
  EXPECT_EQ(counters["steps"], 1);
  EXPECT_EQ(counters["tokens"], 10);
  EXPECT_EQ(counters["rounds"], (json{{"1", 1}}));
  EXPECT_EQ(counters["prompt_rows"]["fullest_over_mean"]["max"], 4.0) << "one prompt is on one of four ranks";
  // The fake's exchange sends token t to the rank of expert t % 16: 4..7 within the node, 8..10 between nodes.
  EXPECT_EQ(counters["tiers"]["box"]["payload_bytes"], 2 * 4 * 16) << counters["tiers"];
  EXPECT_EQ(counters["tiers"]["box"]["messages"], 2 * 4);
  EXPECT_EQ(counters["tiers"]["wire"]["payload_bytes"], 2 * 3 * 16);
  EXPECT_GT(counters["tiers"]["wire"]["control_bytes"], 0);
  // Two sites of the program, then records, results, that all have loaded; sums go to rank 0 behind these.
  ASSERT_EQ(counters["sites"].size(), 5u) << counters["sites"];
  EXPECT_EQ(counters["sites"][0]["op"], "all_to_all_rows");
  EXPECT_EQ(counters["sites"][0]["layer"], 1);
  EXPECT_EQ(counters["sites"][0]["group"], "ep");
  EXPECT_EQ(counters["sites"][0]["calls"], 1);
  EXPECT_EQ(counters["sites"][0]["payload_bytes"], (4 + 3) * 16);
  EXPECT_EQ(counters["sites"][2]["layer"], nullptr);
  EXPECT_EQ(counters["sites"][2]["calls"], 2) << "a record of the step, and one that asks for counters";
  EXPECT_EQ(counters["sites"][2]["payload_bytes"], 0);
  for (const json &site : counters["sites"]) {
    double waited = 0;
    for (const json &seconds : site["waited_for"])
      waited += seconds.get<double>();
    if (site["op"] == "scatter_rows") // rank 0 waits for nobody's message there
      EXPECT_LE(waited, site["waited_s"].get<double>() + 1e-9) << site;
    else
      EXPECT_NEAR(waited, site["waited_s"].get<double>(), 1e-9) << site;
  }
  ASSERT_EQ(counters["ranks"].size(), 4u);
  EXPECT_EQ(counters["ranks"][0]["tokens"], 10);
  EXPECT_TRUE(counters["layers"]["1"].contains("balancedness"));
}

TEST(RunCounters, PerplexityReadsAWindowOnEachRank) {
  const FakeBundle one, several("fake_ranks3");
  one.writeFile("text.json", "[[1,2,3],[9,8,7],[7,6,5],[5,5,5],[1,9,1]]");
  const std::vector<std::string> words = {"perplexity", one.path("text.json"), "--json"};
  std::vector<std::string> local = words;
  local.insert(local.end(), {"--transport", "local", "--counters", several.path("counters.json")});
  EXPECT_EQ(runBundle(several, local).out, runBundle(one, words).out);
  const json counters = json::parse(std::ifstream(several.path("counters.json")));
  EXPECT_EQ(counters["steps"], 2) << "of a window on each rank, and of the two that are left";
  for (const auto &[rank, tokens] : {std::pair{0, 6}, {1, 6}, {2, 3}})
    EXPECT_EQ(counters["ranks"][rank]["tokens"], tokens) << counters["ranks"];
}

// Placed in order, the last four would be on ranks that have ten already: 30, 30, 30, 30.
TEST(RunCounters, PromptsThatBeginTogetherAreEvened) {
  const TwoNodes fake;
  json prompts;
  for (const size_t length : {10, 10, 10, 10, 20, 20})
    prompts.push_back(std::vector<int32_t>(length, 5));
  fake.writeFile("batch.json", prompts.dump());
  const Outcome outcome = runBundle(fake, {"logits", "--batch-file", fake.path("batch.json"), "--json", "--transport",
                                           "local", "--counters", fake.path("c.json")});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  const json counters = json::parse(std::ifstream(fake.path("c.json")));
  EXPECT_EQ(counters["prompt_rows"], (json{{"steps", 1}, {"fullest_over_mean", {{"mean", 1.0}, {"max", 1.0}}}}));
  for (const json &rank : counters["ranks"])
    EXPECT_EQ(rank["tokens"], 20) << counters["ranks"];
}

TEST(RunCounters, WhatKeepsThemFromBeingWritten) {
  const FakeBundle one, several("fake_ranks2");
  const std::string file = several.path("c.json");
  const auto saying = [&](const FakeBundle &fake, std::vector<std::string> words) {
    words.insert(words.end(), {"--counters", file});
    const Outcome outcome = runBundle(fake, words);
    EXPECT_EQ(outcome.exitCode, 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_EQ(saying(one, {"logits", "--prompt-ids", "1"}),
            "run: error: --counters: the bundle has 1 rank, which exchanges nothing; leave it out\n");
  EXPECT_EQ(saying(several, {"info", "--transport", "local"}),
            "run: error: --counters: info runs no step, so nothing is counted; leave it out\n");
  EXPECT_EQ(saying(several, {"logits", "--prompt-ids", "1", "--transport", "local", "--expert-stats", file}),
            "run: error: --counters " + file + ": is the file of --expert-stats, too; name another file\n");
  const std::string spelt = several.folder + "/./c.json";
  EXPECT_EQ(saying(several, {"logits", "--prompt-ids", "1", "--transport", "local", "--trace", spelt}),
            "run: error: --counters " + file + ": is the file of --trace, too; name another file\n");
  EXPECT_FALSE(std::filesystem::exists(file));
  several.writeFile("batch.json", "[[1],[96,96]]"); // which the program refuses
  const Outcome failed = runBundle(several, {"generate", "--batch-file", several.path("batch.json"), "-n", "3",
                                             "--transport", "local", "--counters", file});
  EXPECT_EQ(failed.exitCode, 3);
  EXPECT_FALSE(std::filesystem::exists(file)) << "a run that failed has no counters";
}

TEST(RunTraces, HaveTheLoadsOfExpertsThatWereCounted) {
  FakeBundle fake("fake_ranks2");
  const std::string path = fake.path("trace.json");
  runJson(fake, {"generate", "--prompt-ids", "1,2,3,4", "-n", "3", "--ignore-eos", "--json", "--threads", "1",
                 "--transport", "local", "--counters", fake.path("c.json"), "--trace", path});
  const json loads = json::parse(std::ifstream(path))["otherData"]["layers"]["1"];
  const json counters = json::parse(std::ifstream(fake.path("c.json")));
  EXPECT_EQ(loads["balancedness"], counters["layers"]["1"]["balancedness"]);
  EXPECT_FALSE(loads["dead"].empty());
  EXPECT_TRUE(loads["hot"].is_array());
}

TEST(RunTraces, AKilledRunLeavesNoFile) {
  FakeBundle fake("fake_slow");
  const std::string path = fake.path("trace.json");
  const auto left = [&] {
    int files = 0;
    for (const auto &entry : std::filesystem::directory_iterator(fake.folder))
      files += entry.path().filename().string().rfind("trace.json", 0) == 0;
    return files;
  };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    OutputFile file = *OutputFile::create("--trace", path);
    std::fputs("half of it", file.stream());
    std::fflush(file.stream());
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(left(), 0);
  OutputFile whole = *OutputFile::create("--trace", path);
  EXPECT_TRUE(whole.finish());
  EXPECT_EQ(left(), 1);
}

TEST(RunTraces, HaveEachRankAndItsCollectives) {
  FakeBundle fake("fake_ranks3");
  const std::string path = fake.path("trace.json");
  runJson(fake, {"generate", "--prompt-ids", "1,2,3,4", "-n", "3", "--ignore-eos", "--json", "--threads", "1",
                 "--transport", "local", "--trace", path});
  std::map<int, int> steps;
  std::map<std::pair<int, std::string>, int> collectives; // by process and name
  std::map<int64_t, double> under;                        // since when, by id
  std::set<std::string> processes;
  const json trace = json::parse(std::ifstream(path));
  for (const json &event : trace["traceEvents"]) {
    const std::string name = event["name"], phase = event["ph"];
    const int process = event["pid"];
    if (name == "process_name")
      processes.insert(event["args"]["name"].get<std::string>());
    steps[process] += name == "step";
    if (phase == "b") {
      ++collectives[{process, name}];
      EXPECT_TRUE(under.emplace(event["id"].get<int64_t>(), event["ts"].get<double>()).second);
      EXPECT_GE(event["args"]["waited_us"], 0);
    } else if (phase == "e") {
      EXPECT_GE(event["ts"], under.at(event["id"]));
      under.erase(event["id"].get<int64_t>());
    }
  }
  EXPECT_EQ(processes, (std::set<std::string>{"rank 0", "rank 1", "rank 2"}));
  EXPECT_TRUE(under.empty());
  for (const int process : {1, 2, 3}) {
    EXPECT_EQ(steps[process], 3);
    EXPECT_EQ((collectives[{process, "all_to_all_rows ep @0"}]), 3);
    EXPECT_EQ((collectives[{process, "results"}]), 3);
    EXPECT_GE((collectives[{process, "records"}]), 3);
  }
}
