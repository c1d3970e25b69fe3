// DIR/run as users call it: output fields, exit codes, memory, trace.
#include "fake/FakeBundle.h"
#include "k2rt/numerics.h"
#include "k2rt/reserve.h"
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

void expectError(const Outcome &outcome, int exitCode, const std::string &part) {
  EXPECT_EQ(outcome.exitCode, exitCode) << outcome.err;
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

json readJsonFile(const std::string &path) {
  std::ifstream file(path);
  return json::parse(file, nullptr, false);
}

} // namespace

TEST(Run, GenerateMatchesTheModel) {
  FakeBundle fake;
  const json result = runJson(fake, {"generate", "--prompt-ids", "5,6,7", "-n", "20", "--ignore-eos", "--json"});
  EXPECT_EQ(result["prompt_ids"], json({5, 6, 7}));
  EXPECT_EQ(result["ids"].get<std::vector<int32_t>>(), fakeContinuation({5, 6, 7}, 20, 1)) << result;
  EXPECT_EQ(result["finish"], "length");
  EXPECT_EQ(result["text"], "");
  EXPECT_GT(result["prefill_tokens_per_s"], 0);
  EXPECT_GT(result["decode_tokens_per_s"], 0);
}

TEST(Run, EosEndsAndIsListed) {
  FakeBundle fake;
  const std::vector<int32_t> all = fakeContinuation({5, 6, 7}, 20, 1);
  fake.manifest["eos"] = {all[4]};
  fake.write();
  const size_t end = std::find(all.begin(), all.end(), all[4]) - all.begin() + 1;
  const json result = runJson(fake, {"generate", "--prompt-ids", "5,6,7", "-n", "20", "--json"});
  EXPECT_EQ(result["ids"].get<std::vector<int32_t>>(), std::vector<int32_t>(all.begin(), all.begin() + end));
  EXPECT_EQ(result["finish"], "stop");
}

TEST(Run, BatchEqualsSingles) {
  FakeBundle fake;
  fake.writeFile("batch.json", "[[1,2,3],[4],[5,6,7,8,9,10,11,12,13],[1,2],[3,3,3],[80]]");
  const json batch = runJson(fake, {"generate", "--batch-file", fake.path("batch.json"), "-n", "9", "--ignore-eos",
                                    "--json", "--threads", "3"});
  ASSERT_EQ(batch.size(), 6u) << batch;
  for (const json &entry : batch) {
    const auto prompt = entry["prompt_ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(entry["ids"].get<std::vector<int32_t>>(), fakeContinuation(prompt, 9));
  }
}

TEST(Run, TextEndsBeforeAStopString) {
  FakeBundle fake;
  const std::string tokenizer = K2C_SOURCE_DIR "/models/bundled/tokenizer.json";
  std::filesystem::copy_file(tokenizer, fake.path("tokenizer.json"));
  fake.manifest["memory"]["reserve_bytes"] =
      fake.manifest["memory"]["reserve_bytes"].get<int64_t>() +
      K2RT_RESERVE_TOKENIZER_FACTOR * static_cast<int64_t>(std::filesystem::file_size(tokenizer));
  fake.write();
  std::vector<std::string> arguments = {"generate", "--prompt-ids", "40,41", "-n", "12", "--ignore-eos", "--json"};
  const std::string text = runJson(fake, arguments).value("text", "");
  ASSERT_GE(text.size(), 8u) << runJson(fake, arguments);
  const std::string stop = text.substr(5, 2), before = text.substr(0, text.find(stop));
  arguments.insert(arguments.end(), {"--stop", "never in it", "--stop", stop});
  const json stopped = runJson(fake, arguments);
  EXPECT_EQ(stopped["text"], before);
  EXPECT_EQ(stopped["finish"], "stop");
  arguments.erase(std::find(arguments.begin(), arguments.end(), "--json"));
  EXPECT_EQ(runBundle(fake, arguments).out, before + "\n") << "what may become a stop string is held back";
}

TEST(Run, LogitsLastAllAndBatch) {
  FakeBundle fake;
  const json all = runJson(fake, {"logits", "--prompt-ids", "9,8,7,6,5,4,3,2,1,0", "--all", "--json"});
  const json last = runJson(fake, {"logits", "--prompt-ids", "9,8,7,6,5,4,3,2,1,0", "--json", "--chunk", "3"});
  ASSERT_EQ(all["logits"].size(), 10u) << all;
  ASSERT_EQ(last["logits"].size(), 1u);
  EXPECT_EQ(all["logits"][9], last["logits"][0]);
  EXPECT_EQ(all["logits"][9].size(), 97u);
  // 4/3 and v/1024 come back as the same float32.
  for (const json &value : all["logits"][9])
    EXPECT_TRUE(value.get<float>() == 1.0f + 1.0f / 3.0f ||
                value.get<float>() * 1024 == std::floor(value.get<float>() * 1024));
  fake.writeFile("batch.json", "[[9,8,7,6,5,4,3,2,1,0],[4]]");
  const json batch = runJson(fake, {"logits", "--batch-file", fake.path("batch.json"), "--json"});
  EXPECT_EQ(batch[0], last);
  EXPECT_EQ(batch.size(), 2u);
}

TEST(Run, RoutesAreSortedAndCanBeForced) {
  FakeBundle fake;
  const json routes = runJson(fake, {"routes", "--prompt-ids", "3,5,7", "--json", "--chunk", "2"});
  const json &layer = routes["layers"]["1"];
  EXPECT_EQ(layer["experts"], json({{4, 3}, {7, 6}, {10, 9}})) << routes;
  EXPECT_EQ(layer["weights"], json({{0.75, 0.25}, {0.75, 0.25}, {0.75, 0.25}}));
  json changed = routes;
  changed["layers"]["1"]["experts"][2][0] = 0;
  fake.writeFile("same.json", routes.dump());
  fake.writeFile("changed.json", changed.dump());
  const auto logits = [&](const char *file) {
    return runJson(fake, {"logits", "--prompt-ids", "3,5,7", "--routes", fake.path(file), "--json"});
  };
  EXPECT_NE(logits("same.json"), logits("changed.json"));
  changed["layers"]["1"]["experts"][2][0] = 16;
  fake.writeFile("wrong.json", changed.dump());
  expectError(runBundle(fake, {"logits", "--prompt-ids", "3,5,7", "--routes", fake.path("wrong.json")}), 1,
              "layers.1: token 2 has an expert outside 0..15");
  changed["layers"]["1"]["experts"][2][0] = changed["layers"]["1"]["experts"][2][1];
  fake.writeFile("wrong.json", changed.dump());
  expectError(runBundle(fake, {"logits", "--prompt-ids", "3,5,7", "--routes", fake.path("wrong.json")}), 1,
              "layers.1: token 2 lists expert 9 twice");
  changed = routes;
  for (double weight : {1e39, -1e39}) {
    changed["layers"]["1"]["weights"][2][0] = weight;
    fake.writeFile("wrong.json", changed.dump());
    expectError(runBundle(fake, {"logits", "--prompt-ids", "3,5,7", "--routes", fake.path("wrong.json")}), 1,
                "layers.1: token 2 has an expert outside 0..15 or a weight that is no float32 number");
  }
  json other = routes;
  other["layers"]["0"] = other["layers"]["1"];
  fake.writeFile("wrong.json", other.dump());
  expectError(runBundle(fake, {"logits", "--prompt-ids", "3,5,7", "--routes", fake.path("wrong.json")}), 1,
              "layers.0: is not an expert layer of this model");
  changed["layers"].erase("1");
  fake.writeFile("wrong.json", changed.dump());
  expectError(runBundle(fake, {"hidden", "--prompt-ids", "3,5,7", "--routes", fake.path("wrong.json")}), 1,
              "layers.1: is missing");
}

TEST(Run, GeneratesToTheEndOfTheContextByDefault) {
  FakeBundle fake; // of 1,000 tokens
  std::string ids = "1";
  for (int token = 1; token < 998; ++token)
    ids += ",1";
  const json done = runJson(fake, {"generate", "--prompt-ids", ids, "--ignore-eos", "--json"});
  EXPECT_EQ(done["ids"].size(), 3u) << done; // the last needs no room in the cache
}

TEST(Run, ADroppedTokenHasEmptyLists) {
  FakeBundle fake;
  json routes = runJson(fake, {"routes", "--prompt-ids", "3,5,7", "--json"});
  routes["layers"]["1"]["experts"][1] = routes["layers"]["1"]["weights"][1] = json::array();
  fake.writeFile("dropped.json", routes.dump());
  const json logits =
      runJson(fake, {"logits", "--prompt-ids", "3,5,7", "--routes", fake.path("dropped.json"), "--json"});
  EXPECT_TRUE(logits.contains("logits")) << logits;
}

TEST(Run, ATemperatureIsANumber) {
  FakeBundle fake;
  expectError(runBundle(fake, {"generate", "--prompt-ids", "1", "--temperature", "nan"}), 2,
              "'nan' is not a number from 0 to 1e+06");
}

TEST(Run, ASeedHas64Bits) {
  FakeBundle fake;
  for (const char *seed : {"-1", "18446744073709551616", "1.5", "0x10"})
    expectError(runBundle(fake, {"generate", "--prompt-ids", "1", "--seed", seed}), 2,
                "is not a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(runBundle(fake, {"generate", "--prompt-ids", "1", "-n", "1", "--seed", "18446744073709551615"}).exitCode,
            0);
}

TEST(Run, NumbersAreDecimal) {
  FakeBundle fake;
  const json result = runJson(fake, {"generate", "--prompt-ids", "1", "-n", "010", "--ignore-eos", "--json"});
  EXPECT_EQ(result["ids"].size(), 10u);
}

TEST(Run, BenchTakesWhatFitsAndRefusesTheRest) {
  FakeBundle fake;
  const json steps = runJson(fake, {"bench", "--decode", "950", "--prefill", "3", "--repeat", "1", "--json"});
  EXPECT_EQ(steps["context"], 50) << "1000 positions, 950 of them for the steps";
  const json late = runJson(fake, {"bench", "--context", "990", "--prefill", "3", "--repeat", "1", "--json"});
  EXPECT_EQ(late["decode_tokens"], 10);
  const char *const huge = "9223372036854775807";
  expectError(runBundle(fake, {"bench", "--context", huge, "--decode", huge}), 1,
              "--decode: is 9223372036854775807, the bundle's max_context is 1000");
  expectError(runBundle(fake, {"bench", "--context", "990", "--decode", "11"}), 1,
              "--context plus --decode: is 1001, the bundle's max_context is 1000");
  expectError(runBundle(fake, {"bench", "--batch", "100"}), 1, "--batch: is 100, the bundle's max_sequences is");
}

TEST(Run, HiddenStatesOfEveryLayer) {
  FakeBundle fake;
  const json hidden = runJson(fake, {"hidden", "--prompt-ids", "3,5,7", "--json", "--chunk", "2"});
  const json &layers = hidden["layers"];
  ASSERT_EQ(layers.size(), 3u) << hidden;
  EXPECT_EQ(layers["embed"].size(), 3u);
  EXPECT_EQ(layers["1"][2][1].get<float>(), 2.0f + 7.0f / 128.0f + 1.0f / 1024.0f);
}

TEST(Run, InfoAddsUp) {
  FakeBundle fake;
  const json info = runJson(fake, {"info", "--json", "--threads", "2"});
  const json &rank = info["ranks"][0];
  int64_t sum = rank["reserve_bytes"];
  for (const json &bytes : rank["owned"])
    sum += bytes.get<int64_t>();
  EXPECT_EQ(sum, rank["peak_bytes"].get<int64_t>());
  EXPECT_EQ(rank["owned"]["code"], 12288);
  EXPECT_EQ(rank["reserve_parts"]["workers"], 2 * (8192 + 97 * 8)); // of two threads, a vocabulary of 97
  EXPECT_EQ(rank["reserve_parts"]["tokenizer"], 0);
  EXPECT_EQ(info["limits"]["step_tokens"], 48);
  EXPECT_EQ(info["kernels"].size(), 4u);
  EXPECT_EQ(runJson(fake, {"info", "--json", "--threads", "1536"})["ranks"][0]["threads"], 1536);
  runJson(fake, {"info", "--json", "--chunk", "7", "--trace", fake.path("t.json")});
  EXPECT_GT(readJsonFile(fake.path("t.json"))["traceEvents"].size(), 0u) << "the names of its tracks";
  expectError(runBundle(fake, {"info", "--trace", fake.path("no/t.json")}), 1, "cannot be written");
  std::filesystem::remove_all(fake.path("weights")); // shape-only bundles have info, too
  fake.list();
  EXPECT_EQ(runBundle(fake, {"info"}).exitCode, 0);
}

/// A sanitizer's shadow counts as anonymous memory of the process, so the certificate cannot be measured under it.
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
constexpr bool memoryIsOurs = false;
#else
constexpr bool memoryIsOurs = true;
#endif

TEST(Run, AnonymousMemoryIsTheCertificate) {
  if (!memoryIsOurs)
    GTEST_SKIP() << "the sanitizer's own memory is in the measurement";
  FakeBundle fake("fake_large");
  for (const char *threads : {"1", "2"}) {
    const json bench = runJson(fake, {"bench", "--prefill", "100", "--decode", "3", "--batch", "2", "--context", "40",
                                      "--repeat", "1", "--json", "--threads", threads});
    ASSERT_TRUE(bench.contains("anonymous_rss_bytes")) << bench;
    const double used = bench["anonymous_rss_bytes"], certified = bench["anonymous_certified_bytes"];
    EXPECT_LE(used, certified);
    EXPECT_GE(used, 0.99 * certified);
    EXPECT_GT(bench["bandwidth_probe_bytes_per_s"], 0);
    EXPECT_GE(bench["bandwidth_probe_bytes"], int64_t(256) << 20); // all that the device holds, and nothing beside it
    EXPECT_EQ(bench["bandwidth_probe_of"] == "caches", bench["bandwidth_probe_bytes"] <= bench["cache_bytes"]);
    EXPECT_EQ(bench["bytes_per_token"], 4096);
    EXPECT_EQ(bench["predicted"]["decode_s"], 0.5);
    EXPECT_GE(bench["prefill"]["max"], bench["prefill_tokens_per_s"]);
  }
}

TEST(Run, SmallBundlesStayWithinTheCertificate) {
  if (!memoryIsOurs)
    GTEST_SKIP() << "the sanitizer's own memory is in the measurement";
  FakeBundle fake;
  const json bench = runJson(fake, {"bench", "--json", "--repeat", "1", "--threads", "2"});
  EXPECT_LE(bench["anonymous_rss_bytes"].get<int64_t>(), bench["anonymous_certified_bytes"].get<int64_t>());
}

TEST(Run, TraceShowsVariants) {
  FakeBundle fake;
  const std::string path = fake.path("trace.json");
  runJson(fake, {"generate", "--prompt-ids", "1,2,3,4", "-n", "3", "--ignore-eos", "--json", "--threads", "2",
                 "--trace", path});
  const json trace = readJsonFile(path);
  ASSERT_TRUE(trace.contains("traceEvents"));
  std::set<std::string> variants;
  int steps = 0;
  for (const json &event : trace["traceEvents"]) {
    if (event["name"] == "append") {
      variants.insert(event["args"]["variant"].get<std::string>());
      EXPECT_LE(event["args"]["worker"], 1);
      EXPECT_GE(event["dur"], 0);
    }
    steps += event["name"] == "step";
  }
  EXPECT_EQ(variants, (std::set<std::string>{"many", "one"}));
  EXPECT_EQ(steps, 3);
}

TEST(Run, WrongUsageIs2) {
  FakeBundle fake;
  for (const std::vector<std::string> &arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"dance"},
                                             {"generate"},
                                             {"generate", "--prompt-ids", "1", "--prompt", "x"},
                                             {"generate", "--prompt-ids", "1", "--wings"},
                                             {"generate", "--prompt-ids", "1", "-n", "0"},
                                             {"routes"},
                                             {"info", "--threads", "0"},
                                             {"info", "--threads", "4097"},
                                             {"info", "--trace", ""},
                                             {"--bundle", "", "info"},
                                             {"generate", "--prompt-file", ""},
                                             {"generate", "--prompt-ids", "1", "--stop", ""},
                                             {"generate", "--prompt-ids", "1", "--logprobs", "2"},
                                             {"generate", "--prompt-ids", "1", "--no-special"},
                                             {"generate", "--batch-file", "b.json", "--no-special"},
                                             {"generate", "--prompt-ids", "1", "--temperature", "-1"}}) {
    const Outcome outcome = runBundle(fake, arguments);
    EXPECT_EQ(outcome.exitCode, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Run, AnUnknownCommandIsNamed) {
  FakeBundle fake;
  expectError(runBundle(fake, {"dance"}), 2, "run: error: there is no command 'dance'; see run --help");
}

TEST(Run, UserErrorsAre1) {
  FakeBundle fake;
  expectError(runBundle(fake, {"generate", "--prompt-ids", "97"}), 1, "id 97, the vocabulary is 0..96");
  expectError(runBundle(fake, {"generate", "--prompt-ids", ""}), 1, "token id");
  expectError(runBundle(fake, {"generate", "--prompt-ids", "1,x"}), 1, "\"x\" does not begin with a token id");
  expectError(runBundle(fake, {"generate", "--prompt-ids", "1", "-n", "1001"}), 1, "use -n 1000 at most");
  expectError(runBundle(fake, {"generate", "--prompt", "hello"}), 1, "the bundle has no tokenizer");
  expectError(runBundle(fake, {"generate", "--batch-file", "/nonexistent"}), 1, "no such file");
  expectError(runBundle(fake, {"generate", "--prompt-ids", "1", "--trace", "/nonexistent/t"}), 1, "--trace");
  expectError(runBundle(fake, {"bench", "--prefill", "2000"}), 1,
              "--prefill: is 2000, the bundle's max_context is 1000");
  expectError(runBundle(fake, {"serve", "--port", "80"}), 1, "not in this build");
  expectError(runBundle(fake, {"generate", "--chat", "x"}), 1, "not in this build");
  fake.writeFile("batch.json", "[[1,2],[]]");
  expectError(runBundle(fake, {"generate", "--batch-file", fake.path("batch.json")}), 1,
              "[1]: the prompt has no tokens");
}

TEST(Run, FailuresAtRunTimeAre3) {
  FakeBundle fake;
  expectError(runBundle(fake, {"generate", "--prompt-ids", "96,96"}), 3, "kernel append: failed with 7");
}

TEST(Run, HelpAndVersion) {
  FakeBundle fake;
  const Outcome help = runBundle(fake, {"--help"}), version = runBundle(fake, {"--version"});
  EXPECT_EQ(help.exitCode, 0);
  EXPECT_NE(help.out.find("Examples:"), std::string::npos);
  EXPECT_EQ(version.exitCode, 0);
  EXPECT_NE(version.out.find(", " K2RT_NUMERICS_TEXT ","), std::string::npos);
  EXPECT_NE(runBundle(fake, {"generate", "--help"}).out.find("Example:"), std::string::npos);
}

TEST(Run, DependsOnLibcLibmAndTheLoaderOnly) {
  FILE *pipe = ::popen("readelf -d '" K2RT_RUN_PROGRAM "'", "r");
  ASSERT_NE(pipe, nullptr);
  char line[512];
  int needed = 0;
  while (std::fgets(line, sizeof line, pipe))
    if (std::strstr(line, "(NEEDED)")) {
      ++needed;
      const std::string text = line;
      EXPECT_TRUE(text.find("[libc.so") != std::string::npos || text.find("[libm.so") != std::string::npos ||
                  text.find("[ld-linux") != std::string::npos || K2RT_INSTRUMENTED)
          << text;
    }
  ::pclose(pipe);
  EXPECT_GT(needed, 0);
}
