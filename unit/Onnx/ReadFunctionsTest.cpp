//===- ReadFunctionsTest.cpp - functions in the place of their calls ----------===//
#include "ReadHelpers.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

const std::string damaged = "; the model is damaged: export or copy it again";

/// Fields of a FunctionProto.
std::string withDefault(const std::string &name, int64_t value) {
  return field(FunctionFields::attributeDefault, field(AttributeFields::name, name) +
                                                     integer(AttributeFields::integer, value) +
                                                     integer(AttributeFields::type, 2));
}

const std::string negExp =
    function("f", {"a"}, {"y"}, {node("Neg", {"a"}, {"t"}, named("neg")), node("Exp", {"t"}, {"y"}, named("exp"))});

TEST(OnnxFunctions, ACallBecomesTheNodesOfItsFunction) {
  const Read read(modelOf(graph({call("f", {"x"}, {"z"}, named("c"))}, {"x"}, {"z"}), negExp));
  EXPECT_EQ(read.nodes(), "Neg(x)->c/t Exp(c/t)->z");
  ASSERT_EQ(read.graph.nodes.size(), 2u);
  EXPECT_EQ(read.graph.nodes[0].name, "c/neg");
  EXPECT_EQ(read.graph.nodes[0].version, 18);
}

TEST(OnnxFunctions, TwoCallsHaveValuesOfTheirOwn) {
  const Read read(
      modelOf(graph({call("f", {"x"}, {"u"}, named("c")), call("f", {"u"}, {"v"}, named("d"))}, {"x"}, {"v"}), negExp));
  EXPECT_EQ(read.nodes(), "Neg(x)->c/t Exp(c/t)->u Neg(u)->d/t Exp(d/t)->v");
}

TEST(OnnxFunctions, CallsNestAndHaveThePathAsName) {
  const Read read(modelOf(graph({call("g", {"x"}, {"z"}, named("outer"))}, {"x"}, {"z"}),
                          function("g", {"a"}, {"y"}, {call("f", {"a"}, {"y"})}) + negExp));
  EXPECT_EQ(read.nodes(), "Neg(x)->outer/f/t Exp(outer/f/t)->z");
  EXPECT_EQ(read.graph.nodes[1].name, "outer/f/exp");
}

TEST(OnnxFunctions, NamesOfAFunctionAreNotThoseOfItsCaller) {
  const Read read(
      modelOf(graph({node("Abs", {"x"}, {"t"}), call("f", {"t"}, {"y"}, named("c"))}, {"x"}, {"y"}), negExp));
  EXPECT_EQ(read.nodes(), "Abs(x)->t Neg(t)->c/t Exp(c/t)->y");
}

TEST(OnnxFunctions, AFunctionCountsBeforeAnOperatorOfItsName) {
  const std::string gelu =
      field(ModelFields::functions, field(FunctionFields::name, "Gelu") + field(FunctionFields::domain, "ai.onnx") +
                                        field(FunctionFields::input, "a") + field(FunctionFields::output, "y") +
                                        field(FunctionFields::node, node("Erf", {"a"}, {"y"})) +
                                        field(FunctionFields::opsetImport, import("", 20)));
  const Read read(modelOf(graph({node("Gelu", {"x"}, {"y"})}, {"x"}, {"y"}), gelu));
  EXPECT_EQ(read.nodes(), "Erf(x)->y");
  EXPECT_EQ(read.graph.nodes[0].version, 20);
}

TEST(OnnxFunctions, OverloadsAreFunctionsOfTheirOwn) {
  const std::string functions =
      function("f", {"a"}, {"y"}, {node("Neg", {"a"}, {"y"})}) +
      function("f", {"a"}, {"y"}, {node("Exp", {"a"}, {"y"})}, field(FunctionFields::overload, "exp"));
  const std::string overload = field(NodeFields::overload, "exp");
  const Read read(modelOf(graph({call("f", {"x"}, {"y"}, overload)}, {"x"}, {"y"}), functions));
  EXPECT_EQ(read.nodes(), "Exp(x)->y");
  EXPECT_EQ(
      failure(model({node("Neg", {"x"}, {"y"}, overload)}, {"x"}, {"y"})),
      "m.onnx: the Neg node of 'y' has overload 'exp', which no function of the model has; export the model without "
      "it");
}

TEST(OnnxFunctions, AttributesAreThoseOfTheCallOrDefaultsOrLeftOut) {
  const std::string functions =
      function("f", {"a"}, {"y"},
               {node("Op", {"a"}, {"y"}, reference("p", "given") + reference("q", "kept") + reference("r", "absent"))},
               withDefault("kept", 5) + withDefault("given", 1));
  const Read read(modelOf(graph({call("f", {"x"}, {"y"}, intAttribute("given", 7))}, {"x"}, {"y"}), functions));
  ASSERT_EQ(read.graph.nodes.size(), 1u);
  const std::map<std::string, Attribute> &attributes = read.graph.nodes[0].attributes;
  ASSERT_EQ(attributes.size(), 2u);
  EXPECT_EQ(attributes.at("p").integer, 7);
  EXPECT_EQ(attributes.at("q").integer, 5);
}

TEST(OnnxFunctions, AttributesGoThroughNestedCalls) {
  const std::string functions = function("g", {"a"}, {"y"}, {call("f", {"a"}, {"y"}, reference("inner", "outer"))}) +
                                function("f", {"a"}, {"y"}, {node("Op", {"a"}, {"y"}, reference("axis", "inner"))});
  const Read read(modelOf(graph({call("g", {"x"}, {"y"}, intAttribute("outer", -1))}, {"x"}, {"y"}), functions));
  ASSERT_EQ(read.graph.nodes.size(), 1u);
  EXPECT_EQ(read.graph.nodes[0].attributes.at("axis").integer, -1);
}

TEST(OnnxFunctions, AnAttributeThatIsNotReadIsRefusedInsideAFunction) {
  const std::string functions = function("f", {"a"}, {"y"}, {node("If", {"a"}, {"y"}, reference("then", "g"))});
  const std::string subGraph = attribute("g", AttributeType::Graph, "");
  EXPECT_EQ(failure(modelOf(graph({call("f", {"x"}, {"y"}, subGraph)}, {"x"}, {"y"}), functions)),
            "m.onnx: the If node of 'y' has a sub-graph in attribute 'then'; export the model without it");
}

TEST(OnnxFunctions, ConstantsOfAFunction) {
  const std::string functions = function(
      "f", {"a"}, {"y"}, {node("Constant", {}, {"k"}, reference("value_int", "k")), node("Add", {"a", "k"}, {"y"})});
  const Read read(modelOf(graph({call("f", {"x"}, {"u"}, named("c") + intAttribute("k", 1)),
                                 call("f", {"u"}, {"y"}, named("d") + intAttribute("k", 2))},
                                {"x"}, {"y"}),
                          functions));
  EXPECT_EQ(read.nodes(), "Add(x,c/k)->u Add(u,d/k)->y");
  EXPECT_EQ(read.bytesOf("d/k"), raw(int64_t(2)));
}

TEST(OnnxFunctions, AnAttributeThatRefersToNoFunction) {
  EXPECT_EQ(failure(model({node("Op", {"x"}, {"y"}, reference("axis", "of"))}, {"x"}, {"y"})),
            "m.onnx: attribute 'axis' of operator Op refers to an attribute of a function, but stands outside of one" +
                damaged);
}

TEST(OnnxFunctions, InputsAndOutputsOfACallMayBeLeftOut) {
  const std::string functions =
      function("f", {"a", "b", "c"}, {"y", "z"}, {node("Op", {"a", "b", "c"}, {"y"}), node("Neg", {"y"}, {"z"})});
  const Read read(
      modelOf(graph({call("f", {"x", "", "w"}, {"", "z"}, named("c")), call("f", {"z"}, {"v"})}, {"x", "w"}, {"v"}),
              functions));
  EXPECT_EQ(read.nodes(), "Op(x,,w)->c/y Neg(c/y)->z Op(z,,)->v");
}

TEST(OnnxFunctions, AnOutputThatIsAnInputIsACopy) {
  const std::string functions = function("f", {"a"}, {"a", "y", "y"}, {node("Neg", {"a"}, {"y"})});
  const Read read(
      modelOf(graph({call("f", {"x"}, {"u", "v", "w"}), node("Op", {"u", "v", "w"}, {"y"})}, {"x"}, {"y"}), functions));
  EXPECT_EQ(read.nodes(), "Neg(x)->v Identity(x)->u Identity(v)->w Op(u,v,w)->y");
  EXPECT_EQ(failure(modelOf(graph({call("f", {}, {"u"})}, {"x"}, {"u"}), functions)),
            "m.onnx: function f::f returns an input that a call of it leaves out" + damaged);
}

TEST(OnnxFunctions, ACallWithAnAttributeTwice) {
  const std::string twice = intAttribute("k", 1) + intAttribute("k", 2);
  EXPECT_EQ(failure(modelOf(graph({call("f", {"x"}, {"y"}, twice)}, {"x"}, {"y"}), negExp)),
            "m.onnx: a call of function f::f has an attribute twice" + damaged);
}

TEST(OnnxFunctions, AFunctionThatIsDefinedTwice) {
  EXPECT_EQ(failure(modelOf(graph({}, {"x"}, {"x"}), negExp + negExp)),
            "m.onnx: function f::f is defined twice" + damaged);
}

TEST(OnnxFunctions, AFunctionsInputsAreNotItsToWrite) {
  EXPECT_EQ(failure(modelOf(graph({}, {"x"}, {"x"}), function("f", {"a", "a"}, {}, {}))),
            "m.onnx: function f::f has two inputs of one name" + damaged);
  EXPECT_EQ(failure(modelOf(graph({}, {"x"}, {"x"}), function("f", {"a"}, {}, {node("Neg", {"a"}, {"a"})}))),
            "m.onnx: function f::f writes its input 'a'" + damaged);
}

TEST(OnnxFunctions, ACallOfMoreThanTheFunctionHas) {
  EXPECT_EQ(failure(modelOf(graph({call("f", {"x", "x"}, {"y"})}, {"x"}, {"y"}), negExp)),
            "m.onnx: function f::f has 1 inputs and 1 outputs, a call of it 2 and 1" + damaged);
  EXPECT_EQ(failure(modelOf(graph({call("f", {"x"}, {"y", "z"})}, {"x"}, {"y"}), negExp)),
            "m.onnx: function f::f has 1 inputs and 1 outputs, a call of it 1 and 2" + damaged);
}

TEST(OnnxFunctions, AFunctionOfOtherOperatorsThanAreRead) {
  const std::string old = function("f", {"a"}, {"y"}, {}, field(FunctionFields::opsetImport, import("", 29)));
  EXPECT_EQ(failure(modelOf(graph({call("f", {"x"}, {"y"})}, {"x"}, {"y"}), old)),
            "m.onnx: function f::f imports version 29 of the operators of ai.onnx, 13 to 28 are read; convert the "
            "model with onnx.version_converter");
  EXPECT_EQ(failure(modelOf(graph({}, {"x"}, {"x"}), old)), "");
}

TEST(OnnxFunctions, AValueThatAFunctionDoesNotDefine) {
  EXPECT_EQ(failure(modelOf(graph({call("f", {"x"}, {"y"}, named("c"))}, {"x"}, {"y"}),
                            function("f", {"a"}, {"y"}, {node("Neg", {"x"}, {"y"})}))),
            "m.onnx: the Neg node of 'y' reads 'c/x', which nothing defines" + damaged);
}

TEST(OnnxFunctions, Recursion) {
  const std::string remedy = "; export the model without recursion";
  const std::string self = function("f", {"a"}, {"y"}, {call("f", {"a"}, {"y"})});
  EXPECT_EQ(failure(modelOf(graph({call("f", {"x"}, {"y"})}, {"x"}, {"y"}), self)),
            "m.onnx: a function calls itself: f::f -> f::f" + remedy);
  const std::string three = function("f", {"a"}, {"y"}, {call("g", {"a"}, {"y"})}) +
                            function("g", {"a"}, {"y"}, {call("h", {"a"}, {"y"})}) +
                            function("h", {"a"}, {"y"}, {call("g", {"a"}, {"y"})});
  EXPECT_EQ(failure(modelOf(graph({call("f", {"x"}, {"y"})}, {"x"}, {"y"}), three)),
            "m.onnx: a function calls itself: f::g -> f::h -> f::g" + remedy);
  EXPECT_EQ(failure(modelOf(graph({}, {"x"}, {"x"}), three)), "");
}

/// Functions "0", "1", .. each of which calls the next `times` times; the last is empty.
std::string chain(int count, int times) {
  std::string functions;
  for (int i = 0; i < count; ++i)
    functions += function(std::to_string(i), {"a"}, {},
                          Strings(size_t(i + 1 < count ? times : 0), call(std::to_string(i + 1), {"a"}, {})));
  return functions;
}

TEST(OnnxFunctions, CallsNestSixtyFourDeep) {
  const std::string calls = graph({call("0", {"x"}, {})}, {"x"}, {"x"});
  EXPECT_EQ(failure(modelOf(calls, chain(64, 1))), "");
  EXPECT_EQ(failure(modelOf(calls, chain(65, 1))),
            "m.onnx: function f::64 is called inside more than 64 other calls; inline the functions with onnx.inliner");
}

TEST(OnnxFunctions, CallsThatMakeTooManyNodes) {
  const std::string text = failure(modelOf(graph({call("0", {"x"}, {})}, {"x"}, {"x"}), chain(64, 2)));
  EXPECT_NE(
      text.find(": with its calls inlined the graph takes more than 1.00 GiB (1.07 GB); export the model with fewer "
                "nested functions"),
      std::string::npos)
      << text;
}

} // namespace
