//===- NarrowTest.cpp - f32 weights whose numbers are all bf16's --------------===//
#include "k2c/Weights/Narrow.h"
#include "TestTensors.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::test;

namespace {

constexpr float beyond = 1.0f + 0x1p-10f; ///< bf16 has 1 + 2^-7 behind 1

/// A norm of 3 numbers and gates of two layers with two experts each, in f32, and a bias that is stored as bf16.
struct Model {
  Model() {
    WeightFamily norm{"norm", "norm.weight"}, gate{"gate", "{layer}.{expert}.{a|b}"}, bias{"bias", "bias"};
    norm.shape = {3};
    gate.shape = {2, 2};
    gate.layers = {{1, 3}};
    gate.experts = 2;
    gate.alternatives = {"a", "b"};
    norm.dtype = gate.dtype = DType::F32;
    bias.shape = {1};
    bias.dtype = DType::BF16;
    spec.weights = {norm, gate, bias};
    tensors->add<float>("norm.weight", DType::F32, {3}, {1, -0.5f, 0});
    for (const char *name : {"1.0.a", "1.0.b", "1.1.a", "1.1.b", "2.0.a", "2.0.b", "2.1.a", "2.1.b"})
      tensors->add<float>(name, DType::F32, {2, 2}, {1, 2, 3, 0x1p-130f});
    tensors->add<uint16_t>("bias", DType::BF16, {1}, {0x3F80});
  }
  std::vector<std::string> found() const {
    const Expected<std::vector<std::string>> ids = familiesOfBf16(spec, *tensors, nullptr);
    EXPECT_TRUE(ids);
    return ids ? *ids : std::vector<std::string>();
  }
  /// The source as it is behind narrow(ids).
  std::shared_ptr<const TensorSource> narrowed(const std::vector<std::string> &ids) {
    std::shared_ptr<const TensorSource> out = tensors;
    const Status status = narrow(ids, "m.onnx", spec, out);
    EXPECT_TRUE(status) << status.error().text();
    return out;
  }
  ModelSpec spec;
  std::shared_ptr<MemoryTensors> tensors = std::make_shared<MemoryTensors>();
};

TEST(Narrow, FamiliesHaveNoNumberThatBf16WouldRound) {
  Model model;
  EXPECT_EQ(model.found(), (std::vector<std::string>{"norm", "gate"}));
  model.tensors->add<float>("2.1.b", DType::F32, {2, 2}, {1, 2, 3, beyond});
  EXPECT_EQ(model.found(), std::vector<std::string>{"norm"});
}

TEST(Narrow, ProgressEndsAtTheBytesOfAll) {
  Model model;
  model.tensors->add<float>("1.0.a", DType::F32, {2, 2}, {beyond, 2, 3, 4});
  int64_t last = 0;
  ASSERT_TRUE(familiesOfBf16(model.spec, *model.tensors, [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 4 * (3 + 8 * 4));
    EXPECT_GE(done, last);
    last = done;
  }));
  EXPECT_EQ(last, 4 * (3 + 8 * 4));
}

TEST(Narrow, ATensorThatCannotBeReadIsAnError) {
  Model model;
  model.tensors->broken = "1.1.a";
  const Expected<std::vector<std::string>> ids = familiesOfBf16(model.spec, *model.tensors, nullptr);
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().text(), "model.safetensors: cannot read at byte 0");
}

TEST(Narrow, AFewNumbersOfTheLargestFamilyTellWhetherToLook) {
  Model model;
  EXPECT_TRUE(seemOfBf16(model.spec, *model.tensors));
  model.tensors->add<float>("norm.weight", DType::F32, {3}, {beyond, 1, 1});
  EXPECT_TRUE(seemOfBf16(model.spec, *model.tensors));
  model.tensors->add<float>("1.0.a", DType::F32, {2, 2}, {1, beyond, 1, 1});
  EXPECT_FALSE(seemOfBf16(model.spec, *model.tensors));
  model.narrowed({"norm", "gate"});
  EXPECT_FALSE(seemOfBf16(model.spec, *model.tensors)); // nothing is in f32
}

TEST(Narrow, TensorsOfNarrowedFamiliesAreBf16) {
  Model model;
  const std::shared_ptr<const TensorSource> narrowed = model.narrowed({"gate"});
  EXPECT_EQ(model.spec.find("gate")->dtype, DType::BF16);
  EXPECT_EQ(model.spec.find("norm")->dtype, DType::F32);
  EXPECT_EQ(model.spec.narrowed, std::vector<std::string>{"gate"});
  EXPECT_EQ(narrowed->find("2.1.a")->type, DType::BF16);
  EXPECT_EQ(narrowed->find("norm.weight")->type, DType::F32);
  uint16_t two[2];
  ASSERT_TRUE(narrowed->read("2.1.a", 2, reinterpret_cast<char *>(two), 4));
  EXPECT_EQ(two[0], 0x4000); // 2
  EXPECT_EQ(two[1], 0x4040); // 3
  float norm[3];
  ASSERT_TRUE(narrowed->read("norm.weight", 0, reinterpret_cast<char *>(norm), 12));
  EXPECT_EQ(norm[1], -0.5f);
}

// As where the file has changed since.
TEST(Narrow, ANumberThatBf16WouldRoundIsNotRead) {
  Model model;
  const std::shared_ptr<const TensorSource> narrowed = model.narrowed({"gate"});
  model.tensors->add<float>("1.0.b", DType::F32, {2, 2}, {1, 2, 3, beyond});
  uint16_t all[4];
  ASSERT_TRUE(narrowed->read("1.0.b", 0, reinterpret_cast<char *>(all), 6));
  const Status status = narrowed->read("1.0.b", 4, reinterpret_cast<char *>(all), 4);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "tensor '1.0.b': element 3 is a number that bf16 would round, and was none when the "
                                   "weights were narrowed; use what was compiled, or compile again");
}

TEST(Narrow, ATensorOfAnotherTypeIsNotTaken) {
  Model model;
  const std::shared_ptr<const TensorSource> narrowed = model.narrowed({"norm"});
  model.tensors->add<uint16_t>("norm.weight", DType::F16, {3}, {1, 2, 3});
  const Expected<StoredTensor> found = narrowed->find("norm.weight");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().text(),
            "tensor 'norm.weight': is stored as f16, and was f32 when it was narrowed to bf16; use "
            "what was compiled, or compile again");
}

TEST(Narrow, AFamilyThatIsNotInF32IsRefused) {
  for (const char *id : {"bias", "none"}) {
    Model model;
    std::shared_ptr<const TensorSource> tensors = model.tensors;
    const Status status = narrow({id}, "m.onnx", model.spec, tensors);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().text(), "m.onnx: has no weights '" + std::string(id) +
                                         "' in f32, and the compile has narrowed some; name what was compiled, or "
                                         "compile again");
  }
}

} // namespace
