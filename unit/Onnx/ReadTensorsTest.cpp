//===- ReadTensorsTest.cpp - the elements of constants ------------------------===//
#include "ReadHelpers.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

const std::string damaged = "; the model is damaged: export or copy it again";

/// A model whose output is an initializer "w".
std::string withTensor(ElementType type, const std::vector<int64_t> &shape, const std::string &data) {
  return model({}, {}, {"w"}, initializer(tensor("w", type, shape, data)));
}
/// The stored bytes of that initializer.
std::string bytesOf(ElementType type, const std::vector<int64_t> &shape, const std::string &data) {
  return Read(withTensor(type, shape, data)).bytesOf("w");
}
std::string failureOf(ElementType type, const std::vector<int64_t> &shape, const std::string &data) {
  return failure(withTensor(type, shape, data));
}
std::string refused(const std::string &why) { return "m.onnx: tensor 'w': " + why + damaged; }

TEST(OnnxTensors, RawDataIsAPlaceInTheFile) {
  const std::string bytes = withTensor(ElementType::F16, {2, 2}, rawData("abcdefgh"));
  const Read read(bytes);
  const Tensor *w = read.constant("w");
  ASSERT_TRUE(w);
  EXPECT_EQ(w->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(w->file, 0);
  EXPECT_EQ(w->offset, int64_t(bytes.find("abcdefgh")));
  EXPECT_EQ(read.bytesOf("w"), "abcdefgh");
}

TEST(OnnxTensors, FloatsAndDoublesArePlacesInTheFile) {
  EXPECT_EQ(bytesOf(ElementType::F32, {2}, field(TensorFields::floatData, rawList<float>({1, -2}))),
            rawList<float>({1, -2}));
  EXPECT_EQ(bytesOf(ElementType::F64, {1}, field(TensorFields::doubleData, raw(0.25))), raw(0.25));
}

TEST(OnnxTensors, IntegersOfEachTypeAreDecoded) {
  const auto int32 = [](ElementType type, std::initializer_list<int64_t> values) {
    return bytesOf(type, {int64_t(values.size())}, field(TensorFields::int32Data, varints(values)));
  };
  EXPECT_EQ(int32(ElementType::I32, {-1, 70000}), rawList<int32_t>({-1, 70000}));
  EXPECT_EQ(int32(ElementType::I16, {-300, 3}), rawList<int16_t>({-300, 3}));
  EXPECT_EQ(int32(ElementType::I8, {-128, 127}), rawList<int8_t>({-128, 127}));
  EXPECT_EQ(int32(ElementType::U16, {65535}), rawList<uint16_t>({65535}));
  EXPECT_EQ(int32(ElementType::U8, {255}), "\xff");
  EXPECT_EQ(int32(ElementType::Bool, {1, 0}), std::string("\1\0", 2));
  EXPECT_EQ(int32(ElementType::F16, {0x3c00}), rawList<uint16_t>({0x3c00}));
  EXPECT_EQ(int32(ElementType::BF16, {0xbf80}), rawList<uint16_t>({0xbf80}));
  EXPECT_EQ(int32(ElementType::F8E4M3, {0x38}), "\x38");
  EXPECT_EQ(int32(ElementType::F8E5M2, {0xc0}), "\xc0");
  EXPECT_EQ(bytesOf(ElementType::I64, {2}, field(TensorFields::int64Data, varints({-5, 1}))),
            rawList<int64_t>({-5, 1}));
  EXPECT_EQ(bytesOf(ElementType::U32, {1}, field(TensorFields::uint64Data, varints({0xffffffff}))),
            rawList<uint32_t>({0xffffffff}));
  EXPECT_EQ(bytesOf(ElementType::U64, {1}, field(TensorFields::uint64Data, varints({-1}))), std::string(8, '\xff'));
}

TEST(OnnxTensors, IntegersMayComeOneByOneAndBeforeTheirType) {
  const std::string content = integer(TensorFields::int32Data, 4) + field(TensorFields::int32Data, varints({5, 6})) +
                              field(TensorFields::name, "w") + integer(TensorFields::shape, 3) +
                              integer(TensorFields::type, 2);
  EXPECT_EQ(Read(model({}, {}, {"w"}, initializer(content))).bytesOf("w"), "\4\5\6");
}

TEST(OnnxTensors, ElementsOfFourBitsLieTwoInAByte) {
  EXPECT_EQ(bytesOf(ElementType::U4, {3}, rawData("\x21\x03")), "\x21\x03");
  EXPECT_EQ(bytesOf(ElementType::I4, {3}, field(TensorFields::int32Data, varints({0xf1, 0x07}))), "\xf1\x07");
  EXPECT_EQ(failureOf(ElementType::U4, {3}, rawData("abc")), refused("has 3 bytes, its shape and type ask for 2"));
}

TEST(OnnxTensors, ScalarsAndEmptyTensors) {
  EXPECT_EQ(bytesOf(ElementType::F32, {}, rawData("abcd")), "abcd");
  EXPECT_EQ(bytesOf(ElementType::F32, {0, 5}, ""), "");
  EXPECT_EQ(bytesOf(ElementType::I64, {0}, rawData("")), "");
}

TEST(OnnxTensors, ConstantNodesAreConstants) {
  const std::string value = attribute("value", AttributeType::Tensor,
                                      field(AttributeFields::tensor, tensor("", ElementType::U8, {2}, rawData("ab"))));
  const std::string reals =
      attribute("value_floats", AttributeType::Floats, field(AttributeFields::reals, rawList<float>({1, 2})));
  const std::string integers =
      attribute("value_ints", AttributeType::Ints, field(AttributeFields::integers, varints({3, -4})));
  const Read read(model({node("Constant", {}, {"t"}, value),
                         node("Constant", {}, {"f"},
                              attribute("value_float", AttributeType::Float, tag(AttributeFields::real, 5) + raw(2.f))),
                         node("Constant", {}, {"i"}, intAttribute("value_int", 9)), node("Constant", {}, {"fs"}, reals),
                         node("Constant", {}, {"is"}, integers), node("Op", {"t", "f", "i", "fs", "is"}, {"y"})},
                        {}, {"y"}));
  EXPECT_EQ(read.nodes(), "Op(t,f,i,fs,is)->y");
  EXPECT_EQ(read.bytesOf("t"), "ab");
  EXPECT_EQ(read.bytesOf("f"), raw(2.f));
  EXPECT_EQ(read.bytesOf("i"), raw(int64_t(9)));
  EXPECT_EQ(read.constant("i")->shape, std::vector<int64_t>());
  EXPECT_EQ(read.bytesOf("fs"), rawList<float>({1, 2}));
  EXPECT_EQ(read.bytesOf("is"), rawList<int64_t>({3, -4}));
  EXPECT_EQ(read.constant("is")->shape, std::vector<int64_t>{2});
}

TEST(OnnxTensors, AConstantOfTextIsRefusedWhereItIsNeeded) {
  const Strings nodes = {
      node("Constant", {}, {"s"}, attribute("value_string", AttributeType::String, field(AttributeFields::text, "a")))};
  EXPECT_EQ(failure(model(nodes, {"x"}, {"s"})),
            "m.onnx: the Constant node of 's' has not one value of numbers; export the model without it");
  EXPECT_EQ(failure(model(nodes, {"x"}, {"x"})), "");
}

TEST(OnnxTensors, ElementsThatAreNotReadAreRefusedWhereTheyAreNeeded) {
  const std::string text = initializer(tensor("w", ElementType::String, {1}, field(TensorFields::stringData, "a")));
  EXPECT_EQ(failure(model({}, {}, {"w"}, text)),
            "m.onnx: the model returns 'w', which is a tensor of STRING: only tensors of numbers are read; export the "
            "model without it");
  EXPECT_EQ(failure(model({}, {"x"}, {"x"}, text)), "");
  EXPECT_EQ(failureOf(ElementType(14), {1}, rawData("12345678")),
            "m.onnx: the model returns 'w', which is a tensor of COMPLEX64: only tensors of numbers are read; export "
            "the model without it");
  EXPECT_EQ(failureOf(ElementType(99), {1}, rawData("1")),
            "m.onnx: the model returns 'w', which is a tensor of type 99: only tensors of numbers are read; export the "
            "model without it");
}

TEST(OnnxTensors, AnElementTypeThatIsNone) {
  EXPECT_EQ(failureOf(ElementType::None, {1}, rawData("1")), refused("element type 0 is none of ONNX"));
  EXPECT_EQ(failureOf(ElementType(-1), {1}, rawData("1")), refused("element type -1 is none of ONNX"));
}

TEST(OnnxTensors, ShapesAreBounded) {
  EXPECT_EQ(failureOf(ElementType::U8, {2, -1}, rawData("1")), refused("has a dimension of -1"));
  EXPECT_EQ(failureOf(ElementType::F32, {int64_t(1) << 40, int64_t(1) << 40}, ""),
            refused("its shape and type ask for more than 2^63 bits"));
  EXPECT_EQ(failureOf(ElementType::F32, {0, int64_t(1) << 40, int64_t(1) << 40}, ""),
            refused("its shape and type ask for more than 2^63 bits"));
  EXPECT_EQ(failureOf(ElementType::F32, {int64_t(1) << 40}, rawData("1234")),
            refused("has 4 bytes, its shape and type ask for 4398046511104"));
  EXPECT_EQ(failureOf(ElementType::U8, std::vector<int64_t>(64, 1), rawData("1")), "");
  EXPECT_EQ(failureOf(ElementType::U8, std::vector<int64_t>(65, 1), rawData("1")),
            refused("has 65 dimensions, at most 64 are read"));
}

TEST(OnnxTensors, AsManyBytesAsShapeAndTypeAskFor) {
  EXPECT_EQ(failureOf(ElementType::F32, {2}, rawData("1234")), refused("has 4 bytes, its shape and type ask for 8"));
  EXPECT_EQ(failureOf(ElementType::F32, {2}, ""), refused("has 0 bytes, its shape and type ask for 8"));
  EXPECT_EQ(failureOf(ElementType::F32, {2}, field(TensorFields::floatData, "12345")),
            refused("has 5 bytes, its shape and type ask for 8"));
  EXPECT_EQ(failureOf(ElementType::I32, {2}, field(TensorFields::int32Data, varints({1}))),
            refused("has 1 stored numbers, its shape and type ask for 2"));
}

TEST(OnnxTensors, ElementsOfAnotherTypeThanTheTensor) {
  EXPECT_EQ(failureOf(ElementType::I32, {1}, field(TensorFields::floatData, raw(1.f))),
            refused("is INT32, but its elements are float_data"));
  EXPECT_EQ(failureOf(ElementType::F32, {1}, field(TensorFields::doubleData, raw(1.0))),
            refused("is FLOAT, but its elements are double_data"));
  EXPECT_EQ(failureOf(ElementType::F32, {1}, field(TensorFields::int32Data, varints({1}))),
            refused("is FLOAT, which is not stored in field 5"));
  EXPECT_EQ(failureOf(ElementType::I32, {1}, field(TensorFields::int64Data, varints({1}))),
            refused("is INT32, which is not stored in field 7"));
}

TEST(OnnxTensors, NumbersThatDoNotFitTheirType) {
  EXPECT_EQ(failureOf(ElementType::I8, {1}, field(TensorFields::int32Data, varints({128}))),
            refused("the stored number 128 is no INT8"));
  EXPECT_EQ(failureOf(ElementType::F16, {1}, field(TensorFields::int32Data, varints({-1}))),
            refused("the stored number -1 is no FLOAT16"));
  EXPECT_EQ(failureOf(ElementType::Bool, {1}, field(TensorFields::int32Data, varints({2}))),
            refused("the stored number 2 is no BOOL"));
}

TEST(OnnxTensors, ElementsThatAreThereTwice) {
  const std::string why = refused("has its elements twice, or in several pieces");
  const std::string half = field(TensorFields::floatData, raw(1.f));
  EXPECT_EQ(failureOf(ElementType::F32, {2}, half + half), why);
  EXPECT_EQ(failureOf(ElementType::U8, {1}, rawData("1") + field(TensorFields::int32Data, varints({1}))), why);
  EXPECT_EQ(failureOf(ElementType::U8, {1}, field(TensorFields::int32Data, varints({1})) + rawData("1")), why);
  EXPECT_EQ(failureOf(ElementType::U8, {1}, rawData("1") + externalData("w.bin", "0", "1")), why);
}

TEST(OnnxTensors, ChunksAreRefused) {
  EXPECT_EQ(failureOf(ElementType::U8, {1}, rawData("1") + field(TensorFields::segment, "")),
            "m.onnx: tensor 'w': is stored in chunks, which are not read; export the model again with whole tensors");
}

TEST(OnnxTensors, ReadingMoreThanTheLimit) {
  const Read read(withTensor(ElementType::U8, {3}, rawData("abc")));
  Expected<std::string> bytes = readTensor(read.graph, *read.constant("w"), 2);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().message, "constant 'w' has 3 B, at most 2 B are read");
}

TEST(OnnxTensors, AFileThatShrinksAfterItWasRead) {
  const std::string bytes = withTensor(ElementType::U8, {4}, rawData("abcd"));
  const Read read(bytes);
  const size_t end = bytes.find("abcd") + 2;
  std::filesystem::resize_file(read.folder / "m.onnx", end);
  EXPECT_EQ(read.folder.relative(read.bytesOf("w")), "m.onnx: ends at byte " + std::to_string(end) + ", " +
                                                         std::to_string(end + 2) +
                                                         " are needed; the file was changed while it was read");
}

} // namespace
