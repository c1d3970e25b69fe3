//===- SeedsTest.cpp - what the fuzzers of bundles begin with -------------===//
//
// Every file of fuzz/seeds is accepted: a fuzzer that begins with a file that is refused at its first key does not get
// far. Manifest/kimi_k2.json is manifest.json as `k2c compile test/EndToEnd/oracle/kimi_k2` writes it, and
// CompiledSpec/kimi_k2.json its "spec".
//
//===----------------------------------------------------------------------===//
#include "../../fuzz/RankManifests.h"
#include "../../fuzz/Rendezvous.h"
#include "../Model/TestFiles.h"
#include "ImportGraph.h"
#include "base/Json.h"
#include "engine/StepRecord.h"
#include "k2c/Model/SpecJson.h"
#include "k2c/Planner/RouteStatistics.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/WeightIndex.h"
#include "program/FileList.h"
#include "program/Manifest.h"
#include "program/Placement.h"
#include "program/Weights.h"
#include "run/Run.h"
#include <cstring>
#include <map>

using namespace k2c;
using namespace k2c::test;

namespace {

std::string seedPath(const std::string &name) { return K2C_SOURCE_DIR "/fuzz/seeds/" + name; }

/// The file `name` of a bundle is the seed.
void addSeed(const TempFolder &bundle, const std::string &name, const std::string &seed) {
  std::filesystem::create_directories(bundle / "weights");
  bundle.write(name, readFile(seedPath(seed)));
}

TEST(Seeds, Manifest) {
  const k2c::Expected<k2c::runtime::Manifest> manifest =
      k2c::runtime::parseManifest(readFile(seedPath("Manifest/kimi_k2.json")), "manifest.json", 0);
  ASSERT_TRUE(manifest) << manifest.error().text();
  EXPECT_FALSE(manifest->moeLayers.empty());
}

TEST(Seeds, CompiledSpec) {
  Expected<ModelSpec> spec = loadModelSpec(oracle("kimi_k2"));
  ASSERT_TRUE(spec) << spec.error().text();
  Expected<JsonDocument> compiled = parseJson(readFile(seedPath("CompiledSpec/kimi_k2.json")), "manifest.json");
  ASSERT_TRUE(compiled) << compiled.error().text();
  Status same = checkSameSpec(*spec, "config.json", compiled->root());
  EXPECT_TRUE(same) << same.error().text();
}

TEST(Seeds, WeightIndex) {
  for (const char *seed : {"shared", "experts"}) {
    TempFolder bundle;
    addSeed(bundle, "weights/index.json", std::string("WeightIndex/") + seed + ".json");
    bundle.write("weights/00000000000000000000000000000000.bin", std::string(4096, 0));
    Expected<VerifyReport> report = verifyBundle(bundle.path);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_TRUE(report->problems.empty()) << report->problems.front().text();
    const int64_t experts = seed == std::string("experts") ? 2 : 0;
    const auto weights = k2c::runtime::Weights::map(
        bundle.path, "weights/index.json", readFile(bundle / "weights/index.json"), 2, {{1, {experts, 0, 0}}, {1, {}}});
    EXPECT_TRUE(weights) << weights.error().text();
  }
}

TEST(Seeds, Rendezvous) {
  for (const char *seed : {"hello", "answer", "refusal"})
    EXPECT_EQ(readRendezvous(readFile(seedPath(std::string("Rendezvous/") + seed))), runtime::Reading::finished)
        << seed;
}

// A file that no test names would be held to nothing.
TEST(Seeds, AreThese) {
  std::map<std::string, int> count;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(seedPath("")))
    count[entry.path().parent_path().filename().string()] += entry.is_regular_file();
  count.erase("seeds");
  EXPECT_EQ(count, (std::map<std::string, int>{{"BundleFiles", 1},
                                               {"CompiledSpec", 1},
                                               {"Manifest", 1},
                                               {"Onnx", 5},
                                               {"Placement", 1},
                                               {"Prompts", 3},
                                               {"Ptx", 4},
                                               {"Rendezvous", 3},
                                               {"Statistics", 1},
                                               {"StepRecord", 1},
                                               {"WeightIndex", 2},
                                               {"WeightMap", 6}}));
}

TEST(Seeds, Onnx) {
  TempFolder folder;
  folder.write("weights.bin", std::string(48, 0));
  for (const char *seed : {"functions", "tensors", "llama", "mixtral", "deepseek"}) {
    const std::string bytes = readFile(seedPath(std::string("Onnx/") + seed + ".onnx"));
    const Expected<onnx::Graph> graph = onnx::readGraph(folder.write("model.onnx", bytes));
    ASSERT_TRUE(graph) << graph.error().text();
    const bool isDecoder = bytes.size() > 1000;
    EXPECT_EQ(bool(onnx::importGraph(*graph)), isDecoder) << seed;
  }
}

TEST(Seeds, Placement) {
  const auto placement = k2c::runtime::Placement::parse(
      {{"placement.json", readFile(seedPath("Placement/both.json")), 0}}, manifestOfPlacement(), /*rank=*/1);
  EXPECT_TRUE(placement) << placement.error().text();
}

TEST(Seeds, Statistics) {
  const Expected<RouteStatistics> read = parseStatistics(readFile(seedPath("Statistics/two.json")), "s.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->layers.size(), 2u);
  EXPECT_EQ(read->outputs->decode, 6);
}

TEST(Seeds, StepRecord) {
  const k2c::runtime::Manifest manifest = manifestOfSteps();
  k2c::runtime::StepArrays arrays = std::move(*k2c::runtime::StepArrays::allocateOwn(manifest));
  const std::string text = readFile(seedPath("StepRecord/sampled.bin"));
  std::vector<uint64_t> aligned(text.size() / 8);
  std::memcpy(aligned.data(), text.data(), aligned.size() * 8);
  const auto received = k2c::runtime::readStepRecord(manifest, reinterpret_cast<const std::byte *>(aligned.data()),
                                                     static_cast<int64_t>(text.size()), 3, /*tables=*/1, arrays);
  ASSERT_TRUE(received) << received.error().text();
  EXPECT_EQ(received->step.token_rows, 5);
}

TEST(Seeds, WeightMap) {
  for (const auto &entry : std::filesystem::directory_iterator(seedPath("WeightMap"))) {
    TempFolder bundle;
    addSeed(bundle, "weights/map.json", "WeightMap/" + entry.path().filename().string());
    Expected<WeightMap> map = readWeightMap(bundle.path);
    EXPECT_TRUE(map) << entry << ": " << map.error().text();
  }
}

TEST(Seeds, BundleFiles) {
  TempFolder bundle;
  addSeed(bundle, "files.json", "BundleFiles/one.json");
  bundle.write("config.json", readFile(oracle("kimi_k2") + "/config.json"));
  Expected<VerifyReport> report = verifyBundleFiles(bundle.path);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->problems.empty()) << report->problems.front().text();
  const k2c::Expected<k2c::runtime::FileList> list = k2c::runtime::FileList::read(bundle.path);
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_TRUE(list->checkSizes());
  EXPECT_TRUE(list->checkHashesBut({}));
}

TEST(Seeds, Prompts) {
  k2c::runtime::PromptFlags batch, ids;
  batch.batchFile = seedPath("Prompts/batch.json");
  k2c::Expected<k2c::runtime::Prompts> prompts = k2c::runtime::readPrompts(batch, nullptr);
  ASSERT_TRUE(prompts) << prompts.error().text();
  EXPECT_EQ(prompts->seeds, (std::vector<std::optional<uint64_t>>{{}, 7, {}}));
  ids.ids = readFile(seedPath("Prompts/ids.txt"));
  prompts = k2c::runtime::readPrompts(ids, nullptr);
  ASSERT_TRUE(prompts) << prompts.error().text();
  EXPECT_EQ(prompts->ids.front(), (std::vector<int32_t>{1, 2, 3, 4}));
  k2c::runtime::Manifest manifest; // as fuzz/FuzzPrompts.cpp has it
  manifest.moeLayers = {1, 2};
  manifest.topK = 2;
  manifest.experts = 4;
  const auto routes = k2c::runtime::readRoutes(seedPath("Prompts/routes.json"), manifest, 3);
  EXPECT_TRUE(routes) << routes.error().text();
}

} // namespace
