//===- ReadTest.cpp - models and their graphs ---------------------------------===//
#include "ReadHelpers.h"
#include <sys/stat.h>

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

const std::string damaged = "; the model is damaged: export or copy it again";

/// A model of IR version `ir` with operators of `domain` in `version`.
std::string versions(int64_t ir, const std::string &domain, int64_t version) {
  return integer(ModelFields::irVersion, ir) + field(ModelFields::opsetImport, import(domain, version)) +
         field(ModelFields::graph, graph({}, {"x"}, {"x"}));
}

TEST(ReadOnnx, NodesHaveTheVersionOfTheirDomain) {
  const Read read(
      modelOf(graph({node("Neg", {"x"}, {"y"}, domain("ai.onnx")), node("Gelu", {"y"}, {"z"}, domain("com.microsoft"))},
                    {"x"}, {"z"}),
              field(ModelFields::opsetImport, import("com.microsoft", 1))));
  EXPECT_EQ(read.nodes(), "Neg(x)->y Gelu(y)->z");
  ASSERT_EQ(read.graph.nodes.size(), 2u);
  EXPECT_EQ(read.graph.nodes[0].version, 18);
  EXPECT_EQ(read.graph.nodes[0].domain, "");
  EXPECT_EQ(read.graph.nodes[1].version, 1);
  EXPECT_EQ(read.graph.nodes[1].domain, "com.microsoft");
}

TEST(ReadOnnx, AModelSaysItsVersionAndProducer) {
  const Read read(model({}, {"x"}, {"x"}) + field(ModelFields::producerName, "pytorch") +
                  field(ModelFields::producerVersion, "2.15"));
  EXPECT_EQ(read.graph.irVersion, 10);
  EXPECT_EQ(read.graph.producer, "pytorch 2.15");
}

TEST(ReadOnnx, IrVersionsThreeToFourteen) {
  EXPECT_EQ(failure(versions(3, "", 13)), "");
  EXPECT_EQ(failure(versions(14, "ai.onnx", 28)), "");
  for (int64_t ir : {0, 2, 15, -1})
    EXPECT_EQ(failure(versions(ir, "", 13)), "m.onnx: IR version " + std::to_string(ir) +
                                                 " is not read, 3 to 14 are; is it an ONNX model? If so, convert it "
                                                 "with the onnx package");
}

TEST(ReadOnnx, OperatorsThirteenToTwentyEight) {
  const std::string remedy = "; convert the model with onnx.version_converter";
  EXPECT_EQ(failure(versions(10, "", 12)),
            "m.onnx: the model imports version 12 of the operators of ai.onnx, 13 to 28 are read" + remedy);
  EXPECT_EQ(failure(versions(10, "ai.onnx", 29)),
            "m.onnx: the model imports version 29 of the operators of ai.onnx, 13 to 28 are read" + remedy);
  EXPECT_EQ(failure(versions(10, "com.microsoft", 2)),
            "m.onnx: the model imports version 2 of the operators of com.microsoft, 1 is read" + remedy);
}

TEST(ReadOnnx, OfADomainThatIsImportedTwiceTheHighestVersionCounts) {
  const Read read(versions(10, "", 13) + field(ModelFields::opsetImport, import("ai.onnx", 20)) +
                  field(ModelFields::graph, graph({node("Neg", {"x"}, {"y"})}, {}, {"y"})));
  ASSERT_EQ(read.graph.nodes.size(), 1u);
  EXPECT_EQ(read.graph.nodes[0].version, 20);
}

TEST(ReadOnnx, AnOperatorOfADomainThatIsNotReadIsRefusedWhereItIsNeeded) {
  const Strings nodes = {node("Odd", {"x"}, {"y"}, domain("com.example") + named("n"))};
  EXPECT_EQ(failure(model(nodes, {"x"}, {"y"})),
            "m.onnx: node 'n' (Odd) is of domain 'com.example', and the model defines no function of that name; export "
            "the model without it");
  EXPECT_EQ(failure(model(nodes, {"x"}, {"x"})), "");
}

TEST(ReadOnnx, AnOperatorOfADomainThatIsNotImportedIsRefusedWhereItIsNeeded) {
  const Strings nodes = {node("Gelu", {"x"}, {"y"}, domain("com.microsoft"))};
  EXPECT_EQ(failure(model(nodes, {"x"}, {"y"})),
            "m.onnx: the Gelu node of 'y' is of a domain whose operators are not imported where it stands; export the "
            "model without it");
  EXPECT_EQ(failure(model(nodes, {"x"}, {"x"})), "");
}

TEST(ReadOnnx, AModelWithoutGraphOrOutputs) {
  const std::string why = "m.onnx: has no graph, or one without outputs" + damaged;
  EXPECT_EQ(failure(model({}, {"x"}, {})), why);
  EXPECT_EQ(failure(integer(ModelFields::irVersion, 10)), why);
}

TEST(ReadOnnx, TrainingInformationIsRefused) {
  EXPECT_EQ(failure(model({}, {"x"}, {"x"}) + field(ModelFields::trainingInfo, "")),
            "m.onnx: has training information; export the model for inference");
}

TEST(ReadOnnx, InputsAndOutputsHaveTypesAndShapes) {
  const std::string sizes = field(ShapeFields::size, field(SizeFields::symbol, "batch")) +
                            field(ShapeFields::size, integer(SizeFields::number, 7)) + field(ShapeFields::size, "");
  const std::string type =
      field(TypeFields::tensor, integer(TensorTypeFields::element, 7) + field(TensorTypeFields::shape, sizes));
  const Read read(
      model({}, {}, {"x"},
            field(GraphFields::input, field(ValueInfoFields::name, "x") + field(ValueInfoFields::type, type))));
  ASSERT_EQ(read.graph.inputs.size(), 1u);
  const Port &input = read.graph.inputs[0];
  EXPECT_EQ(read.nameOf(input.value), "x");
  EXPECT_EQ(input.type, ElementType::I64);
  ASSERT_TRUE(input.shape);
  ASSERT_EQ(input.shape->size(), 3u);
  EXPECT_EQ((*input.shape)[0].symbol, "batch");
  EXPECT_EQ((*input.shape)[1].size, 7);
  EXPECT_LT((*input.shape)[2].size, 0);
  EXPECT_EQ((*input.shape)[2].symbol, "");
  ASSERT_EQ(read.graph.outputs.size(), 1u);
  EXPECT_EQ(read.graph.outputs[0].type, ElementType::F32);
  EXPECT_FALSE(read.graph.outputs[0].shape);
}

TEST(ReadOnnx, AnInputThatIsNoTensorIsRefusedWhereItIsNeeded) {
  const auto of = [](uint32_t kind, const std::string &output) {
    return failure(model(
        {node("Neg", {"s"}, {"y"}, named("n"))}, {"x"}, {output},
        field(GraphFields::input, field(ValueInfoFields::name, "s") + field(ValueInfoFields::type, field(kind, "")))));
  };
  const auto refused = [](const std::string &kind) {
    return "m.onnx: node 'n' (Neg) reads 's', which is of type " + kind +
           ": only tensors of numbers are read; export the model without it";
  };
  EXPECT_EQ(of(TypeFields::sequence, "y"), refused("sequence"));
  EXPECT_EQ(of(TypeFields::map, "y"), refused("map"));
  EXPECT_EQ(of(TypeFields::optional, "y"), refused("optional value"));
  EXPECT_EQ(of(TypeFields::sparseTensor, "y"), refused("sparse tensor"));
  EXPECT_EQ(of(TypeFields::opaque, "y"), refused("opaque value"));
  EXPECT_EQ(of(TypeFields::sequence, "x"), "");
}

TEST(ReadOnnx, AnOutputThatIsNoTensorIsRefused) {
  EXPECT_EQ(
      failure(model({}, {"x"}, {},
                    field(GraphFields::output, field(ValueInfoFields::name, "x") +
                                                   field(ValueInfoFields::type, field(TypeFields::sequence, ""))))),
      "m.onnx: the model returns 'x', which is of type sequence: only tensors of numbers are read; export the "
      "model without it");
}

TEST(ReadOnnx, InputsOutputsAndInitializersHaveNames) {
  EXPECT_EQ(failure(model({}, {""}, {"x"})), "m.onnx: an input of the model has no name" + damaged);
  EXPECT_EQ(failure(model({}, {"x"}, {""})), "m.onnx: an output of the model has no name" + damaged);
  EXPECT_EQ(failure(model({}, {"x"}, {"x"}, initializer(tensor("", ElementType::F32, {0}, "")))),
            "m.onnx: an initializer of the model has no name" + damaged);
}

TEST(ReadOnnx, AttributesOfEachKind) {
  const std::string list =
      attribute("reals", AttributeType::Floats, field(AttributeFields::reals, rawList<float>({1.5f, -2.f}))) +
      attribute("integers", AttributeType::Ints,
                integer(AttributeFields::integers, 3) + field(AttributeFields::integers, varints({-1, 300}))) +
      attribute("texts", AttributeType::Strings,
                field(AttributeFields::texts, "a") + field(AttributeFields::texts, "\xff"));
  const std::string single =
      attribute("real", AttributeType::Float, tag(AttributeFields::real, 5) + raw(0.5f)) + intAttribute("integer", -7) +
      attribute("text", AttributeType::String, field(AttributeFields::text, "silu")) +
      attribute("tensor", AttributeType::Tensor,
                field(AttributeFields::tensor, tensor("t", ElementType::U8, {2}, rawData("ab"))));
  const Read read(model({node("Op", {"x"}, {"y"}, single + list)}, {"x"}, {"y"}));
  ASSERT_EQ(read.graph.nodes.size(), 1u);
  const std::map<std::string, Attribute> &attributes = read.graph.nodes[0].attributes;
  ASSERT_EQ(attributes.size(), 7u);
  EXPECT_EQ(attributes.at("real").real, 0.5f);
  EXPECT_EQ(attributes.at("integer").integer, -7);
  EXPECT_EQ(attributes.at("integer").kind, Attribute::Kind::Int);
  EXPECT_EQ(attributes.at("text").text, "silu");
  EXPECT_EQ(attributes.at("reals").reals, (std::vector<float>{1.5f, -2.f}));
  EXPECT_EQ(attributes.at("integers").integers, (std::vector<int64_t>{3, -1, 300}));
  EXPECT_EQ(attributes.at("texts").texts, (Strings{"a", "\xff"}));
  Expected<std::string> bytes = readTensor(read.graph, *attributes.at("tensor").tensor, 2);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, "ab");
}

TEST(ReadOnnx, AnAttributeThatIsNotReadIsRefusedWhereItIsNeeded) {
  const auto of = [](AttributeType type, const std::string &output) {
    return failure(model({node("If", {"x"}, {"y"}, named("n") + attribute("a", type, ""))}, {"x"}, {output}));
  };
  const std::string without = "; export the model without it";
  EXPECT_EQ(of(AttributeType::Graph, "y"), "m.onnx: node 'n' (If) has a sub-graph in attribute 'a'" + without);
  EXPECT_EQ(of(AttributeType::Graphs, "y"), "m.onnx: node 'n' (If) has a sub-graph in attribute 'a'" + without);
  EXPECT_EQ(of(AttributeType::SparseTensor, "y"),
            "m.onnx: node 'n' (If) has a sparse tensor in attribute 'a'" + without);
  EXPECT_EQ(of(AttributeType::TypeProto, "y"),
            "m.onnx: node 'n' (If) has attribute 'a' of type 13 of AttributeProto" + without);
  EXPECT_EQ(of(AttributeType::None, "y"),
            "m.onnx: node 'n' (If) has attribute 'a' of type 0 of AttributeProto" + without);
  EXPECT_EQ(of(AttributeType::Graph, "x"), "");
}

TEST(ReadOnnx, AnAttributeThatOccursTwice) {
  EXPECT_EQ(failure(model({node("Op", {"x"}, {"y"}, named("n") + intAttribute("a", 1) + intAttribute("a", 2))}, {"x"},
                          {"y"})),
            "m.onnx: node 'n' (Op) has an attribute twice" + damaged);
}

TEST(ReadOnnx, AFileThatIsNone) {
  TempFolder folder;
  const auto why = [&](const std::string &name) {
    Expected<Graph> graph = readGraph(folder / name);
    return graph ? "" : folder.relative(graph.error().text());
  };
  EXPECT_EQ(why("none.onnx").rfind("none.onnx: cannot open", 0), 0u) << why("none.onnx");
  std::filesystem::create_directory(folder / "folder.onnx");
  ASSERT_EQ(::mkfifo((folder / "fifo.onnx").c_str(), 0600), 0);
  for (const char *name : {"folder.onnx", "fifo.onnx"})
    EXPECT_EQ(why(name), std::string(name) + ": is not a regular file; name the .onnx file of a model");
}

TEST(ReadOnnx, AFileOfMoreThanProtobufCounts) {
  TempFolder folder;
  const std::string path = folder.write("m.onnx", model({}, {"x"}, {"x"}));
  std::filesystem::resize_file(path, uint64_t(1) << 31);
  Expected<Graph> graph = readGraph(path);
  ASSERT_FALSE(graph);
  EXPECT_EQ(folder.relative(graph.error().text()),
            "m.onnx: has 2147483648 bytes, at most 2147483647 are read; save the model with external data");
}

TEST(ReadOnnx, WeightsOfTheLargestFileAreSkipped) {
  TempFolder folder;
  const int64_t bytes = int64_t(1) << 30;
  const std::string before = integer(TensorFields::shape, bytes) + integer(TensorFields::type, 2) +
                             field(TensorFields::name, "w") + tag(TensorFields::rawData, 2) + varint(uint64_t(bytes));
  // The bytes themselves are a hole of the file, behind which it goes on.
  const std::string initializer = tag(GraphFields::initializer, 2) + varint(before.size() + uint64_t(bytes)) + before;
  const std::string rest = graph({node("Neg", {"w"}, {"y"})}, {}, {"y"});
  const std::string head = integer(ModelFields::irVersion, 10) + field(ModelFields::opsetImport, import("", 18)) +
                           tag(ModelFields::graph, 2) + varint(initializer.size() + uint64_t(bytes) + rest.size());
  const std::string path = folder.write("m.onnx", head + initializer);
  std::filesystem::resize_file(path, head.size() + initializer.size() + uint64_t(bytes));
  std::ofstream(path, std::ios::binary | std::ios::app) << rest;
  Expected<Graph> graph = readGraph(path);
  ASSERT_TRUE(graph) << graph.error().text();
  ASSERT_EQ(graph->constants.size(), 1u);
  EXPECT_EQ(graph->constants.begin()->second.offset, int64_t(head.size() + initializer.size()));
  EXPECT_EQ(graph->constants.begin()->second.byteSize(), bytes);
}

} // namespace
