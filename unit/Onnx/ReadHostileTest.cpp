//===- ReadHostileTest.cpp - bytes that are no model --------------------------===//
#include "ReadHelpers.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// Why the bytes are refused, of a place in `message`.
std::string at(size_t byte, const std::string &message, const std::string &why) {
  return "m.onnx: byte " + std::to_string(byte) + ", in " + message + ": " + why +
         "; the file is damaged or no ONNX model: export or copy it again";
}

TEST(OnnxBytes, UnknownFieldsAreSkipped) {
  const std::string unknown =
      integer(1000, 5) + field(1001, "text") + tag(1002, 1) + "12345678" + tag(1003, 5) + "1234";
  const Read read(modelOf(graph({node("Neg", {"x"}, {"y"}, unknown)}, {"x"}, {"y"}, unknown), unknown));
  EXPECT_EQ(read.nodes(), "Neg(x)->y");
}

TEST(OnnxBytes, AMessageThatComesInTwoPartsIsOne) {
  const Read read(modelOf(graph({node("Neg", {"x"}, {"y"})}, {"x"}, {}),
                          field(ModelFields::graph, graph({node("Exp", {"y"}, {"z"})}, {}, {"z"}))));
  EXPECT_EQ(read.nodes(), "Neg(x)->y Exp(y)->z");
}

TEST(OnnxBytes, OfAFieldThatComesTwiceTheLastValueCounts) {
  const Read read(model({node("Neg", {"x"}, {"y"}, field(NodeFields::op, "Exp"))}, {"x"}, {"y"}));
  EXPECT_EQ(read.nodes(), "Exp(x)->y");
}

TEST(OnnxBytes, ALengthBeyondTheFile) {
  EXPECT_EQ(failure(tag(ModelFields::graph, 2) + varint(5) + "123"),
            at(2, "ModelProto", "field 7 has 5 bytes, its message has 3 left"));
  EXPECT_EQ(failure(tag(ModelFields::producerName, 2) + varint(uint64_t(1) << 40)),
            at(7, "ModelProto", "field 2 has 1099511627776 bytes, its message has 0 left"));
  EXPECT_EQ(failure(tag(ModelFields::producerName, 2) + varint(UINT64_MAX)),
            at(11, "ModelProto", "field 2 has 18446744073709551615 bytes, its message has 0 left"));
}

TEST(OnnxBytes, ALengthBeyondItsMessage) {
  const std::string node = tag(NodeFields::name, 2) + varint(9) + "123";
  EXPECT_EQ(failure(field(ModelFields::graph, field(GraphFields::node, node)) + "123456789"),
            at(6, "NodeProto", "field 3 has 9 bytes, its message has 3 left"));
}

TEST(OnnxBytes, ANumberThatIsCutOrTooLong) {
  const std::string why = "a number of more than 10 bytes, or one that its message cuts";
  EXPECT_EQ(failure(tag(ModelFields::irVersion, 0) + "\x80"), at(2, "ModelProto", why));
  const std::string text = failure(tag(ModelFields::irVersion, 0) + std::string(11, '\x80'));
  EXPECT_NE(text.find(why), std::string::npos) << text;
  EXPECT_EQ(failure(field(ModelFields::opsetImport, tag(OperatorSetFields::version, 0) + "\x80") + "\x01"),
            at(4, "OperatorSetIdProto", why));
}

TEST(OnnxBytes, AFieldWithoutANumber) {
  const std::string why = "a field without a number, or the file ends";
  EXPECT_EQ(failure(std::string(1, '\0')), at(1, "ModelProto", why));
  EXPECT_EQ(failure("\x80"), at(1, "ModelProto", why));
}

TEST(OnnxBytes, AFieldOfAnotherWireType) {
  EXPECT_EQ(failure(field(ModelFields::irVersion, "1")), at(1, "ModelProto", "field 1 has wire type 2, it must be 0"));
  EXPECT_EQ(failure(integer(ModelFields::graph, 1)), at(1, "ModelProto", "field 7 has wire type 0, it must be 2"));
  const std::string real = attribute("a", AttributeType::Float, integer(AttributeFields::real, 1));
  const std::string text = failure(model({node("Op", {}, {}, real)}, {}, {}));
  EXPECT_NE(text.find("in AttributeProto: field 2 has wire type 0, it must be 5"), std::string::npos) << text;
}

TEST(OnnxBytes, GroupsAndWireTypesThatAreNone) {
  for (uint32_t type : {3, 4, 6, 7})
    EXPECT_EQ(
        failure(tag(1000, type)),
        at(2, "ModelProto", "field 1000 has wire type " + std::to_string(type) + ", which no message of ONNX has"));
}

TEST(OnnxBytes, AFixedValueThatItsMessageCuts) {
  for (const std::string &bytes : {tag(1000, 1) + "1234567", tag(1000, 5) + "123"}) {
    const std::string text = failure(bytes);
    EXPECT_NE(text.find("in ModelProto: the message or the file ends inside a value"), std::string::npos) << text;
  }
}

TEST(OnnxBytes, APackedFieldThatEndsInsideAnElement) {
  const std::string reals = attribute("a", AttributeType::Floats, field(AttributeFields::reals, "12345"));
  const std::string text = failure(model({node("Op", {}, {"y"}, reals)}, {}, {"y"}));
  EXPECT_NE(text.find("in a packed field: the message or the file ends inside a value"), std::string::npos) << text;
}

TEST(OnnxBytes, TextThatIsNotUtf8) {
  const std::string text = failure(model({node("Neg", {"x\xff"}, {"y\xc3\xa9"})}, {}, {}));
  EXPECT_NE(text.find("in NodeProto: 'x\\xff' is not UTF-8"), std::string::npos) << text;
  EXPECT_EQ(failure(model({node("Neg", {"x\xc3\xa9"}, {"y"})}, {"x\xc3\xa9"}, {"y"})), "");
}

TEST(OnnxBytes, EveryPrefixOfAModelIsRefusedOrRead) {
  const TempFolder folder;
  const std::string w =
      initializer(tensor("w", ElementType::I64, {2}, field(TensorFields::int64Data, varints({1, 2}))));
  const std::string bytes =
      modelOf(graph({node("f", {"x", "w"}, {"y"}, domain("f") + intAttribute("axis", 1))}, {"x"}, {"y"}, w),
              function("f", {"a", "b"}, {"c"}, {node("Add", {"a", "b"}, {"c"})}));
  for (size_t count = 0; count < bytes.size(); ++count)
    (void)bool(readGraph(folder.write("m.onnx", bytes.substr(0, count))));
  EXPECT_EQ(failure(bytes), "");
}

TEST(OnnxBytes, EveryBitOfAModelMayBeAnother) {
  const TempFolder folder;
  folder.write("w.bin", "0123");
  const std::string w = initializer(tensor("w", ElementType::F32, {1}, externalData("w.bin", "0", "4")));
  const std::string bytes = model({node("Add", {"x", "w"}, {"y"}, intAttribute("axis", 1))}, {"x"}, {"y"}, w);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string mutant = bytes;
    mutant[bit / 8] = static_cast<char>(mutant[bit / 8] ^ (1 << bit % 8));
    (void)bool(readGraph(folder.write("m.onnx", mutant)));
  }
  Expected<Graph> graph = readGraph(folder.write("m.onnx", bytes));
  EXPECT_TRUE(graph) << graph.error().text();
}

TEST(OnnxBytes, ANameOfMoreThanAGraphMayTake) {
  TempFolder folder;
  const uint64_t bytes = (uint64_t(1) << 30) + 1;
  // The name itself is a hole of the file.
  const std::string head = tag(ModelFields::producerName, 2) + varint(bytes);
  const std::string path = folder.write("m.onnx", head);
  std::filesystem::resize_file(path, head.size() + bytes);
  Expected<Graph> graph = readGraph(path);
  ASSERT_FALSE(graph);
  EXPECT_EQ(folder.relative(graph.error().text()),
            "m.onnx: the graph without its weights takes more than 1.00 GiB (1.07 GB); store weights in raw_data or as "
            "external data, and export fewer nodes");
}

TEST(OnnxBytes, ASafetensorsFileIsNoModel) { EXPECT_NE(failure(std::string("\x02\0\0\0\0\0\0\0{}", 10)), ""); }

} // namespace
