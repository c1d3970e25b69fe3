//===- PackerTest.cpp - Resuming, sharing, refusing -----------------------===//
#include "k2c/Weights/Packer.h"
#include "TestTensors.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/WeightIndex.h"
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <set>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace k2c;
using namespace k2c::test;
namespace fs = std::filesystem;

namespace {

/// `layers` matrices of one shape, and one norm that all share.
struct Model {
  MemoryTensors tensors;
  WeightMap map;

  explicit Model(int layers) {
    tensors.addRandom("norm", DType::F32, {40});
    for (int layer = 0; layer < layers; ++layer) {
      std::string name = "layers." + std::to_string(layer) + ".w";
      tensors.addRandom(name, DType::BF16, {70, 40});
      PanelLayout layout;
      layout.matrix.n = 70;
      layout.matrix.k = 40;
      add({0, "w", layer, {{name, {70, 40}, {}, false}}, layout});
      add({0, "norm", layer, {{"norm", {40}, {}, false}}, RowMajor{DType::F32, 40}});
    }
  }
  void add(WeightSlot slot) {
    slot.slot = int64_t(map.slots.size());
    map.slots.push_back(std::move(slot));
  }
};

PackReport packed(const WeightMap &map, const TensorSource &tensors, const std::string &folder,
                  PackOptions options = {}) {
  Expected<PackReport> report = packWeights(map, tensors, folder, options);
  EXPECT_TRUE(report) << (report ? "" : report.error().text());
  return report ? *report : PackReport();
}

std::set<std::string> blobs(const std::string &folder) {
  std::set<std::string> names;
  for (const auto &entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".bin")
      names.insert(entry.path().filename());
  return names;
}

} // namespace

TEST(Packer, IdenticalContentIsStoredOnce) {
  Model model(3);
  TemporaryFolder folder;
  packed(model.map, model.tensors, folder.path);
  EXPECT_EQ(blobs(folder.path + "/weights").size(),
            4u); // three matrices, one norm
  auto index = readWeightIndex(folder.path);
  ASSERT_TRUE(index);
  EXPECT_EQ(index->slots.size(), 6u);
  EXPECT_EQ(index->slots[1].ranges[0]->file, index->slots[5].ranges[0]->file);
  EXPECT_NE(index->slots[0].ranges[0]->file, index->slots[2].ranges[0]->file);
}

TEST(Packer, WhatIsLeftOutIsKnownByItsName) {
  Model model(3);
  TemporaryFolder some, all;
  PackOptions options;
  options.takes = [](const WeightSlot &slot, int64_t expert) { return expert == -1 && slot.layer == 1; };
  const PackReport report = packed(model.map, model.tensors, some.path, options);
  EXPECT_EQ(blobs(some.path + "/weights").size(), 2u); // a matrix and the norm of one layer
  auto index = readWeightIndex(some.path);
  ASSERT_TRUE(index);
  for (const IndexedSlot &slot : index->slots)
    EXPECT_EQ(slot.ranges[0].has_value(), slot.layer == 1) << slot.slot;
  EXPECT_EQ(report.common, packed(model.map, model.tensors, all.path).common);
  model.tensors.addRandom("layers.2.w", DType::BF16, {70, 40}); // other bytes
  EXPECT_NE(report.common, packed(model.map, model.tensors, some.path, options).common);
}

TEST(Packer, BytesDoNotDependOnThreads) {
  Model model(8);
  TemporaryFolder one, four;
  packed(model.map, model.tensors, one.path, {"", 1, nullptr});
  packed(model.map, model.tensors, four.path, {"", 4, nullptr});
  EXPECT_EQ(readFile(one.path + "/weights/index.json"), readFile(four.path + "/weights/index.json"));
}

TEST(Packer, AnotherLayoutOfTheSameBytesIsAnotherBlob) {
  Model model(1);
  auto layout = std::get<PanelLayout>(model.map.slots[0].transform);
  layout.matrix.n = 35;
  layout.matrix.k = 80;
  model.add({0, "w", 0, {{"layers.0.w", {35, 80}, {}, false, {}, {70, 40}}}, layout});
  TemporaryFolder folder;
  packed(model.map, model.tensors, folder.path);
  EXPECT_EQ(blobs(folder.path + "/weights").size(), 3u);
}

TEST(Packer, ResumesAfterAnInterruption) {
  Model model(3);
  TemporaryFolder folder;
  model.tensors.broken = "layers.2.w";
  Expected<PackReport> failed = packWeights(model.map, model.tensors, folder.path, {"", 1, nullptr});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().where, "model.safetensors");
  EXPECT_FALSE(fs::exists(folder.path + "/weights/index.json")) << "an unfinished bundle has no index";
  EXPECT_EQ(blobs(folder.path + "/weights").size(), 3u);
  for (const auto &entry : fs::directory_iterator(folder.path + "/weights"))
    EXPECT_NE(entry.path().extension(), ".partial");

  model.tensors.broken = "";
  PackReport report = packed(model.map, model.tensors, folder.path, {"", 1, nullptr});
  EXPECT_EQ(report.reused, 5);
  EXPECT_EQ(report.written, 1);
  EXPECT_TRUE(verifyBundle(folder.path)->problems.empty());
}

TEST(Packer, ABlobOfAnInterruptionIsReusedByItsHashOnly) {
  Model model(3);
  TemporaryFolder folder;
  model.tensors.broken = "layers.2.w";
  ASSERT_FALSE(packWeights(model.map, model.tensors, folder.path, {"", 1, nullptr}));
  std::string damaged = *blobs(folder.path + "/weights").begin();
  std::fstream(folder.path + "/weights/" + damaged, std::ios::in | std::ios::out | std::ios::binary).seekp(0).put('!');
  model.tensors.broken = "";
  packed(model.map, model.tensors, folder.path, {"", 1, nullptr});
  TemporaryFolder sound;
  packed(model.map, model.tensors, sound.path, {"", 1, nullptr});
  EXPECT_EQ(readFile(folder.path + "/weights/" + damaged), readFile(sound.path + "/weights/" + damaged));
  EXPECT_EQ(readFile(folder.path + "/weights/index.json"), readFile(sound.path + "/weights/index.json"));
}

TEST(Packer, OtherWeightsOfTheSameSizeAreNotReused) {
  Model model(1);
  TemporaryFolder folder;
  packed(model.map, model.tensors, folder.path);
  std::string before = readWeightIndex(folder.path)->slots[0].ranges[0]->file;
  model.tensors.addRandom("layers.0.w", DType::BF16, {70, 40});
  EXPECT_EQ(packed(model.map, model.tensors, folder.path).written, 1);
  EXPECT_NE(readWeightIndex(folder.path)->slots[0].ranges[0]->file, before);
}

TEST(Packer, RemovesAbandonedPartialFilesOnly) {
  Model model(1);
  TemporaryFolder folder;
  fs::create_directories(folder.path + "/weights");
  std::string dead = folder.path + "/weights/1-0.partial", living = folder.path + "/weights/1-1.partial";
  std::ofstream(dead) << "half";
  int fd = ::open(living.c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  packed(model.map, model.tensors, folder.path);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(living));
  ::close(fd);
}

// While one process writes its blobs, another opens the folder again and again, and takes partial files without a lock
// for abandoned; both write the same blobs.
TEST(Packer, ProcessesShareAFolderAtOnce) {
  Model large(60), small(2);
  TemporaryFolder shared, own[3];
  std::vector<pid_t> children;
  for (int process = 0; process < 3; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool fine = true;
      for (int round = 0; round < (process < 2 ? 1 : 100); ++round)
        fine = fine && packWeights(process < 2 ? large.map : small.map, process < 2 ? large.tensors : small.tensors,
                                   own[process].path, {shared.path, 2, nullptr});
      ::_exit(fine ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(blobs(own[0].path + "/weights"), blobs(own[1].path + "/weights"));
  for (const TemporaryFolder &bundle : own) {
    Expected<VerifyReport> report = verifyBundle(bundle.path);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->problems.empty());
    for (const auto &entry : fs::directory_iterator(bundle.path + "/weights"))
      EXPECT_NE(entry.path().extension(), ".tmp");
  }
  for (const auto &entry : fs::directory_iterator(shared.path))
    EXPECT_TRUE(entry.path().extension() == ".bin" || entry.path().filename() == "finished.txt") << entry.path();
}

TEST(Packer, BundlesShareAFolder) {
  Model model(2);
  TemporaryFolder shared, first, second;
  packed(model.map, model.tensors, first.path, {shared.path, 1, nullptr});
  PackReport report = packed(model.map, model.tensors, second.path, {shared.path, 1, nullptr});
  EXPECT_EQ(report.written, 0);
  EXPECT_EQ(blobs(second.path + "/weights"), blobs(shared.path));
  std::string file = readWeightIndex(first.path)->slots[0].ranges[0]->file;
  EXPECT_TRUE(fs::equivalent(first.path + "/weights/" + file, second.path + "/weights/" + file));
}

TEST(Packer, ReportsProgressUpToTheTotal) {
  Model model(2);
  TemporaryFolder folder;
  int64_t last = 0, all = 0;
  packed(model.map, model.tensors, folder.path, {"", 2, [&](int64_t done, int64_t total) {
                                                   EXPECT_GE(done, last);
                                                   last = done;
                                                   all = total;
                                                 }});
  EXPECT_EQ(last, model.map.totalBytes());
  EXPECT_EQ(all, last);
}

TEST(Packer, ShapeOnlyBundleIsPackedByItsOwnMap) {
  Model model(2);
  model.add({0, "rope", {}, {}, Table{5000, "", [](int64_t first, char *out, int64_t count) {
                                        for (int64_t i = 0; i < count; ++i)
                                          out[i] = char(first + i);
                                      }}});
  TemporaryFolder direct, later;
  packed(model.map, model.tensors, direct.path);
  ASSERT_TRUE(writeWeightMap(model.map, later.path));
  TemporaryFolder shared;
  ASSERT_TRUE(packWeights(*readWeightMap(later.path), model.tensors, later.path, {shared.path, 1, nullptr}));
  EXPECT_EQ(readFile(direct.path + "/weights/index.json"), readFile(later.path + "/weights/index.json"));
  EXPECT_TRUE(verifyBundle(later.path)->problems.empty());
}

TEST(Packer, MissingTableOfAShapeOnlyBundleIsNamed) {
  Model model(0);
  model.add({0, "rope", {}, {}, Table{10, "", [](int64_t, char *out, int64_t count) { std::fill_n(out, count, 1); }}});
  TemporaryFolder folder;
  ASSERT_TRUE(writeWeightMap(model.map, folder.path));
  fs::remove(folder.path + "/weights/" + *blobs(folder.path + "/weights").begin());
  Expected<PackReport> report = packWeights(*readWeightMap(folder.path), model.tensors, folder.path);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "the table 'rope' (4096 bytes) is missing or damaged");
}

TEST(Packer, DamagedBlobIsWrittenAgain) {
  Model model(1);
  TemporaryFolder folder;
  packed(model.map, model.tensors, folder.path);
  std::string path = folder.path + "/weights/" + readWeightIndex(folder.path)->slots[0].ranges[0]->file;
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(100).put('!').put('?');
  ASSERT_EQ(verifyBundle(folder.path)->problems.size(), 1u);
  PackReport report = packed(model.map, model.tensors, folder.path);
  EXPECT_EQ(report.written, 1);
  EXPECT_TRUE(verifyBundle(folder.path)->problems.empty());
}

//===----------------------------------------------------------------------===//
// Refusals: before anything is written
//===----------------------------------------------------------------------===//

namespace {

std::string refusal(Model &model) {
  TemporaryFolder folder;
  Expected<PackReport> report = packWeights(model.map, model.tensors, folder.path);
  EXPECT_FALSE(report);
  EXPECT_FALSE(fs::exists(folder.path + "/weights"));
  return report ? "" : report.error().where + ": " + report.error().message;
}

} // namespace

TEST(PackerRefuses, MissingTensor) {
  Model model(1);
  model.map.slots[1].sources[0].name = "norm2";
  EXPECT_EQ(refusal(model), "tensor 'norm2': is not in the checkpoint");
}

// Of every type that has them; the blobs of the tensors before it may be written.
TEST(PackerRefuses, NumbersThatAreNone) {
  auto refused = [](DType type, auto bits, size_t at = 9000) {
    Model model(0);
    std::vector<decltype(bits)> elements(10000, decltype(bits)(1));
    elements[at] = bits;
    model.tensors.add("router", type, {100, 100}, elements);
    model.add({0, "router", 0, {{"router", {100, 100}, {}, false}}, RowMajor{type, 10000}});
    TemporaryFolder folder;
    Expected<PackReport> report = packWeights(model.map, model.tensors, folder.path);
    return report ? "" : report.error().text();
  };
  const std::string message =
      "tensor 'router': element 9000 is NaN or infinite; the checkpoint is damaged: fetch it again";
  EXPECT_EQ(refused(DType::F32, uint32_t(0x7fc00000)), message);
  EXPECT_EQ(refused(DType::F32, uint32_t(0xff800000)), message);
  EXPECT_EQ(refused(DType::BF16, uint16_t(0x7f81)), message);
  EXPECT_EQ(refused(DType::F16, uint16_t(0xfc00)), message);
  EXPECT_EQ(refused(DType::F32, uint32_t(0x7f7fffff)), "");
  for (uint16_t infinity : {uint16_t(0x7f80), uint16_t(0xff80)})
    EXPECT_EQ(refused(DType::BF16, infinity), message);
  EXPECT_EQ(refused(DType::F16, uint16_t(0x7c00)), message);
  for (size_t at : {size_t(0), size_t(4095), size_t(4096), size_t(9999)}) // elements are looked at in blocks of 4096
    EXPECT_NE(refused(DType::BF16, uint16_t(0x7f80), at).find("element " + std::to_string(at) + " is"),
              std::string::npos);
}

TEST(PackerRefuses, OtherShape) {
  Model model(1);
  model.map.slots[0].sources[0].shape = {70, 41};
  EXPECT_EQ(refusal(model), "tensor 'layers.0.w': has shape [70, 40], the program was compiled "
                            "for [70, 41]");
}

TEST(PackerRefuses, AShapeOfTheSameSize) {
  Model model(1);
  model.tensors.addRandom("layers.0.w", DType::BF16, {40, 70});
  EXPECT_EQ(refusal(model), "tensor 'layers.0.w': has shape [40, 70], the program was compiled for [70, 40]");
}

TEST(PackerRefuses, AStoredShapeOtherThanTheViewsOwn) {
  Model model(1);
  model.map.slots[0].sources[0].stored = {7, 400};
  EXPECT_EQ(refusal(model), "tensor 'layers.0.w': has shape [70, 40], the program was compiled for [7, 400]");
}

TEST(PackerRefuses, NarrowingElementType) {
  Model model(1);
  model.map.slots[1].transform = RowMajor{DType::BF16, 40};
  EXPECT_EQ(refusal(model), "tensor 'norm': is stored as f32, the program was "
                            "compiled for bf16 weights");
}

TEST(PackerRefuses, RowsThatDoNotFillTheLayout) {
  Model model(1);
  std::get<PanelLayout>(model.map.slots[0].transform).matrix.n = 71;
  EXPECT_EQ(refusal(model), "weights 'w' of layer 0: the sources give 70 rows, the layout holds 71");
}

TEST(PackerRefuses, OtherContraction) {
  Model model(1);
  std::get<PanelLayout>(model.map.slots[0].transform).matrix.k = 39;
  EXPECT_EQ(refusal(model), "weights 'w' of layer 0: the sources give 40 columns (tensor "
                            "'layers.0.w'), the layout holds 39");
}

TEST(PackerRefuses, SliceOutsideTheTensor) {
  Model model(1);
  model.map.slots[0].sources[0].slice = TensorSlice{0, 10, 71};
  EXPECT_EQ(refusal(model), "tensor 'layers.0.w': slice [10, 71) of dimension "
                            "0 is outside its shape [70, 40]");
}

TEST(PackerRefuses, FolderThatCannotBeWritten) {
  Model model(1);
  TemporaryFolder folder;
  std::ofstream(folder.path + "/weights") << "a file";
  Expected<PackReport> report = packWeights(model.map, model.tensors, folder.path);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().where, folder.path + "/weights");
}

TEST(PackerRefuses, FullDisk) { // /dev/full cannot stand in for a folder: limit
                                // the size of files instead
  Model model(1);
  TemporaryFolder folder;
  pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Expected<PackReport> report = packWeights(model.map, model.tensors, folder.path, {"", 1, nullptr});
    ::_exit(!report && report.error().message.find("cannot write") == 0 ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::is_empty(folder.path + "/weights"));
}
