//===- ExpertsTest.cpp - Slots whose experts are ranges of their own ------===//
//
// What a second placement of the same experts brings into a shared folder: nothing but what no blob has.
//
//===----------------------------------------------------------------------===//
#include "TestTensors.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/Packer.h"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <unistd.h>

using namespace k2c;
using namespace k2c::test;
namespace fs = std::filesystem;

namespace {

constexpr int64_t count = 5, n = 2 * 20, k = 30, panelBytes = 32 * k * 2, matrixBytes = 2 * panelBytes;

/// One layer of `count` experts with gate and up, the tensors of expert e being those of order[e] in a first model.
struct Experts {
  explicit Experts(std::vector<int> order = {0, 1, 2, 3, 4}) {
    for (int expert : order)
      for (const char *part : {"gate", "up"}) {
        const std::string name = part + std::to_string(expert);
        tensors.add(name, DType::BF16, {n / 2, k}, elementsOf(expert, *part));
        map.slots[0].sources.push_back({name, {n / 2, k}, {}, false});
      }
  }
  static std::vector<uint16_t> elementsOf(int expert, char part) {
    std::vector<uint16_t> elements(n / 2 * k);
    std::iota(elements.begin(), elements.end(), uint16_t(expert * 2000 + part));
    return elements;
  }
  PackReport pack(const TemporaryFolder &bundle, const std::string &shared = "") const {
    Expected<PackReport> report = packWeights(map, tensors, bundle.path, {shared, 1, nullptr});
    EXPECT_TRUE(report) << report.error().text();
    return report ? *report : PackReport();
  }

  MemoryTensors tensors;
  WeightMap map{{{0, "up", 3, {}, PanelLayout{{DType::BF16, count, n, k, 2}}, count}}};
};

std::vector<std::optional<BlobRange>> rangesOf(const TemporaryFolder &bundle) {
  return readWeightIndex(bundle.path)->slots[0].ranges;
}

/// The matrix of each expert, as the index says where it is.
std::vector<std::string> matricesOf(const TemporaryFolder &bundle) {
  std::vector<std::string> matrices;
  for (const std::optional<BlobRange> &range : rangesOf(bundle))
    matrices.push_back(readFile(bundle.path + "/weights/" + range->file).substr(range->offset, matrixBytes));
  return matrices;
}

std::set<std::string> filesOf(const TemporaryFolder &bundle) {
  std::set<std::string> files;
  for (const std::optional<BlobRange> &range : rangesOf(bundle))
    files.insert(range->file);
  return files;
}

std::string problem(const TemporaryFolder &bundle) {
  Expected<VerifyReport> report = verifyBundle(bundle.path);
  EXPECT_TRUE(report);
  return report->problems.empty() ? "" : report->problems.front().text();
}

} // namespace

TEST(Experts, AreLeftOutWhereNobodyTakesThem) {
  Experts model;
  const MemoryTensors &tensors = model.tensors;
  TemporaryFolder some, all;
  PackOptions options;
  options.takes = [](const WeightSlot &slot, int64_t expert) { return slot.layer == 3 && expert % 2 == 0; };
  Expected<PackReport> report = packWeights(model.map, tensors, some.path, options);
  ASSERT_TRUE(report) << report.error().text();
  const std::vector<std::optional<BlobRange>> ranges = rangesOf(some);
  for (size_t expert = 0; expert < ranges.size(); ++expert)
    EXPECT_EQ(ranges[expert].has_value(), expert % 2 == 0) << expert;
  EXPECT_EQ(problem(some), "");
  EXPECT_EQ(report->common, model.pack(all).common) << "of what is packed anyway";
  options.takes = nullptr; // the others are added to those that are there
  report = packWeights(model.map, tensors, some.path, options);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->writtenBytes, ranges[0]->bytes * 2);
  EXPECT_EQ(matricesOf(some), matricesOf(all));
}

TEST(Experts, LieBehindOneAnotherOnPages) {
  const Experts model;
  TemporaryFolder bundle, plain;
  model.pack(bundle);
  Experts stacked;
  stacked.map.slots[0].experts = 0; // one range, as the matrices of heads are
  stacked.pack(plain);
  const std::string all = readFile(plain.path + "/weights/" + rangesOf(plain)[0]->file);
  ASSERT_EQ(filesOf(bundle).size(), 1u);
  for (int64_t expert = 0; expert < count; ++expert) {
    EXPECT_EQ(rangesOf(bundle)[expert]->offset, expert * 4096);
    EXPECT_EQ(matricesOf(bundle)[expert], all.substr(expert * matrixBytes, matrixBytes)) << expert;
  }
  EXPECT_EQ(model.map.totalBytes(), count * 4096);
  EXPECT_EQ(problem(bundle), "");
}

TEST(Experts, NumberedOtherwiseBringNoNewBytes) {
  TemporaryFolder shared, first, second;
  const std::vector<int> order = {3, 0, 4, 1, 2};
  const Experts model, renumbered(order);
  EXPECT_EQ(model.pack(first, shared.path).writtenBytes, count * 4096);
  const PackReport report = renumbered.pack(second, shared.path);
  EXPECT_EQ(report.writtenBytes, 0);
  EXPECT_EQ(report.reused, 1);
  const std::vector<std::string> before = matricesOf(first), after = matricesOf(second);
  for (int64_t expert = 0; expert < count; ++expert)
    EXPECT_EQ(after[expert], before[order[expert]]) << expert;
}

TEST(Experts, OneThatChangesByABitIsTheOnlyNewOne) {
  TemporaryFolder shared, first, second, third;
  Experts model;
  model.pack(first, shared.path);
  std::vector<uint16_t> elements = Experts::elementsOf(2, 'u');
  elements.back() ^= 1;
  model.tensors.add("up2", DType::BF16, {n / 2, k}, elements);
  EXPECT_EQ(model.pack(second, shared.path).writtenBytes, 4096);
  EXPECT_EQ(filesOf(second).size(), 2u);
  EXPECT_EQ(problem(second), "");
  const std::vector<std::string> before = matricesOf(first), after = matricesOf(second);
  for (int64_t expert = 0; expert < count; ++expert)
    EXPECT_EQ(after[expert] == before[expert], expert != 2) << expert;
  EXPECT_EQ(model.pack(third, shared.path).writtenBytes, 0) << "the folder knows the ranges of both blobs";
}

TEST(Experts, AnInterruptedBundleKeepsThoseThatItHas) {
  TemporaryFolder bundle;
  const Experts model;
  model.pack(bundle);
  EXPECT_EQ(model.pack(bundle).writtenBytes, 0) << "the index names them";
  const std::vector<std::optional<BlobRange>> ranges = rangesOf(bundle);
  fs::remove(bundle.path + "/weights/index.json");
  std::ofstream list(bundle.path + "/weights/finished.txt");
  auto line = [&](const BlobRange &range, int64_t offset) {
    list << range.name << " " << range.file << " " << offset << " " << range.bytes << " " << range.xxh3 << "\n";
  };
  line(*ranges[0], 0);
  line(*ranges[1], 8192);             // another's bytes
  line(*ranges[2], 3);                // no page
  line(*ranges[3], int64_t(1) << 40); // behind the end
  list << ranges[4]->name << " ../../etc/passwd 0 4096 " << ranges[4]->xxh3 << "\n" << ranges[4]->name;
  list.close();
  EXPECT_EQ(model.pack(bundle).writtenBytes, 4 * 4096);
  EXPECT_EQ(problem(bundle), "");
}

TEST(Experts, ADamagedOneIsNamedAndWrittenAgain) {
  TemporaryFolder bundle;
  const Experts model;
  model.pack(bundle);
  const BlobRange range = *rangesOf(bundle)[3];
  const std::string path = bundle.path + "/weights/" + range.file;
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(range.offset + 7).put('!');
  const std::string said = problem(bundle);
  EXPECT_EQ(said.find(path + ": bytes 12288 to 16384: hashes to "), 0u) << said;
  EXPECT_EQ(model.pack(bundle).writtenBytes, 4096);
  EXPECT_EQ(problem(bundle), "");
  fs::resize_file(path, 4096);
  EXPECT_EQ(problem(bundle), path + ": bytes 4096 to 8192: has 0 bytes, the index says 4096; `k2c pack` with the "
                                    "checkpoint writes its blobs again; a table needs `k2c compile`");
}

TEST(Experts, ARangeThatIsListedTwiceIsComparedWithBothHashes) {
  TemporaryFolder bundle;
  Experts().pack(bundle);
  WeightIndex index = *readWeightIndex(bundle.path);
  index.slots[0].ranges[1] = index.slots[0].ranges[0];
  index.slots[0].ranges[1]->xxh3 = std::string(16, '0');
  ASSERT_TRUE(writeWeightIndex(index, bundle.path));
  const std::string said = problem(bundle);
  EXPECT_NE(said.find(", the index says 0000000000000000"), std::string::npos) << said;
}

TEST(Experts, MayBeLeftOutOfAnIndex) {
  TemporaryFolder bundle;
  const Experts model;
  model.pack(bundle);
  WeightIndex index = *readWeightIndex(bundle.path);
  index.slots[0].ranges[1] = std::nullopt;
  ASSERT_TRUE(writeWeightIndex(index, bundle.path));
  EXPECT_FALSE(rangesOf(bundle)[1]);
  EXPECT_EQ(problem(bundle), "");
  EXPECT_EQ(model.pack(bundle).writtenBytes, 4096) << "the index says nothing of it";
}

TEST(Experts, RangesOfAnIndexAreChecked) {
  auto refusal = [](const std::function<void(BlobRange &)> &change) {
    TemporaryFolder bundle;
    Experts().pack(bundle);
    WeightIndex index = *readWeightIndex(bundle.path);
    change(*index.slots[0].ranges[1]);
    EXPECT_TRUE(writeWeightIndex(index, bundle.path));
    Expected<WeightIndex> read = readWeightIndex(bundle.path);
    return read ? "" : read.error().message;
  };
  const std::string odd = "is no range of whole pages, from 0 on where it has the name of its blob";
  EXPECT_EQ(refusal([](BlobRange &range) { range.offset = 5; }), odd);
  EXPECT_EQ(refusal([](BlobRange &range) { range.offset = -4096; }), odd);
  EXPECT_EQ(refusal([](BlobRange &range) { range.offset = INT64_MAX - 4095; }), odd);
  EXPECT_EQ(refusal([](BlobRange &range) { range.name = "x"; }), "is not 32 hex digits");
  EXPECT_EQ(refusal([](BlobRange &range) { range.name = range.file.substr(0, 32); }), odd) << "not at 0";
  EXPECT_EQ(refusal([](BlobRange &range) {
              range.bytes = 0;
              range.chunks.clear();
            }),
            odd);
  EXPECT_EQ(refusal([](BlobRange &range) { range.file = "x"; }), "'x' is not the name of a blob");
}

TEST(Experts, OfAMapHaveAMatrixAndSourcesEach) {
  auto refusal = [](const std::function<void(WeightSlot &)> &change) {
    Experts model;
    change(model.map.slots[0]);
    Status status = check(model.map.slots[0]);
    return status ? "" : status.error().text();
  };
  EXPECT_EQ(refusal([](WeightSlot &slot) { slot.experts = 4; }),
            "weights 'up' (slot 0): 4 experts: the layout has 5 matrices, of 10 sources");
  EXPECT_EQ(refusal([](WeightSlot &slot) { slot.sources.pop_back(); }),
            "weights 'up' (slot 0): 5 experts: the layout has 5 matrices, of 9 sources");
  EXPECT_EQ(refusal([](WeightSlot &slot) { slot.sources.clear(); }),
            "weights 'up' (slot 0): 5 experts: the layout has 5 matrices, of 0 sources");
  EXPECT_EQ(refusal([](WeightSlot &slot) { slot.transform = RowMajor{DType::F32, 5}; }),
            "weights 'up' (slot 0): 5 experts: only matrices are of experts");
  EXPECT_EQ(refusal([](WeightSlot &slot) { slot.experts = -1; }),
            "weights 'up' (slot 0): -1 experts: only matrices are of experts");
}
