// Messages of DIR/run about prompts, routes and flags, each with the condition that makes it and in full.
#include "../LimitedChild.h"
#include "fake/FakeBundle.h"
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// stderr of a run that ends with `exitCode` and prints nothing else, without "run: error: " and the bundle's folder.
std::string saying(const FakeBundle &fake, const std::vector<std::string> &arguments, int exitCode = 1) {
  const Outcome outcome = runBundle(fake, arguments);
  EXPECT_EQ(outcome.exitCode, exitCode) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  std::string text = outcome.err;
  for (size_t at; (at = text.find(fake.folder + "/")) != text.npos;)
    text.erase(at, fake.folder.size() + 1);
  const std::string begin = "run: error: ";
  EXPECT_EQ(text.rfind(begin, 0), 0u) << text;
  return text.substr(std::min(begin.size(), text.size()));
}

} // namespace

TEST(PromptMessages, OfIds) {
  FakeBundle fake;
  EXPECT_EQ(saying(fake, {"generate", "--prompt-ids", "1,x"}),
            "--prompt-ids: \"x\" does not begin with a token id of 32 bits; write 1,2,3\n");
  EXPECT_EQ(saying(fake, {"generate", "--prompt-ids", "1," + std::string(100000, '9')}),
            "--prompt-ids: \"" + std::string(17, '9') +
                "...\" does not begin with a token id of 32 bits; write 1,2,3\n");
}

TEST(PromptMessages, OfWhatThisBuildLacks) {
  FakeBundle fake;
  EXPECT_EQ(saying(fake, {"generate", "--chat", "x"}), "--chat: chat templates are not in this build; use --prompt\n");
  EXPECT_EQ(saying(fake, {"serve"}), "serve: HTTP serving is not in this build; use generate --batch-file\n");
  EXPECT_EQ(saying(fake, {"generate", "--prompt", "hello"}),
            "--prompt: the bundle has no tokenizer; use --prompt-ids, or compile from a folder with a tokenizer\n");
  fake.writeFile("text.txt", "hello");
  EXPECT_EQ(saying(fake, {"generate", "--prompt-file", fake.path("text.txt")}),
            "--prompt-file: the bundle has no tokenizer; use --prompt-ids, or compile from a folder with a "
            "tokenizer\n");
  EXPECT_EQ(saying(fake, {"perplexity", fake.path("text.txt")}),
            "text.txt: the bundle has no tokenizer; give a .json file with a list of id lists\n");
}

TEST(PromptMessages, OfBatchFiles) {
  FakeBundle fake;
  const std::string write = R"(; write [[1,2,3],{"ids":[4,5],"seed":7}])";
  const auto batch = [&](const std::string &text) {
    fake.writeFile("b.json", text);
    return saying(fake, {"generate", "--batch-file", fake.path("b.json")});
  };
  const auto begins = [](const std::string &text, const std::string &with) { return text.rfind(with, 0) == 0; };
  for (const char *text : {"{}", "[]", "5"})
    EXPECT_EQ(batch(text), "b.json: is not a list of at least one prompt" + write + "\n");
  EXPECT_TRUE(begins(batch("[[1],5]"), "b.json: [1]: is not a list of token ids" + write));
  for (const char *text : {"[[1,\"2\"]]", "[[1,2.5]]", "[[4294967296]]"})
    EXPECT_TRUE(begins(batch(text), "b.json: [0]: has an element that is no token id" + write));
  EXPECT_EQ(batch("[{\"\x7f" + std::string(100000, 'Q') + "\":1}]"),
            "b.json: [0]: has the key \"\\x7f" + std::string(93, 'Q') + "...\"; an entry has ids and seed" + write +
                "\n");
  EXPECT_EQ(batch(R"([[1],{"seed":1,"ids":[1],"ids":[2]}])"),
            "b.json: [1].ids: occurs twice in its object; remove one of the two\n");
  EXPECT_EQ(batch("[[1e999]]"), "b.json: not JSON: number overflow parsing '1e999'\n");
  EXPECT_TRUE(begins(batch("[[1]"), "b.json:1:5: not JSON: syntax error"));
  EXPECT_EQ(saying(fake, {"generate", "--batch-file", fake.folder + "/weights"}),
            "weights: is a folder, a file is needed\n");
}

TEST(RouteMessages, OfFiles) {
  FakeBundle fake;
  const json routes = runJson(fake, {"routes", "--prompt-ids", "3,5,7", "--json"});
  const auto refusal = [&](const std::string &text) {
    fake.writeFile("r.json", text);
    return saying(fake, {"logits", "--prompt-ids", "3,5,7", "--routes", fake.path("r.json")});
  };
  EXPECT_EQ(refusal("[]"), "r.json: has no object \"layers\"; use what `routes --json` prints\n");
  EXPECT_EQ(refusal("{\"layers\":{}}"), "r.json: layers.1: is missing; use what `routes --json` prints\n");
  json other = routes;
  other["layers"][std::string(100000, 'Q')] = 1;
  EXPECT_EQ(refusal(other.dump()), "r.json: layers." + std::string(97, 'Q') +
                                       "...: is not an expert layer of this model; use what `routes --json` prints for "
                                       "the same model\n");
  const std::string remedy = "; use what `routes --json` prints for the same prompt\n";
  json changed = routes;
  changed["layers"]["1"]["experts"].erase(0);
  EXPECT_EQ(refusal(changed.dump()), "r.json: layers.1: has no list \"experts\" of 3 tokens" + remedy);
  changed = routes;
  changed["layers"]["1"]["weights"][1].erase(0);
  EXPECT_EQ(refusal(changed.dump()),
            "r.json: layers.1: token 1 does not list as many experts as weights, at most 2" + remedy);
}

TEST(InfoText, PrintsNoControlCharacter) {
  FakeBundle fake;
  fake.manifest["model"]["name"] = "m\x1b[2J";
  fake.manifest["numerics"]["id"] = "n\x07";
  fake.manifest["numerics"]["compute_reason"] = "w\x08";
  fake.manifest["topology"]["name"] = "t\x7f\u009f";
  fake.write();
  const std::string out = runBundle(fake, {"info"}).out;
  EXPECT_NE(out.find("model      m\\x1b[2J: 2 layers"), out.npos) << out;
  EXPECT_NE(out.find("numerics   n\\x07\ncompute    f32: w\\x08\ntopology   t\\x7f\\xc2\\x9f\n"), out.npos) << out;
}

TEST(FlagMessages, OfBench) {
  FakeBundle fake;
  EXPECT_EQ(saying(fake, {"bench", "--batch", "100"}),
            "--batch: is 100, the bundle's max_sequences is 4; choose less, or compile with larger limits\n");
}

TEST(FlagMessages, NameTheHelp) {
  FakeBundle fake;
  EXPECT_EQ(saying(fake, {"dance"}, 2), "there is no command 'dance'; see run --help\n");
  const std::string text = saying(fake, {std::string(100000, 'Q')}, 2);
  EXPECT_EQ(text, "there is no command '" + std::string(97, 'Q') + "...'; see run --help\n");
  for (const std::vector<std::string> &arguments : std::vector<std::vector<std::string>>{
           {"info", "--threads", std::string(100000, 'Q')},
           {"generate", "--prompt-ids", "1", "--temperature", std::string(99999, 'Q')},
           {"generate", "--prompt-ids", "1", "--" + std::string(99999, 'Q')}}) {
    const std::string said = saying(fake, arguments, 2);
    EXPECT_LE(std::count(said.begin(), said.end(), 'Q'), 200) << said;
    EXPECT_LE(said.size(), 400u) << said;
  }
  const std::string threads = saying(fake, {"info", "--threads", std::string(100000, 'Q')}, 2);
  EXPECT_EQ(threads.rfind("--threads: '" + std::string(97, 'Q') + "...' is not a whole number from 1 to ", 0), 0u)
      << threads;
  EXPECT_EQ(
      saying(fake, {"info", "--transport", std::string(99999, 'Q')}),
      "--transport " + std::string(97, 'Q') +
          "...: is unknown; use local, ranks as threads of this process; mpi, processes that mpirun starts; or ucx, "
          "processes that DIR/launch.sh --node I starts\n");
}

TEST(FlagMessages, OfATraceWithoutSpace) {
  FakeBundle fake;
  const Outcome outcome = runBundle(fake, {"info", "--json", "--trace", "/dev/full"});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_EQ(outcome.err, "run: error: --trace /dev/full: could not be written completely: No space left on device; "
                         "free space on its disk\n");
}

/// What a shell command says, on both streams.
static std::string saidByShell(const std::string &command) {
  std::string said;
  FILE *const output = ::popen(("exec 2>&1; " + command).c_str(), "r");
  for (int c; (c = std::fgetc(output)) != EOF;)
    said += char(c);
  return ::pclose(output) >= 0 ? said : "no shell";
}

// The text has no room, or the values that are read from it, or what it takes to free these.
TEST(MemoryMessages, OfAFileThatTheProgramHasNoRoomFor) {
  if (!k2c::test::canLimitMemory)
    GTEST_SKIP() << "a sanitizer takes memory itself";
  FakeBundle fake;
  std::string prompt = "[[1";
  for (int64_t token = 1; token < 6'000'000; ++token) // 16 bytes each when they are read
    prompt += ",1";
  fake.writeFile("large.json", prompt + "]]");
  for (int64_t megabytes : {20, 60, 100, 250})
    EXPECT_EQ(saidByShell("ulimit -v " + std::to_string(megabytes << 10) + "; exec '" + fake.path("run") +
                          "' generate --batch-file '" + fake.path("large.json") + "'"),
              "run: error: run: the system refuses memory\n")
        << megabytes;
}

TEST(GenerateNotes, SayTheRates) {
  FakeBundle fake;
  const Outcome outcome = runBundle(fake, {"generate", "--prompt-ids", "1,2,3", "-n", "2", "--ignore-eos"});
  EXPECT_EQ(outcome.exitCode, 0);
  EXPECT_EQ(outcome.err.rfind("3 prompt tokens at ", 0), 0u) << outcome.err;
  EXPECT_NE(outcome.err.find(" tokens/s, 2 new tokens at "), std::string::npos) << outcome.err;
}
