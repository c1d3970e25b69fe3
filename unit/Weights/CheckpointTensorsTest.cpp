//===- CheckpointTensorsTest.cpp - Packing a published layout -----------------===//
#include "k2c/Weights/CheckpointTensors.h"
#include "TestTensors.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/TensorFamily.h"
#include "k2c/Weights/WeightIndex.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::test;
namespace fs = std::filesystem;

namespace {

CheckpointTensors oracle(const std::string &family) {
  Expected<Checkpoint> checkpoint = Checkpoint::open(std::string(K2C_SOURCE_DIR) + "/test/EndToEnd/oracle/" + family);
  EXPECT_TRUE(checkpoint) << (checkpoint ? "" : checkpoint.error().text());
  return CheckpointTensors(*checkpoint);
}

} // namespace

TEST(CheckpointTensors, PacksATensorOfAShard) {
  CheckpointTensors tensors = oracle("deepseek_v3"); // two shards
  std::string name = "model.norm.weight";
  Expected<StoredTensor> stored = tensors.find(name);
  ASSERT_TRUE(stored);
  int64_t elements = stored->shape[0];
  TemporaryFolder folder;
  Expected<PackReport> report =
      packWeights({{{0, "final_norm", {}, {{name, {elements}, {}, false}}, RowMajor{stored->type, elements}}}}, tensors,
                  folder.path);
  ASSERT_TRUE(report) << report.error().text();
  std::string expected(elements * byteWidth(stored->type), 0);
  ASSERT_TRUE(tensors.read(name, 0, expected.data(), int64_t(expected.size())));
  std::string packed = readFile(folder.path + "/weights/" + readWeightIndex(folder.path)->slots[0].ranges[0]->file);
  EXPECT_EQ(packed.substr(0, expected.size()), expected);
}

TEST(CheckpointTensors, BytesOutsideATensorAreRefused) {
  CheckpointTensors tensors = oracle("deepseek_v3");
  char byte = 0;
  Status status = tensors.read("model.norm.weight", int64_t(1) << 20, &byte, 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "tensor 'model.norm.weight': bytes 1048576 to 1048577 are outside it");
}

// 12 experts of 24 x 64: gate and up of all experts are one operand a layer.
TEST(CheckpointTensors, PacksExpertsOfAFamily) {
  CheckpointTensors tensors = oracle("kimi_k2");
  TensorFamily family;
  family.name = "experts_gate_up";
  family.pattern = "model.layers.{layer}.mlp.experts.{expert}.{gate_proj|up_proj}.weight";
  family.layers = IndexSet{{1, 3, 1}};
  family.experts = IndexSet{{0, 12, 1}};
  family.shape = {24, 64};
  PanelLayout layout{{DType::BF16, 12, 48, 64, 2}};
  WeightMap map;
  appendSlots(map, family, layout);
  TemporaryFolder folder;
  Expected<PackReport> report = packWeights(map, tensors, folder.path);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->written, 2);
  std::string packed = readFile(folder.path + "/weights/" + readWeightIndex(folder.path)->slots[1].ranges[0]->file);
  for (auto [part, name] : {std::pair<int64_t, const char *>{0, "gate_proj"}, {1, "up_proj"}}) {
    std::vector<uint16_t> w(24 * 64);
    std::string tensor = "model.layers.2.mlp.experts.11." + std::string(name) + ".weight";
    ASSERT_TRUE(tensors.read(tensor, 0, reinterpret_cast<char *>(w.data()), 24 * 64 * 2));
    for (int64_t row = 0; row < 24; ++row)
      for (int64_t k = 0; k < 64; ++k) {
        uint16_t element;
        std::memcpy(&element, packed.data() + layout.offset(11, part * 24 + row, k), 2);
        ASSERT_EQ(element, w[row * 64 + k]) << name << " " << row << " " << k;
      }
  }
}

TEST(CheckpointTensors, MissingTensorIsNamed) {
  Expected<StoredTensor> stored = oracle("llama").find("model.layers.99.mlp.up_proj.weight");
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().text(),
            "tensor 'model.layers.99.mlp.up_proj.weight': is in none of the checkpoint's 1 files; "
            "use the checkpoint whose config.json was compiled");
}

// An index names them: a file that changes under the packer is found by whoever opens what was written down.
TEST(CheckpointTensors, FilesHaveTheSizesThatTheyWereOpenedWith) {
  TemporaryFolder folder;
  const std::string path = folder.path + "/model.safetensors";
  fs::copy_file(std::string(K2C_SOURCE_DIR) + "/test/EndToEnd/oracle/llama/model.safetensors", path);
  const auto bytes = int64_t(fs::file_size(path));
  Expected<Checkpoint> checkpoint = Checkpoint::open(folder.path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  fs::resize_file(path, uintmax_t(bytes) + 1);
  const std::vector<PieceFile> files = CheckpointTensors(*checkpoint).files();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "model.safetensors");
  EXPECT_EQ(files[0].bytes, bytes);
}

TEST(CheckpointTensors, ReadsInsideTheTensorOnly) {
  CheckpointTensors tensors = oracle("llama");
  char byte;
  EXPECT_FALSE(tensors.read("model.norm.weight", -1, &byte, 1));
  EXPECT_FALSE(tensors.read("model.norm.weight", int64_t(1) << 40, &byte, 1));
}
