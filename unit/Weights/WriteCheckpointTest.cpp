//===- WriteCheckpointTest.cpp - Checkpoints that are written and read back ---===//
#include "k2c/Weights/WriteCheckpoint.h"
#include "TestTensors.h"
#include "k2c/Weights/CheckpointTensors.h"
#include <gtest/gtest.h>
#include <limits>

using namespace k2c;
using namespace k2c::test;

namespace {

/// Tensors a, b, c of 24, 8 and 40 bytes.
struct WriteCheckpointTest : testing::Test {
  WriteCheckpointTest() {
    add("a", DType::BF16, {3, 4});
    add("b", DType::F32, {2});
    add("c", DType::F16, {20});
  }

  void add(const std::string &name, DType type, const std::vector<int64_t> &shape) {
    source.addRandom("graph." + name, type, shape);
    tensors.push_back({"model." + name, "graph." + name, {type, shape}});
  }

  /// Every tensor of the folder has the bytes of its source.
  void expectSame() const {
    Expected<Checkpoint> checkpoint = Checkpoint::open(folder.path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().text();
    EXPECT_EQ(checkpoint->tensors().size(), tensors.size());
    const CheckpointTensors written(*checkpoint);
    for (const WrittenTensor &tensor : tensors) {
      const Expected<StoredTensor> found = written.find(tensor.name);
      ASSERT_TRUE(found) << found.error().text();
      EXPECT_EQ(found->type, tensor.stored.type);
      EXPECT_EQ(found->shape, tensor.stored.shape);
      std::string ours(source.elements<char>(tensor.source).size(), 0), theirs = ours;
      ASSERT_TRUE(written.read(tensor.name, 0, ours.data(), int64_t(ours.size())));
      ASSERT_TRUE(source.read(tensor.source, 0, theirs.data(), int64_t(theirs.size())));
      EXPECT_EQ(ours, theirs);
      EXPECT_EQ(checkpoint->find(tensor.name)->begin % uint64_t(byteWidth(tensor.stored.type)), 0u);
    }
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

  MemoryTensors source;
  std::vector<WrittenTensor> tensors;
  TemporaryFolder folder;
};

TEST_F(WriteCheckpointTest, OneFileHasThemAll) {
  add("odd", DType::U8, {3});
  add("wide", DType::F32, {1});
  ASSERT_TRUE(writeCheckpoint(folder.path, tensors, source));
  EXPECT_EQ(names(), std::vector<std::string>{"model.safetensors"});
  EXPECT_NE(readFile(folder.path + "/model.safetensors").find(R"("__metadata__":{"format":"pt"})"), std::string::npos);
  expectSame();
}

TEST_F(WriteCheckpointTest, SeveralFilesHaveAnIndex) {
  WriteCheckpointOptions options;
  options.maxFileBytes = 32; // a and b; c alone, which is larger
  ASSERT_TRUE(writeCheckpoint(folder.path, tensors, source, options));
  EXPECT_EQ(names(), (std::vector<std::string>{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                               "model.safetensors.index.json"}));
  EXPECT_NE(readFile(folder.path + "/model.safetensors.index.json").find("\"total_size\": 72"), std::string::npos);
  expectSame();
}

TEST_F(WriteCheckpointTest, TensorsOfSeveralPiecesAreWhole) {
  add("large", DType::BF16, {17, 1 << 20}); // 34 MiB, of which a piece has 32
  ASSERT_TRUE(writeCheckpoint(folder.path, tensors, source));
  expectSame();
}

TEST_F(WriteCheckpointTest, ProgressIsInBytes) {
  std::vector<int64_t> done;
  WriteCheckpointOptions options;
  options.progress = [&](int64_t bytes, int64_t total) {
    EXPECT_EQ(total, 72);
    done.push_back(bytes);
  };
  ASSERT_TRUE(writeCheckpoint(folder.path, tensors, source, options));
  EXPECT_EQ(done, (std::vector<int64_t>{8, 32, 72})); // the widest first
}

TEST_F(WriteCheckpointTest, ATensorOfAnotherShapeIsRefused) {
  tensors[1].stored.shape = {2, 1};
  const Status status = writeCheckpoint(folder.path, tensors, source);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "tensor 'graph.b': is f32 of shape [2], and model.b of f32 and shape [2,1]; take "
                                   "model and weights from one file");
  EXPECT_TRUE(names().empty());
}

TEST_F(WriteCheckpointTest, WhatCannotBeReadIsAnError) {
  source.broken = "graph.c";
  const Status status = writeCheckpoint(folder.path, tensors, source);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "cannot read at byte 0");
}

TEST_F(WriteCheckpointTest, AWeightThatIsNoNumberIsAnError) {
  source.add<float>("graph.b", DType::F32, {2}, {1, std::numeric_limits<float>::quiet_NaN()});
  const Status status = writeCheckpoint(folder.path, tensors, source);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(),
            "tensor 'graph.b': element 1 is NaN or infinite; the checkpoint is damaged: fetch it again");
}

TEST_F(WriteCheckpointTest, WhatCannotBeWrittenIsAnError) {
  const Status status = writeCheckpoint(folder.path + "/gone", tensors, source);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "cannot be written: No such file or directory");
}

/// A source that says that it has a tensor of 128 TiB.
struct LargeTensors : MemoryTensors {
  Expected<StoredTensor> find(const std::string &) const override {
    return StoredTensor{DType::F32, {1 << 20, 1 << 25}};
  }
};

TEST_F(WriteCheckpointTest, WhatTheFileSystemHasNoRoomForIsNotBegun) {
  const Status status =
      writeCheckpoint(folder.path, {{"large", "large", {DType::F32, {1 << 20, 1 << 25}}}}, LargeTensors());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message.rfind("the checkpoint takes 128.00 TiB (140.74 TB), and its file system has ", 0),
            0u)
      << status.error().text();
  EXPECT_EQ(status.error().remedy, "free space or choose another folder");
  EXPECT_TRUE(names().empty());
}

TEST(WrittenTensors, AreInTheOrderOfLayers) {
  ModelSpec spec;
  spec.layers = {{{LayerKind()}, {0, 2}}};
  const auto add = [&](const std::string &id, const std::string &pattern, bool isOfLayers, int64_t experts) {
    spec.weights.emplace_back();
    WeightFamily &family = spec.weights.back();
    family.id = id;
    family.pattern = pattern;
    family.shape = {1};
    family.experts = experts;
    if (isOfLayers)
      family.layers = {{0, 2}};
  };
  add("embed", "embed", false, 0);
  add("q", "{layer}.q", true, 0);
  add("experts", "{layer}.{expert}.{w1|w3}", true, 2);
  spec.weights.back().alternatives = {"w1", "w3"};
  add("head", "head", false, 0);
  ModelSpec found = spec;
  found.weights[1].pattern = "layers.{layer}.query";
  std::string names;
  for (const WrittenTensor &tensor : writtenTensors(spec, found))
    names += tensor.name + (tensor.name == tensor.source ? "" : "=" + tensor.source) + " ";
  EXPECT_EQ(names, "embed 0.q=layers.0.query 0.0.w1 0.0.w3 0.1.w1 0.1.w3 1.q=layers.1.query 1.0.w1 1.0.w3 1.1.w1 "
                   "1.1.w3 head ");
}

} // namespace
