//===- ReadOrderTest.cpp - who defines what, and in which order ---------------===//
#include "ReadHelpers.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

const std::string damaged = "; the model is damaged: export or copy it again";

std::string scalar(const std::string &name) {
  return initializer(tensor(name, ElementType::F32, {}, rawData(raw(1.f))));
}

TEST(OnnxOrder, SortedNodesStayWhereTheyAre) {
  const Read read(
      model({node("Neg", {"x"}, {"b"}), node("Exp", {"x"}, {"a"}), node("Add", {"a", "b"}, {"y"})}, {"x"}, {"y"}));
  EXPECT_EQ(read.nodes(), "Neg(x)->b Exp(x)->a Add(a,b)->y");
}

TEST(OnnxOrder, WhatANodeWaitsForComesBeforeIt) {
  const Read read(model(
      {node("Add", {"a", "b"}, {"y"}), node("Abs", {"c"}, {"b"}), node("Exp", {"x"}, {"a"}), node("Neg", {"x"}, {"c"})},
      {"x"}, {"y"}));
  EXPECT_EQ(read.nodes(), "Exp(x)->a Neg(x)->c Abs(c)->b Add(a,b)->y");
}

TEST(OnnxOrder, NodesThatNoOutputDependsOnAreLeftOut) {
  const Read read(
      model({node("Neg", {"x"}, {"y"}), node("Exp", {"y"}, {"dead"}), node("Abs", {"dead"}, {"z"})}, {"x"}, {"y"}));
  EXPECT_EQ(read.nodes(), "Neg(x)->y");
}

TEST(OnnxOrder, InputsAndOutputsMayBeLeftOut) {
  const Read read(model({node("Clip", {"x", "", "m"}, {"y"}), node("Dropout", {"y"}, {"z", ""})}, {"x", "m"}, {"z"}));
  EXPECT_EQ(read.nodes(), "Clip(x,,m)->y Dropout(y)->z,");
}

TEST(OnnxOrder, AnOutputMayBeAnInputOrAnInitializer) {
  const Read read(model({}, {"x"}, {"x", "w"}, scalar("w")));
  EXPECT_EQ(read.nodes(), "");
  EXPECT_EQ(read.nameOf(read.graph.outputs[1].value), "w");
}

TEST(OnnxOrder, AChainOfManyNodesInReverse) {
  Strings nodes;
  for (int i = 100000; i > 0; --i)
    nodes.push_back(node("Neg", {std::to_string(i - 1)}, {std::to_string(i)}));
  const Read read(model(nodes, {"0"}, {"100000"}));
  ASSERT_EQ(read.graph.nodes.size(), 100000u);
  EXPECT_EQ(read.nameOf(read.graph.nodes[0].outputs[0]), "1");
}

TEST(OnnxOrder, ACycle) {
  EXPECT_EQ(failure(model({node("Add", {"x", "c"}, {"a"}, named("first")), node("Neg", {"a"}, {"b"}),
                           node("Exp", {"b"}, {"c"}, named("last"))},
                          {"x"}, {"c"})),
            "m.onnx: the Neg node of 'b' reads a result of node 'first' (Add), which waits for it in turn" + damaged);
  EXPECT_EQ(failure(model({node("Add", {"x", "a"}, {"a"}, named("n"))}, {"x"}, {"a"})),
            "m.onnx: node 'n' (Add) reads its own result" + damaged);
}

TEST(OnnxOrder, AValueThatNothingDefines) {
  EXPECT_EQ(failure(model({node("Neg", {"z"}, {"y"}, named("n"))}, {"x"}, {"y"})),
            "m.onnx: node 'n' (Neg) reads 'z', which nothing defines" + damaged);
  EXPECT_EQ(failure(model({node("Neg", {"z"}, {""})}, {"x"}, {"x"})),
            "m.onnx: a node without name and outputs (Neg) reads 'z', which nothing defines" + damaged);
  EXPECT_EQ(failure(model({}, {"x"}, {"y"})), "m.onnx: output 'y' of the model is defined by nothing" + damaged);
}

TEST(OnnxOrder, AValueThatIsDefinedTwice) {
  const auto twice = [](const std::string &name, const std::string &one, const std::string &other) {
    return "m.onnx: value '" + name + "' is defined twice, by " + one + " and by " + other + damaged;
  };
  EXPECT_EQ(failure(model({node("Neg", {"x"}, {"y"}, named("n")), node("Exp", {"x"}, {"y"})}, {"x"}, {"y"})),
            twice("y", "node 'n' (Neg)", "the Exp node of 'y'"));
  EXPECT_EQ(failure(model({node("Neg", {"w"}, {"x"}, named("n"))}, {"x", "w"}, {"x"})),
            twice("x", "an input of the model", "node 'n' (Neg)"));
  EXPECT_EQ(failure(model({node("Neg", {"x"}, {"w"}, named("n"))}, {"x"}, {"w"}, scalar("w"))),
            twice("w", "an initializer", "node 'n' (Neg)"));
  EXPECT_EQ(failure(model({}, {}, {"w"}, scalar("w") + scalar("w"))), twice("w", "an initializer", "an initializer"));
  EXPECT_EQ(failure(model({}, {"x", "x"}, {"x"})), twice("x", "an input of the model", "an input of the model"));
  EXPECT_EQ(failure(model({node("Constant", {}, {"c"}, intAttribute("value_int", 1)), node("Neg", {"x"}, {"c"})}, {"x"},
                          {"c"})),
            twice("c", "a Constant node", "the Neg node of 'c'"));
}

TEST(OnnxOrder, InitializersThatAreInputsAreConstants) {
  const Read read(model({node("Add", {"x", "w"}, {"y"})}, {"x", "w"}, {"y"}, scalar("w")));
  ASSERT_EQ(read.graph.inputs.size(), 1u);
  EXPECT_EQ(read.nameOf(read.graph.inputs[0].value), "x");
  EXPECT_TRUE(read.constant("w"));
}

TEST(OnnxOrder, ASparseInitializerIsRefusedWhereItIsNeeded) {
  const auto of = [](const std::string &output) {
    return failure(
        model({node("Neg", {"w"}, {"y"}, named("n"))}, {"x"}, {output},
              field(GraphFields::sparseInitializer,
                    field(SparseTensorFields::values, tensor("w", ElementType::F32, {1}, "")) + field(2, "indices"))));
  };
  EXPECT_EQ(of("y"), "m.onnx: node 'n' (Neg) reads 'w', which is a sparse tensor: only tensors of numbers are read; "
                     "export the model without it");
  EXPECT_EQ(of("x"), "");
}

TEST(OnnxOrder, NamesOfFilesAreQuotedInPart) {
  const std::string name(300, 'n');
  const std::string text = failure(model({node("Neg", {name}, {"y"}, named(name))}, {}, {"y"}));
  EXPECT_LT(text.size(), 300u);
  EXPECT_NE(text.find("nnn..."), std::string::npos) << text;
}

} // namespace
