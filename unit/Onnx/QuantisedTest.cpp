//===- QuantisedTest.cpp - weights of few bits, read ------------------------------===//
//
// What each packing means, on weights small enough to count: a weight is (number - zero point) * scale.
//
//===----------------------------------------------------------------------===//
#include "Quantised.h"
#include "ReadHelpers.h"
#include "Tensors.h"
#include <cmath>
#include <fcntl.h>

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

std::string bytesOf(const std::vector<int> &values) {
  std::string out;
  for (int value : values)
    out += char(value);
  return out;
}

std::string floatsOf(const std::vector<float> &values) {
  std::string out;
  for (float value : values)
    out += raw(value);
  return out;
}

/// A part whose element is the sum of indices, each divided by its block and times its stride.
QuantisedPart part(ElementType type, std::vector<int64_t> shape, const std::string &bytes, std::vector<int64_t> strides,
                   std::vector<int64_t> blocks = {}) {
  QuantisedPart out;
  out.tensor = {"w", type, std::move(shape), -1, 0, std::make_shared<const std::string>(bytes)};
  blocks.resize(strides.size(), 1);
  out.strides = std::move(strides);
  out.blocks = std::move(blocks);
  return out;
}

std::vector<float> read(const Quantised &weights, int64_t first, int64_t count, const Files &files = Files()) {
  EXPECT_EQ(outsideOf(weights).value_or(""), "");
  std::vector<float> out(size_t(count), NAN);
  const Status status = readQuantised(files, weights, first, count, out.data());
  EXPECT_TRUE(status);
  return out;
}

std::vector<float> read(const Quantised &weights) { return read(weights, 0, weights.elements()); }

/// Weights of one dimension with the scale 1.
Quantised plain(ElementType type, const std::vector<int> &bytes, int64_t count) {
  Quantised out;
  out.shape = {count};
  out.numbers = part(type, {count}, bytesOf(bytes), {1});
  out.scales = part(ElementType::F32, {}, floatsOf({1}), {0});
  return out;
}

/// [2, 5] numbers of 4 bits in blocks of 2 along the rows, of which the last has one; the numbers of a row fill whole
/// blocks, and its three zero points two bytes.
Quantised blocked() {
  Quantised out;
  out.shape = {2, 5};
  out.numbers = part(ElementType::U4, {2, 6}, bytesOf({0x21, 0x43, 0x05, 0x76, 0x98, 0x0a}), {6, 1});
  out.scales = part(ElementType::F32, {2, 3}, floatsOf({1, 10, 100, 2, 20, 200}), {3, 1}, {1, 2});
  out.zeros = part(ElementType::U4, {2, 4}, bytesOf({0x10, 0x02, 0x43, 0x05}), {4, 1}, {1, 2});
  return out;
}

const std::vector<float> blockedWeights = {1, 2, 20, 30, 300, 2 * 3, 2 * 4, 20 * 4, 20 * 5, 200 * 5};

TEST(Quantised, OfTwoNumbersInAByteTheFirstIsInTheLowHalf) {
  EXPECT_EQ(read(plain(ElementType::U4, {0x21, 0xf3}, 3)), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(read(plain(ElementType::I4, {0x81, 0xf7}, 4)), (std::vector<float>{1, -8, 7, -1}));
}

TEST(Quantised, BytesAreSignedByTheirType) {
  EXPECT_EQ(read(plain(ElementType::U8, {0, 200}, 2)), (std::vector<float>{0, 200}));
  EXPECT_EQ(read(plain(ElementType::I8, {127, 200}, 2)), (std::vector<float>{127, -56}));
}

TEST(Quantised, RealNumbersOfEightBits) {
  EXPECT_EQ(read(plain(ElementType::F8E4M3, {0x38, 0xc0, 0x7e, 0x01}, 4)),
            (std::vector<float>{1, -2, 448, 0.001953125f}));
  EXPECT_EQ(read(plain(ElementType::F8E5M2, {0x3c, 0xc0}, 2)), (std::vector<float>{1, -2}));
  EXPECT_TRUE(std::isnan(read(plain(ElementType::F8E4M3, {0x7f}, 1))[0]));
  EXPECT_TRUE(std::isinf(read(plain(ElementType::F8E5M2, {0x7c}, 1))[0]));
}

TEST(Quantised, RealNumbersWithOneZeroHaveAnotherBias) {
  EXPECT_EQ(read(plain(ElementType::F8E4M3Z, {0x40, 0xc8, 0x7f}, 3)), (std::vector<float>{1, -2, 240}));
  EXPECT_EQ(read(plain(ElementType::F8E5M2Z, {0x40, 0x7f}, 2)), (std::vector<float>{1, 57344}));
  EXPECT_TRUE(std::isnan(read(plain(ElementType::F8E4M3Z, {0x80}, 1))[0]));
}

TEST(Quantised, BlocksHaveAScaleAndAZeroPointAndTheLastMayBeShort) { EXPECT_EQ(read(blocked()), blockedWeights); }

TEST(Quantised, BlocksLieAlongAnyAxis) {
  Quantised weights;
  weights.shape = {3, 2};
  weights.numbers = part(ElementType::I8, {3, 2}, bytesOf({1, 2, 3, 4, 5, 6}), {2, 1});
  weights.scales = part(ElementType::F32, {2, 2}, floatsOf({1, 10, 100, 1000}), {2, 1}, {2, 1});
  EXPECT_EQ(read(weights), (std::vector<float>{1, 20, 3, 40, 500, 6000}));
}

TEST(Quantised, ZeroPointsMayBeRealNumbers) {
  Quantised weights = plain(ElementType::U4, {0x73}, 2);
  weights.zeros = part(ElementType::F32, {}, floatsOf({2.5f}), {0});
  EXPECT_EQ(read(weights), (std::vector<float>{0.5f, 4.5f}));
}

TEST(Quantised, AProductIsRoundedOnceFromAScaleThatIsWidened) {
  Quantised weights = plain(ElementType::U8, {7}, 1);
  weights.zero = 128;
  weights.scales = part(ElementType::F16, {}, bytesOf({0x55, 0x35}), {0}); // 0.333251953125
  EXPECT_EQ(read(weights), std::vector<float>{-121 * 0.333251953125f});
  weights.scales = part(ElementType::F32, {}, floatsOf({0.1f}), {0});
  EXPECT_EQ(read(weights), std::vector<float>{-121.0f * 0.1f});
}

TEST(Quantised, AnyRangeIsThatOfTheWholeInMemoryAndInAFile) {
  for (bool isInFile : {false, true}) {
    Quantised weights = blocked();
    TempFolder folder;
    Files files;
    for (QuantisedPart *one : {&weights.numbers, &*weights.scales, &*weights.zeros}) {
      if (!isInFile)
        continue;
      const std::string path = folder.write(std::to_string(files.files.size()), "12345" + *one->tensor.bytes);
      Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      one->tensor.file = int64_t(files.files.size());
      one->tensor.offset = 5;
      one->tensor.bytes = nullptr;
      files.files.push_back({path, "w", 5 + one->tensor.byteSize(), std::move(file)});
    }
    for (int64_t first = 0; first < 10; ++first)
      for (int64_t count = 1; first + count <= 10; ++count)
        EXPECT_EQ(read(weights, first, count, files),
                  std::vector<float>(blockedWeights.begin() + first, blockedWeights.begin() + first + count))
            << first << " " << count;
  }
}

TEST(Quantised, AFileThatEndsBeforeIsAnError) {
  Quantised weights = plain(ElementType::U8, {1, 2}, 2);
  TempFolder folder;
  Files files;
  const std::string path = folder.write("w", "1");
  files.files.push_back({path, "w", 2, Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC))});
  weights.numbers.tensor.file = 0;
  float out[2];
  EXPECT_FALSE(readQuantised(files, weights, 0, 2, out));
}

TEST(Quantised, NoPartIsReadBeyondItsConstant) {
  Quantised weights = blocked();
  weights.scales->tensor.shape = {5};
  EXPECT_EQ(outsideOf(weights), "scales of its weights are read beyond the 5 elements of 'w'");
  weights = blocked();
  weights.zeros->strides[0] = 6;
  EXPECT_EQ(outsideOf(weights), "zero points of its weights are read beyond the 8 elements of 'w'");
  weights = blocked();
  weights.numbers.strides[0] = -1;
  EXPECT_EQ(outsideOf(weights), "numbers of its weights are read beyond the 12 elements of 'w'");
  weights = blocked();
  weights.numbers.strides[0] = INT64_MAX;
  EXPECT_TRUE(outsideOf(weights));
  weights = blocked();
  weights.scales->blocks[1] = 0;
  EXPECT_TRUE(outsideOf(weights));
}

TEST(Quantised, WeightsThatAFewNumbersAreRepeatedToAreCounted) {
  Quantised weights = plain(ElementType::I8, {1}, 1);
  weights.shape = {int64_t(1) << 32, int64_t(1) << 31};
  for (QuantisedPart *part : {&weights.numbers, &*weights.scales}) {
    part->strides = {0, 0};
    part->blocks = {1, 1};
  }
  EXPECT_EQ(outsideOf(weights), "weights of shape [4294967296, 2147483648] are too many");
  weights.shape[1] = 1 << 20; // 2^54 bytes
  EXPECT_TRUE(outsideOf(weights));
  weights.shape[1] = 1 << 16;
  EXPECT_EQ(outsideOf(weights), std::nullopt);
}

TEST(Quantised, FormatsAreNamed) {
  Quantised weights = blocked();
  weights.block = 2;
  EXPECT_EQ(weights.format(), "4-bit weights in blocks of 2");
  weights.block = 0;
  weights.scales = part(ElementType::F32, {2}, floatsOf({1, 2}), {1, 0});
  EXPECT_EQ(weights.format(), "4-bit weights with a scale a row");
  weights.scales = part(ElementType::F32, {5}, floatsOf({1, 2, 3, 4, 5}), {0, 1});
  EXPECT_EQ(weights.format(), "4-bit weights with a scale a column");
  EXPECT_EQ(plain(ElementType::F8E4M3, {0}, 1).format(), "FLOAT8E4M3FN weights with one scale");
  EXPECT_EQ(plain(ElementType::I8, {0}, 1).format(), "8-bit weights with one scale");
}

TEST(OnnxTensors, QuantisedWeightsAreFloatsOfTheirView) {
  OnnxTensors tensors(std::make_shared<Files>(Files()));
  View view{0, 0, {5, 2}, {1, 5}, std::make_shared<const Quantised>(blocked())}; // transposed
  ASSERT_TRUE(tensors.add("a", view.quantised->numbers.tensor, view));
  EXPECT_EQ(tensors.find("a")->type, DType::F32);
  std::vector<float> out(10), wanted;
  ASSERT_TRUE(tensors.read("a", 0, reinterpret_cast<char *>(out.data()), 40));
  for (size_t i = 0; i < 10; ++i)
    wanted.push_back(blockedWeights[i % 2 * 5 + i / 2]);
  EXPECT_EQ(out, wanted);
  view.offset = 1;
  const Status status = tensors.add("b", view.quantised->numbers.tensor, view);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "tensor 'w': element 10 is read of 10; export the model again");
}

} // namespace
