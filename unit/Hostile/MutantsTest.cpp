//===- MutantsTest.cpp - thousands of hostile files -----------------------===//
//
// Every reader of files from outside, in the process that has it: a mutant is accepted or refused with one message that
// names its place. Crashes, hangs and memory without bound fail the test; with K2C_INSTRUMENT=address it is the check
// of every access. The seeds are fixed, so that a mutant is a number.
//
//===----------------------------------------------------------------------===//
#include "../Model/TestFiles.h"
#include "Mutator.h"
#include "base/Utf8.h"
#include "fake/FakeBundle.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Model/CheckWeights.h"
#include "k2c/Planner/Workload.h"
#include "k2c/Weights/WeightIndex.h"
#include "program/Manifest.h"
#include "program/Weights.h"
#include "text/Tokenizer.h"

#include <chrono>
#include <functional>
#include <regex>
#include <set>
#include <sys/resource.h>

using namespace k2c;
using namespace k2c::test;

namespace {

constexpr double maxSeconds = 5; // a mutant takes milliseconds; sanitizers and a busy machine are forgiven

/// What a reader said: nothing when it accepted.
using Verdict = std::optional<std::string>;

template <class T> Verdict verdict(const T &result) { return result ? std::nullopt : Verdict(result.error().text()); }

/// A message without what differs from mutant to mutant.
std::string kindOf(std::string text) {
  text = std::regex_replace(text, std::regex("'[^']*'|\"[^\"]*\""), "Q");
  return std::regex_replace(text, std::regex("^.*?: |-?[0-9.]+(e[+-]?[0-9]+)?"), "#").substr(0, 60);
}

class Mutants : public testing::Test {
protected:
  static void SetUpTestSuite() {
#ifndef __SANITIZE_ADDRESS__ // whose shadow is address space
    rlimit limit = {rlim_t(6) << 30, rlim_t(6) << 30};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
#endif
  }

  /// Reads `rounds` mutants of which `minRefused` are not accepted, with as many kinds of messages as `minKinds`. A
  /// message begins with `place`.
  void judge(int rounds, int minRefused, size_t minKinds, const std::string &place,
             const std::function<Verdict(uint32_t seed)> &read) {
    int refused = 0;
    std::set<std::string> kinds;
    for (int seed = 0; seed < rounds; ++seed) {
      const auto begin = std::chrono::steady_clock::now();
      const Verdict said = read(uint32_t(seed));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      EXPECT_LT(took.count(), maxSeconds) << "mutant " << seed;
      if (!said)
        continue;
      ++refused;
      kinds.insert(kindOf(folder.relative(*said)));
      std::string clean;
      appendUtf8(*said, clean);
      EXPECT_EQ(clean, *said) << "mutant " << seed << ": not UTF-8";
      EXPECT_EQ(said->find('\n'), std::string::npos) << "mutant " << seed << ": " << *said;
      EXPECT_LT(said->size(), 2000u) << "mutant " << seed;
      EXPECT_NE(said->find(place), std::string::npos) << "mutant " << seed << ": " << *said;
    }
    EXPECT_GE(refused, minRefused);
    EXPECT_GE(kinds.size(), minKinds);
  }
  static void appendUtf8(const std::string &text, std::string &clean) { k2c::appendWellFormed(text, false, clean); }

  TempFolder folder;
};

TEST_F(Mutants, Configs) {
  for (const char *family : {"llama", "kimi_k2", "mixtral", "deepseek_v2"}) {
    const std::string text = readFile(oracle(family) + "/config.json");
    judge(150, 60, 30, "config.json", [&](uint32_t seed) {
      folder.write("config.json", Mutator(seed).json(text));
      return verdict(loadModelSpec(folder.path));
    });
  }
}

TEST_F(Mutants, GenerationConfigs) {
  folder.write("config.json", readFile(oracle("llama") + "/config.json"));
  judge(100, 20, 8, "generation_config.json", [&](uint32_t seed) {
    folder.write("generation_config.json", Mutator(seed).json(readFile(oracle("llama") + "/generation_config.json")));
    return verdict(loadModelSpec(folder.path));
  });
}

/// Opens the checkpoint in `path`, compares it with the model's tensors and reads every one.
Verdict readCheckpoint(const std::string &path, ModelSpec spec) {
  Expected<Checkpoint> checkpoint = Checkpoint::open(path);
  if (!checkpoint)
    return checkpoint.error().text();
  if (Status status = checkWeights(spec, *checkpoint); !status)
    return status.error().text();
  for (const TensorInfo &tensor : checkpoint->tensors()) {
    std::string data(tensor.bytes(), '\0');
    if (Status status = checkpoint->read(tensor, 0, data.data(), data.size()); !status)
      return status.error().text();
  }
  return std::nullopt;
}

TEST_F(Mutants, SafetensorsHeaders) {
  Expected<ModelSpec> spec = loadModelSpec(oracle("llama"));
  ASSERT_TRUE(spec);
  const std::string bytes = readFile(oracle("llama") + "/model.safetensors");
  judge(400, 300, 30, "", [&](uint32_t seed) {
    folder.write("model.safetensors", Mutator(seed).safetensors(bytes));
    return readCheckpoint(folder.path, *spec);
  });
}

TEST_F(Mutants, SafetensorsIndexes) {
  const std::string source = oracle("deepseek_v3");
  Expected<ModelSpec> spec = loadModelSpec(source);
  ASSERT_TRUE(spec);
  for (const char *shard : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
    std::filesystem::create_symlink(source + "/" + shard, folder / shard);
  const std::string text = readFile(source + "/model.safetensors.index.json");
  judge(200, 100, 10, "", [&](uint32_t seed) {
    folder.write("model.safetensors.index.json", Mutator(seed).json(text));
    return readCheckpoint(folder.path, *spec);
  });
}

const std::string sample = "The 12 \u00e9\u4e2d<|bos|>  \n\xff\U0001f600";

Verdict useTokenizer(const k2c::Expected<k2c::runtime::Tokenizer> &tokenizer) {
  if (!tokenizer)
    return tokenizer.error().text();
  k2c::Expected<std::vector<int32_t>> ids = tokenizer->encode(sample, true);
  if (!ids)
    return ids.error().text();
  for (int32_t id : *ids)
    EXPECT_TRUE(id >= 0 && id < tokenizer->size());
  const std::string text = tokenizer->decode(*ids, false);
  std::string clean;
  k2c::appendWellFormed(text, false, clean);
  EXPECT_EQ(text, clean);
  return std::nullopt;
}

std::string tokenizerFile(const std::string &name) {
  return readFile(K2C_SOURCE_DIR "/test/Runtime/tokenizers/" + name);
}

TEST_F(Mutants, Tokenizers) {
  for (const char *name : {"mixtral.json", "metaspace.json", "fold.json", "flags.json", "deepseek.json"}) {
    const std::string text = tokenizerFile(name);
    judge(120, 30, 30, "t.json", [&](uint32_t seed) {
      return useTokenizer(k2c::runtime::Tokenizer::parse(Mutator(seed).json(text), "t.json"));
    });
  }
}

TEST_F(Mutants, TiktokenModels) {
  const std::string ranks = tokenizerFile("kimi.model");
  const nlohmann::json given = nlohmann::json::parse(tokenizerFile("kimi.rules.json"));
  k2c::runtime::TiktokenRules rules;
  rules.patterns = given["pattern"].get<std::vector<std::string>>();
  rules.reserved = 256;
  rules.configName = "c.json";
  judge(150, 100, 3, "t.model", [&](uint32_t seed) {
    return useTokenizer(k2c::runtime::Tokenizer::parseRanks(Mutator(seed).lines(ranks), "t.model", rules));
  });
  judge(100, 40, 10, "c.json", [&](uint32_t seed) {
    k2c::runtime::TiktokenRules changed = rules;
    changed.config = Mutator(seed).json(given["config"].dump());
    return useTokenizer(k2c::runtime::Tokenizer::parseRanks(ranks, "t.model", changed));
  });
}

TEST_F(Mutants, Manifests) {
  k2c::runtime::FakeBundle bundle;
  bundle.manifest["shares"] = nlohmann::json::parse(R"([{"slots":1,"experts":2,"items":2,"item_bytes":1024}])");
  const std::string text = bundle.manifest.dump();
  judge(300, 150, 45, "manifest.json", [&](uint32_t seed) {
    return verdict(k2c::runtime::parseManifest(Mutator(seed).json(text), "manifest.json", 0));
  });
}

TEST_F(Mutants, WeightIndexesOfTheRuntime) {
  k2c::runtime::FakeBundle bundle;
  const std::string text = bundle.index.dump();
  judge(200, 100, 13, "weights", [&](uint32_t seed) {
    return verdict(k2c::runtime::Weights::map(bundle.folder, "weights/index.json", Mutator(seed).json(text), 1));
  });
}

TEST_F(Mutants, WeightIndexesOfTheCompiler) {
  const std::string a(32, 'a'), c(32, 'c'), hash(16, 'd');
  const BlobRange embed{a, a + ".bin", 0, 4096, hash, {hash}}, expert{a, c + ".bin", 4096, 8192, hash, {hash}};
  BlobRange pieces{a, "", 0, 4096, hash, {hash}};
  pieces.pieces = {{0, 8, 100, 0}, {1, 200, 56, 100}};
  const WeightIndex index = {{{0, "embed", std::nullopt, {embed}, false},
                              {1, "up", 3, {expert, std::nullopt, expert}, true},
                              {2, "q", 3, {pieces}, false},
                              {3, "down", 3, {pieces, std::nullopt}, true}},
                             {{"a.safetensors", 108}, {"b.safetensors", 256}}};
  std::filesystem::create_directories(folder / "weights");
  ASSERT_TRUE(writeWeightIndex(index, folder.path));
  const std::string text = readFile(folder / "weights/index.json");
  judge(200, 100, 13, "index.json", [&](uint32_t seed) {
    folder.write("weights/index.json", Mutator(seed).json(text));
    return verdict(readWeightIndex(folder.path));
  });
}

TEST_F(Mutants, Topologies) {
  const std::string text = readFile(K2C_SOURCE_DIR "/models/topologies/cpu2x1.yaml");
  judge(200, 60, 9, "t.yaml",
        [&](uint32_t seed) { return verdict(parseTopology(Mutator(seed).lines(text), "t.yaml")); });
}

TEST_F(Mutants, Workloads) {
  const std::string text = "k2workload: 1\nname: chat\nprompt_tokens: {median: 1200, sigma: 1.0, most: 32768}\n"
                           "output_tokens: {histogram: [[128, 0.5], [4096, 0.1]]}\nmulti_turn: {share: 0.6, "
                           "history_tokens: 4000}\ntargets: {first_token: 2 s, per_token: 50 ms}\narrival_rate: 40\n";
  judge(200, 60, 12, "w.yaml",
        [&](uint32_t seed) { return verdict(parseWorkload(Mutator(seed).lines(text), "w.yaml")); });
}

/// The compiler and the runtime, which share no code, print quoted bytes alike.
TEST(Messages, OfBothSidesEscapeAlike) {
  const std::string text =
      "k \u00e9\u009f\u0800\ue000\U00010000\U0010ffff\x1b[2J\xed\xa0\x80\xe0\x9f\xbf\xf4\x90\x80\x80";
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    const std::string mutant = Mutator(seed).bytes(text);
    const std::string ours = Error{"", mutant, ""}.text();
    EXPECT_EQ(ours, (k2c::Error{K2RT_SYSTEM, "", mutant, ""}.text())) << "mutant " << seed;
    EXPECT_EQ(ours.find_first_of("\x1b\x7f\n"), ours.npos) << "mutant " << seed;
  }
}

} // namespace
