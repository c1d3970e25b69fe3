//===- CheckpointTensorsTest.cpp - Packing a published layout -----------------===//
#include "k2c/Weights/CheckpointTensors.h"
#include "TestTensors.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/WeightIndex.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::test;

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
  std::string packed = readFile(folder.path + "/weights/" + (*readWeightIndex(folder.path))[0].file);
  EXPECT_EQ(packed.substr(0, expected.size()), expected);
}

TEST(CheckpointTensors, MissingTensorIsNamed) {
  Expected<StoredTensor> stored = oracle("llama").find("model.layers.99.mlp.up_proj.weight");
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().text(),
            "tensor 'model.layers.99.mlp.up_proj.weight': is in none of the checkpoint's 1 files; "
            "use the checkpoint whose config.json was compiled");
}

TEST(CheckpointTensors, ReadsInsideTheTensorOnly) {
  CheckpointTensors tensors = oracle("llama");
  char byte;
  EXPECT_FALSE(tensors.read("model.norm.weight", -1, &byte, 1));
  EXPECT_FALSE(tensors.read("model.norm.weight", int64_t(1) << 40, &byte, 1));
}
