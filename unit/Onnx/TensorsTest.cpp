//===- TensorsTest.cpp - parts of constants as a checkpoint stores them -------===//
#include "Tensors.h"
#include "ReadHelpers.h"
#include <fcntl.h>

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// A constant of rows and columns whose elements are 0, 1, 2 ..
struct Counting {
  explicit Counting(int64_t rows, int64_t columns) {
    tensor.name = "w";
    tensor.type = ElementType::F32;
    tensor.shape = {rows, columns};
    std::string bytes;
    for (int64_t i = 0; i < rows * columns; ++i)
      bytes += raw(float(i));
    tensor.bytes = std::make_shared<std::string>(bytes);
  }

  Status add(const View &view) { return tensors.add("a", tensor, view); }
  /// Elements [first, first + count), in the tensor's order.
  std::vector<float> read(int64_t first, int64_t count) const {
    std::vector<float> out(static_cast<size_t>(count));
    const Status status = tensors.read("a", first * 4, reinterpret_cast<char *>(out.data()), count * 4);
    EXPECT_TRUE(status);
    return out;
  }
  /// The same of a constant that lies in a file, behind 12 other bytes.
  void intoFile() {
    auto files = std::make_shared<Files>();
    const std::string path = folder.write("w.data", "other bytes " + *tensor.bytes);
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    files->files.push_back({path, "w.data", 12 + tensor.byteSize(), std::move(file)});
    tensor.file = 0;
    tensor.offset = 12;
    tensor.bytes = nullptr;
    tensors = OnnxTensors(files);
  }

  TempFolder folder;
  Tensor tensor;
  OnnxTensors tensors{std::make_shared<Files>()};
};

std::string failure(const Status &status) { return status ? "" : status.error().text(); }

const View transposed{0, 0, {3, 2}, {1, 3}}; ///< of [2, 3]

TEST(OnnxTensors, RowsOfATransposedMatrixAreColumns) {
  for (bool isInFile : {false, true}) {
    Counting w(2, 3);
    if (isInFile)
      w.intoFile();
    ASSERT_TRUE(w.add(transposed));
    EXPECT_TRUE(w.tensors.isTransposed("a"));
    EXPECT_EQ(w.tensors.find("a")->shape, (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(w.read(0, 6), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  }
}

TEST(OnnxTensors, AnyRangeIsThatOfTheWhole) {
  const View views[] = {transposed, {0, 0, {2, 3}, {3, 1}}, {0, 1, {2, 2}, {3, 1}}, {0, 0, {2, 2}, {3, 2}}};
  for (const View &view : views)
    for (bool isInFile : {false, true}) {
      Counting w(2, 3);
      if (isInFile)
        w.intoFile();
      ASSERT_TRUE(w.add(view));
      const int64_t elements = view.shape[0] * view.shape[1];
      std::vector<float> all;
      for (int64_t row = 0; row < view.shape[0]; ++row)
        for (int64_t column = 0; column < view.shape[1]; ++column)
          all.push_back(float(view.offset + row * view.strides[0] + column * view.strides[1]));
      for (int64_t first = 0; first < elements; ++first)
        for (int64_t count = 1; first + count <= elements; ++count)
          EXPECT_EQ(w.read(first, count), std::vector<float>(all.begin() + first, all.begin() + first + count))
              << first << " " << count;
    }
}

TEST(OnnxTensors, AVectorKeepsItsRank) {
  Counting w(1, 4);
  ASSERT_TRUE(w.add({0, 1, {3}, {1}}));
  EXPECT_EQ(w.tensors.find("a")->shape, std::vector<int64_t>{3});
  EXPECT_EQ(w.read(1, 2), (std::vector<float>{2, 3}));
  EXPECT_FALSE(w.tensors.isTransposed("a"));
}

TEST(OnnxTensors, PlacesAreThoseInTheFile) {
  Counting w(2, 3);
  w.intoFile();
  ASSERT_TRUE(w.add({0, 3, {1, 3}, {3, 1}}));
  EXPECT_EQ(w.tensors.place("a").file, 0);
  EXPECT_EQ(w.tensors.place("a").offset, 12 + 3 * 4);
  ASSERT_EQ(w.tensors.files().size(), 1u);
  EXPECT_EQ(w.tensors.files()[0].name, "w.data");
}

TEST(OnnxTensors, NoElementOutsideOfTheConstantIsRead) {
  const std::string remedy = "; export the model again";
  EXPECT_EQ(failure(Counting(2, 3).add({0, 0, {2, 4}, {3, 1}})), "tensor 'w': element 6 is read of 6" + remedy);
  EXPECT_EQ(failure(Counting(2, 3).add({0, 6, {1}, {1}})), "tensor 'w': element 6 is read of 6" + remedy);
  EXPECT_EQ(failure(Counting(2, 3).add({0, -1, {2}, {1}})), "tensor 'w': element -1 is read of 6" + remedy);
  // The last one is inside, and another is not.
  EXPECT_EQ(failure(Counting(2, 3).add({0, 0, {2, 3}, {-1, 1}})), "tensor 'w': element -1 is read of 6" + remedy);
  EXPECT_EQ(failure(Counting(2, 3).add({0, 5, {2, 3}, {-3, -1}})), "");
}

TEST(OnnxTensors, NumbersBeyondAnySizeAreRefused) {
  const int64_t huge = int64_t(1) << 62;
  EXPECT_EQ(failure(Counting(2, 3).add({0, 0, {3, huge}, {huge, 1}})),
            "tensor 'w': is read in parts of shape [3, 4611686018427387904] and strides [4611686018427387904, 1]; "
            "export the model again");
  EXPECT_EQ(failure(Counting(2, 3).add({0, 0, {0}, {1}})),
            "tensor 'w': is read in parts of shape [0] and strides [1]; export the model again");
}

TEST(OnnxTensors, TypesThatProgramsDoNotReadAreNamed) {
  Counting w(2, 3);
  w.tensor.type = ElementType::F64;
  EXPECT_EQ(failure(w.add(transposed)), "tensor 'w': weights of type DOUBLE are not in this build; export the model in "
                                        "FLOAT, FLOAT16 or BFLOAT16");
}

TEST(OnnxTensors, AnUnknownNameIsNamed) {
  const auto found = Counting(2, 3).tensors.find("b");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().text(), "tensor 'b': is not among the weights of the ONNX file");
}

} // namespace
