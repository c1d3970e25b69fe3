//===- DataFileTest.cpp - the weights of a graph that is written --------------===//
#include "DataFile.h"
#include "ReadHelpers.h"
#include "k2c/Model/Rope.h"
#include <limits>

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// Tensors whose bytes are given.
class GivenTensors : public TensorSource {
public:
  struct Given {
    DType type;
    std::vector<int64_t> shape;
    std::string bytes;
  };
  std::map<std::string, Given> tensors;

  /// A tensor of float32: 0, 1, 2 ..
  void count(const std::string &name, std::vector<int64_t> shape, float from = 0) {
    std::string bytes;
    for (int64_t i = 0; i < shape[0] * shape[1]; i++)
      bytes += raw(from + float(i));
    tensors[name] = {DType::F32, std::move(shape), bytes};
  }
  Expected<StoredTensor> find(const std::string &name) const override {
    const auto found = tensors.find(name);
    if (found == tensors.end())
      return Error{name, "is not there", ""};
    return StoredTensor{found->second.type, found->second.shape};
  }
  Status read(const std::string &name, int64_t offset, char *out, int64_t count) const override {
    tensors.at(name).bytes.copy(out, size_t(count), size_t(offset));
    return {};
  }
  TensorPlace place(const std::string &name) const override { return {}; }
  std::vector<PieceFile> files() const override { return {}; }
};

struct Written {
  GivenTensors given;
  DataFile data;
  TempFolder folder;

  /// What the file has of the tensor.
  std::vector<float> write(DataTensor tensor) {
    const size_t count = size_t(tensor.elements());
    const int64_t offset = data.add(std::move(tensor));
    const Status status = data.write(folder / "d", given, {});
    EXPECT_TRUE(status) << status.error().text();
    std::ifstream file(folder / "d", std::ios::binary);
    file.seekg(offset);
    std::vector<float> values(count);
    file.read(reinterpret_cast<char *>(values.data()), std::streamsize(count * sizeof(float)));
    EXPECT_TRUE(file);
    return values;
  }
};

using Order = DataTensor::Order;

TEST(DataFile, SourcesLieOneBehindAnother) {
  Written file;
  file.given.count("a", {2, 2});
  file.given.count("b", {2, 2}, 10);
  EXPECT_EQ(file.write({Order::AsStored, {2, 2, 2}, {"a", "b"}}), (std::vector<float>{0, 1, 2, 3, 10, 11, 12, 13}));
}

TEST(DataFile, RowsOfPairsTakeTurns) {
  Written file;
  for (const char *name : {"a", "b", "c", "d"})
    file.given.count(name, {2, 1}, float(10 * (name[0] - 'a')));
  EXPECT_EQ(file.write({Order::InTurns, {2, 4, 1}, {"a", "b", "c", "d"}}),
            (std::vector<float>{0, 10, 1, 11, 20, 30, 21, 31}));
}

TEST(DataFile, AMatrixIsTurnedInBlocksOfAnySize) {
  for (const auto &[rows, columns] : {std::pair(3, 2), std::pair(70, 45), std::pair(5000, 2000)}) {
    Written file;
    file.given.count("a", {rows, columns});
    const std::vector<float> turned = file.write({Order::Transposed, {columns, rows}, {"a"}});
    bool isRight = true;
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < columns; c++)
        isRight &= turned[size_t(c * rows + r)] == float(r * columns + c);
    EXPECT_TRUE(isRight) << rows << " x " << columns;
  }
}

TEST(DataFile, TensorsOfSeveralPiecesAreWhole) {
  constexpr int64_t rows = 700, columns = 2000; // a piece has 2^20 elements
  for (const Order order : {Order::AsStored, Order::InTurns}) {
    Written file;
    file.given.count("a", {rows, columns});
    file.given.count("b", {rows, columns}, float(rows * columns));
    const std::vector<float> found = file.write({order, {2, rows, columns}, {"a", "b"}});
    bool isRight = true;
    for (int64_t row = 0; row < 2 * rows; row++)
      for (int64_t column = 0; column < columns; column++) {
        const int64_t from = order == Order::AsStored ? row : row % 2 * rows + row / 2;
        isRight &= found[size_t(row * columns + column)] == float(from * columns + column);
      }
    EXPECT_TRUE(isRight) << int(order);
  }
}

TEST(DataFile, NarrowNumbersWiden) {
  Written file;
  file.given.tensors["bf16"] = {DType::BF16, {2}, rawList<uint16_t>({0x3fc0, 0x0001})};
  file.given.tensors["f16"] = {DType::F16, {2}, rawList<uint16_t>({0x3e00, 0x0001})};
  EXPECT_EQ(file.write({Order::AsStored, {2, 2}, {"bf16", "f16"}}),
            (std::vector<float>{1.5f, 0x1p-133f, 1.5f, 0x1p-24f}));
}

TEST(DataFile, TablesAreThoseOfOurPrograms) {
  Written file;
  RopeSpec rope;
  rope.dims = 4;
  const std::vector<float> all = ropeTable(rope, 3), sines = file.write({Order::Sines, {3, 2}, {}, rope});
  EXPECT_EQ(sines, (std::vector<float>{all[2], all[3], all[6], all[7], all[10], all[11]}));
}

TEST(DataFile, TablesOfSeveralPiecesAreWhole) {
  Written file;
  RopeSpec rope;
  rope.dims = 1024;
  constexpr int64_t rows = 2100, pairs = 512;
  const std::vector<float> all = ropeTable(rope, rows), cosines = file.write({Order::Cosines, {rows, pairs}, {}, rope});
  bool isRight = true;
  for (int64_t row = 0; row < rows; row++)
    isRight &=
        std::equal(cosines.begin() + row * pairs, cosines.begin() + (row + 1) * pairs, all.begin() + 2 * row * pairs);
  EXPECT_TRUE(isRight);
}

TEST(DataFile, LargeTensorsBeginOnPages) {
  DataFile data;
  EXPECT_EQ(data.add({Order::AsStored, {3}}), 0);
  EXPECT_EQ(data.add({Order::AsStored, {3}}), 64);
  EXPECT_EQ(data.add({Order::AsStored, {1024}}), 4096);
  EXPECT_EQ(data.bytes(), 8192);
}

TEST(DataFile, WhatCannotBeWrittenOrReadIsAnError) {
  const TempFolder folder;
  GivenTensors none;
  DataFile data;
  data.add({Order::AsStored, {3}, {"a"}});
  EXPECT_EQ(folder.relative(data.write(folder / "d", none, {}).error().text()), "a: is not there");
  EXPECT_EQ(folder.relative(data.write(folder / "d", none, {}).error().text()),
            "d: cannot be created: File exists; check space and permissions");
}

TEST(DataFile, WeightsThatAreNoNumbersAreAnError) {
  const float largest = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  const auto said = [](const GivenTensors::Given &given) {
    const TempFolder folder;
    GivenTensors tensors;
    tensors.tensors["a"] = given;
    DataFile data;
    data.add({Order::AsStored, {2}, {"a"}});
    const Status status = data.write(folder / "d", tensors, {});
    return status ? "" : status.error().text();
  };
  EXPECT_EQ(said({DType::F32, {2}, rawList<float>({1, largest})}), "");
  EXPECT_EQ(said({DType::F32, {2}, rawList<float>({1, infinity})}),
            "tensor 'a': element 1 is NaN or infinite; the checkpoint is damaged: fetch it again");
  EXPECT_EQ(said({DType::BF16, {2}, rawList<uint16_t>({0x7fc0, 0})}),
            "tensor 'a': element 0 is NaN or infinite; the checkpoint is damaged: fetch it again");
}

} // namespace
