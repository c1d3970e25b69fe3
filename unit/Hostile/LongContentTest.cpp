//===- LongContentTest.cpp - messages about files with huge content -------===//
//
// A message quotes at most 200 characters of a file. Every value of every kind of file becomes a text and a number of
// 20,000 characters in turn, and a text of as many as readers of a bundle take, every object gets such a key: the file
// is read, or refused with a message that holds at most 200 of these characters and is short.
//
//===----------------------------------------------------------------------===//
#include "../Model/TestFiles.h"
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include "fake/FakeBundle.h"
#include "k2c/Cluster/Import.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Formulas/Query.h"
#include "k2c/Model/CheckWeights.h"
#include "k2c/Model/SpecJson.h"
#include "k2c/Planner/Evaluate.h"
#include "k2c/Planner/Workload.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/WeightIndex.h"
#include "program/Manifest.h"
#include "program/Weights.h"
#include "text/Tokenizer.h"

#include <functional>

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;

namespace {

constexpr size_t length = 20'000;
constexpr size_t maxText = 1500; // of a message beside the folder's path: ours, with lists of what is known
const std::string longText(length, 'Q'), longNumber = "9" + std::string(length - 1, '8');
const std::string acceptedText(JsonFields::maxStringBytes, 'Q');

using Read = std::function<std::optional<std::string>(const std::string &text)>;
template <class T> std::optional<std::string> verdict(const T &result) {
  return result ? std::nullopt : std::optional<std::string>(result.error().text());
}

/// Of what a report has, or why there is none.
std::optional<std::string> longestProblem(const Expected<VerifyReport> &report) {
  std::optional<std::string> longest;
  if (!report)
    return report.error().text();
  for (const Error &problem : report->problems)
    if (std::string text = problem.text(); !longest || text.size() > longest->size())
      longest = std::move(text);
  return longest;
}

/// Reads `text`; true when it is refused.
bool refused(const std::string &text, const Read &read, const std::string &what) {
  const std::optional<std::string> said = read(text);
  if (!said)
    return false;
  EXPECT_LE(std::count(said->begin(), said->end(), 'Q'), 200) << what << ": " << said->substr(0, 400);
  EXPECT_LE(std::count(said->begin(), said->end(), '8'), 220) << what << ": " << said->substr(0, 400);
  EXPECT_LE(said->size(), maxText) << what << ": " << said->substr(0, 400);
  return true;
}

void collect(const json &value, const json::json_pointer &at, std::vector<json::json_pointer> &all) {
  all.push_back(at);
  if (value.is_object())
    for (const auto &[key, member] : value.items())
      collect(member, at / key, all);
  else if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i)
      collect(value[i], at / i, all);
}

/// Judges the variants of a JSON text: at most `most` places, evenly spread. Returns how many were refused.
int judgeJson(const std::string &text, const Read &read, size_t most = 60) {
  const json document = json::parse(text);
  std::vector<json::json_pointer> places;
  collect(document, json::json_pointer(), places);
  const size_t step = std::max<size_t>(1, places.size() / most);
  int count = 0;
  for (size_t i = 0; i < places.size(); i += step) {
    json changed = document;
    changed[places[i]] = longText;
    const std::string asText = changed.dump(), where = places[i].to_string();
    count += refused(asText, read, where + " as a text");
    changed[places[i]] = acceptedText;
    count += refused(changed.dump(), read, where + " as a text that may be accepted");
    std::string asNumber = asText;
    asNumber.replace(asNumber.find('"' + longText + '"'), length + 2, longNumber);
    count += refused(asNumber, read, where + " as a number");
    changed[places[i]] = json::array({longText, json::array({longText})});
    count += refused(changed.dump(), read, where + " as a list");
    if (!document[places[i]].is_object())
      continue;
    changed = document;
    changed[places[i]][longText] = longText;
    count += refused(changed.dump(), read, where + " with a key");
    if (document[places[i]].empty())
      continue;
    const std::string first = document[places[i]].begin().key();
    changed[places[i]].erase(longText);
    changed[places[i]][longText] = changed[places[i]][first];
    changed[places[i]].erase(first);
    count += refused(changed.dump(), read, where + " with another key");
  }
  return count;
}

/// The same for a file of lines: each word of each line becomes a long one, of a long file in one of the two ways.
int judgeLines(const std::string &text, const Read &read) {
  int count = 0;
  size_t words = 0;
  static const std::string ends = " \t\n:=,[]{}<>\"'|";
  for (size_t begin = 0; begin < text.size();) {
    const size_t from = text.find_first_not_of(ends, begin), to = std::min(text.find_first_of(ends, from), text.size());
    if (from == text.npos)
      break;
    ++words;
    for (const std::string &word : {longText, longNumber})
      if (text.size() < 500 || words % 2 == (word == longText))
        count += refused(text.substr(0, from) + word + text.substr(to), read, "byte " + std::to_string(from));
    begin = to;
  }
  return count;
}

TEST(LongContent, OfConfigs) {
  TempFolder folder;
  for (const char *family : {"llama", "kimi_k2", "deepseek_v3_fp8"}) {
    const int count = judgeJson(
        readFile(oracle(family) + "/config.json"),
        [&](const std::string &text) {
          folder.write("config.json", text);
          return verdict(loadModelSpec(folder.path));
        },
        20);
    EXPECT_GE(count, 30) << family;
  }
}

TEST(LongContent, OfRopeScaling) {
  TempFolder folder;
  json config = configOf(oracle("llama"));
  config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
  config["torch_dtype"] = "float32";
  EXPECT_GE(judgeJson(config.dump(),
                      [&](const std::string &text) {
                        folder.write("config.json", text);
                        return verdict(loadModelSpec(folder.path));
                      }),
            60);
}

std::optional<std::string> readCheckpoint(const std::string &path, ModelSpec spec) {
  Expected<Checkpoint> checkpoint = Checkpoint::open(path);
  return checkpoint ? verdict(checkWeights(spec, *checkpoint)) : verdict(checkpoint);
}

TEST(LongContent, OfSafetensorsHeaders) {
  TempFolder folder;
  Expected<ModelSpec> spec = loadModelSpec(oracle("llama"));
  ASSERT_TRUE(spec);
  const std::string bytes = readFile(oracle("llama") + "/model.safetensors");
  size_t header = 0;
  for (int i = 7; i >= 0; --i)
    header = header << 8 | uint8_t(bytes[size_t(i)]);
  EXPECT_GE(judgeJson(bytes.substr(8, header),
                      [&](const std::string &text) {
                        folder.write("model.safetensors", safetensors(text, bytes.substr(8 + header)));
                        return readCheckpoint(folder.path, *spec);
                      }),
            100);
}

TEST(LongContent, OfSafetensorsIndexes) {
  TempFolder folder;
  const std::string source = oracle("deepseek_v3");
  Expected<ModelSpec> spec = loadModelSpec(source);
  ASSERT_TRUE(spec);
  for (const char *shard : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
    std::filesystem::create_symlink(source + "/" + shard, folder / shard);
  EXPECT_GE(judgeJson(
                readFile(source + "/model.safetensors.index.json"),
                [&](const std::string &text) {
                  folder.write("model.safetensors.index.json", text);
                  return readCheckpoint(folder.path, *spec);
                },
                20),
            30);
}

TEST(LongContent, OfTheBundlesSpec) {
  Expected<ModelSpec> spec = loadModelSpec(oracle("kimi_k2"));
  ASSERT_TRUE(spec);
  EXPECT_GE(judgeJson(specJson(*spec).dump(),
                      [&](const std::string &text) -> std::optional<std::string> {
                        Expected<JsonDocument> compiled = parseJson(text, "manifest.json");
                        return compiled ? verdict(checkSameSpec(*spec, "config.json", compiled->root()))
                                        : verdict(compiled);
                      }),
            100);
}

std::string tokenizerFile(const std::string &name) {
  return readFile(K2C_SOURCE_DIR "/test/Runtime/tokenizers/" + name);
}

TEST(LongContent, OfTokenizers) {
  for (const char *name : {"mixtral.json", "metaspace.json", "flags.json", "deepseek.json"}) {
    json document = json::parse(tokenizerFile(name));
    json rest = document; // all but the vocabulary, of which a few entries suffice
    rest["model"]["vocab"] = rest["model"]["merges"] = json::array();
    const int count = judgeJson(
        rest.dump(),
        [&](std::string text) -> std::optional<std::string> {
          for (const char *key : {"vocab", "merges"})
            if (const size_t at = text.find('"' + std::string(key) + "\":[]"); at != text.npos)
              text.replace(at, std::string(key).size() + 5,
                           '"' + std::string(key) + "\":" + document["model"][key].dump());
          const k2c::Expected<k2c::runtime::Tokenizer> tokenizer = k2c::runtime::Tokenizer::parse(text, "t.json");
          return tokenizer ? verdict(tokenizer->encode("The 12 \u00e9\u4e2d \U0001f600", true)) : verdict(tokenizer);
        },
        40);
    EXPECT_GE(count, 60) << name;
  }
}

TEST(LongContent, OfVocabularies) {
  const Read read = [](const std::string &text) { return verdict(k2c::runtime::Tokenizer::parse(text, "t.json")); };
  const json small = {{"model",
                       {{"type", "BPE"},
                        {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}},
                        {"merges", json::array({json::array({"a", "b"})})}}},
                      {"added_tokens", json::array({{{"id", 3}, {"content", "<s>"}}})},
                      {"decoder", {{"type", "Fuse"}}}};
  EXPECT_GE(judgeJson(small.dump(), read), 40);
  json twice = small;
  twice["model"]["vocab"] = {{"a", 0}, {std::string(60'000, 'Q'), 0}};
  EXPECT_TRUE(refused(twice.dump(), read, "an id of two tokens"));
  twice = small;
  twice["model"]["vocab"][longText] = 5;
  twice["added_tokens"][0] = {{"id", 6}, {"content", longText}};
  EXPECT_TRUE(refused(twice.dump(), read, "a token with two ids"));
}

TEST(LongContent, OfTiktokenFiles) {
  const json given = json::parse(tokenizerFile("kimi.rules.json"));
  k2c::runtime::TiktokenRules rules;
  rules.patterns = given["pattern"].get<std::vector<std::string>>();
  rules.reserved = 256;
  rules.configName = "c.json";
  const std::string ranks = tokenizerFile("kimi.model");
  EXPECT_GE(judgeLines(ranks.substr(0, 200),
                       [&](const std::string &text) {
                         return verdict(k2c::runtime::Tokenizer::parseRanks(text, "t.model", rules));
                       }),
            10);
  EXPECT_GE(judgeJson(
                given["config"].dump(),
                [&](const std::string &text) {
                  k2c::runtime::TiktokenRules changed = rules;
                  changed.config = text;
                  return verdict(k2c::runtime::Tokenizer::parseRanks(ranks, "t.model", changed));
                },
                20),
            20);
}

TEST(LongContent, OfManifests) {
  k2c::runtime::FakeBundle bundle;
  bundle.manifest["shares"] = json::parse(R"([{"slots":1,"experts":2,"items":2,"item_bytes":1024}])");
  EXPECT_GE(judgeJson(
                bundle.manifest.dump(),
                [](const std::string &text) { return verdict(k2c::runtime::parseManifest(text, "manifest.json", 0)); },
                200),
            150);
}

TEST(LongContent, OfWeightIndexes) {
  k2c::runtime::FakeBundle bundle;
  EXPECT_GE(judgeJson(bundle.index.dump(),
                      [&](const std::string &text) {
                        return verdict(k2c::runtime::Weights::map(bundle.folder, "weights/index.json", text, 1));
                      }),
            15);
  TempFolder folder;
  std::filesystem::create_directories(folder / "weights");
  const std::string name(32, 'c'), hash(16, 'd');
  const BlobRange range{name, name + ".bin", 0, 8192, hash, {hash}, {}};
  const BlobRange pieces{name, "", 0, 8192, hash, {hash}, {{0, 0, 8192, 0}}};
  ASSERT_TRUE(writeWeightIndex({{{0, "norm", 3, {range}, false},
                                 {1, "up", 3, {range, std::nullopt}, true},
                                 {2, "bias", 3, {pieces}, false},
                                 {3, "down", 3, {pieces, std::nullopt}, true}},
                                {{"model.safetensors", 8192}}},
                               folder.path));
  const std::string text = readFile(folder / "weights/index.json");
  const Read read = [&](const std::string &changed) {
    folder.write("weights/index.json", changed);
    return verdict(readWeightIndex(folder.path));
  };
  EXPECT_GE(judgeJson(text, read, 200), 150);
  // No bytes have these hashes, so all that are read are quoted.
  std::filesystem::create_directories(folder / "weights/checkpoint");
  for (const std::string file : {name + ".bin", std::string("checkpoint/model.safetensors")})
    folder.write("weights/" + file, std::string(8192, '\0'));
  EXPECT_GE(judgeJson(
                text,
                [&](const std::string &changed) {
                  folder.write("weights/index.json", changed);
                  return longestProblem(verifyBundle(folder.path));
                },
                200),
            260);
}

TEST(LongContent, OfListsOfFiles) {
  TempFolder folder;
  folder.write("run", "a program");
  EXPECT_GE(judgeJson(R"({"format":1,"files":[{"file":"run","bytes":9,"xxh3":"dddddddddddddddd"}]})",
                      [&](const std::string &text) {
                        folder.write("files.json", text);
                        return longestProblem(verifyBundleFiles(folder.path));
                      }),
            15);
}

TEST(LongContent, OfTopologies) {
  for (const char *name :
       {"models/topologies/cpu2x1.yaml", "models/topologies/4x8-h100.yaml", "test/Tools/Inputs/calibrated.yaml"})
    EXPECT_GE(judgeLines(readFile(std::string(K2C_SOURCE_DIR "/") + name),
                         [](const std::string &text) { return verdict(parseTopology(text, "t.yaml")); }),
              40)
        << name;
}

TEST(LongContent, OfImportedTopologies) {
  const Expected<Topology> like = loadTopology("4x8-h100");
  ASSERT_TRUE(like);
  int count = 0, files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(K2C_SOURCE_DIR "/test/Tools/Inputs/topologies")) {
    const std::string name = entry.path().filename().string(), text = readFile(entry.path().string());
    ++files;
    count += judgeLines(text.substr(0, 1500),
                        [&](const std::string &changed) { return verdict(importTopology(changed, name, *like)); });
  }
  EXPECT_GE(files, 3);
  EXPECT_GE(count, 100);
}

TEST(LongContent, OfWorkloads) {
  const std::string text = "k2workload: 1\nname: chat\nprompt_tokens: {median: 1200, sigma: 1.0, most: 32768}\n"
                           "output_tokens: {histogram: [[128, 0.5], [4096, 0.1]]}\nmulti_turn: {share: 0.6, "
                           "history_tokens: 4000}\ntargets: {first_token: 2 s, per_token: 50 ms}\narrival_rate: 40\n";
  EXPECT_GE(judgeLines(text, [](const std::string &t) { return verdict(parseWorkload(t, "w.yaml")); }), 40);
}

TEST(LongContent, OfLayouts) {
  EXPECT_GE(judgeLines("tp=2,ep=8,dp=4,overlap=1,layers=3+4x2",
                       [](const std::string &text) { return verdict(parseLayout(text, PlanPhase::Serve)); }),
            15);
}

TEST(LongContent, OfQueries) {
  int count = 0;
  for (const QueryFunction &function : queryFunctions())
    for (const char *text : {R"({"experts":256,"topk":8,"tokens":32})", R"({"model":"kimi-k2","pp":4})"})
      count += judgeJson(text, [&](const std::string &changed) -> std::optional<std::string> {
        Expected<JsonDocument> inputs = parseJson(changed, "--inputs");
        return inputs ? verdict(answerQuery(function.name, *inputs, {})) : verdict(inputs);
      });
  EXPECT_GE(count, 100);
}

TEST(LongContent, IsCutBetweenCharacters) {
  const std::string text = "k \u00e9\u009f\u0800\U0010ffff\x1b[2J\xed\xa0\x80" + std::string(20, 'a') + "\u4e2d\u4e2d";
  for (size_t most = 0; most < 70; ++most) {
    const std::string ours = shortened(text, most);
    EXPECT_LE(ours.size(), std::max<size_t>(most, 3));
    EXPECT_EQ(ours == printable(text), most >= printable(text).size());
  }
  EXPECT_EQ(shortened("\u4e2d\u4e2d\u4e2d", 8), "\u4e2d...");
  EXPECT_EQ(shortened("12345678", 8), "12345678");
  EXPECT_EQ(shortened("123456789", 8), "12345...");
  EXPECT_EQ(shortened(longText).size(), 100u);
  EXPECT_LE((Error{longText, longText, longText}.text().size()), 8192u) << "whatever a caller forgets";
  EXPECT_LE((Error{K2RT_SYSTEM, longText, longText, longText}.text().size()), 8192u);
}

} // namespace
