//===- FoldTest.cpp - nodes as terms ----------------------------------------------===//
#include "RefusalHelpers.h"

#include <gtest/gtest.h>

using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// A node alone, folded.
struct FoldedNode {
  explicit FoldedNode(const OneNode &one) : graph(graphOf(one)), fold(graph, InputRoles()), status(fold.run()) {}

  const Folded &value() { return *fold.find(graph.nodes[0].outputs[0]); }
  /// Element and shape of its result: "i0 of [2]".
  std::string text() {
    if (!status)
      return status.error().text();
    std::string shape;
    for (Term size : value().shape)
      shape += (shape.empty() ? "" : ", ") + fold.terms.text(size);
    return fold.terms.text(value().element) + " of [" + shape + "]";
  }

  Graph graph;
  Fold fold;
  k2c::Status status;
};

std::string text(const std::string &op, const std::vector<Operand> &operands,
                 const GraphBuilder::Attributes &attributes = {}) {
  return FoldedNode({op, operands, attributes, ""}).text();
}

TEST(Fold, MovesElementsByTheirIndices) {
  EXPECT_EQ(text("Transpose", {reals({2, "n"})}), "input#0(i1, i0) of [?0.1, 2]");
  EXPECT_EQ(text("Reshape", {reals({"n", 12}), list({0, 3, -1})}), "input#1(i0, (4 i1 + i2)) of [?0.0, 3, 4]");
  EXPECT_EQ(text("Slice", {reals({9}), list({8}), list({-100}), list({0}), list({-2})}), "input#4((-2 i0 + 8)) of [5]");
  EXPECT_EQ(text("Expand", {reals({3, 1}), list({2, 3, 4})}), "input#1(i1, 0) of [2, 3, 4]");
}

TEST(Fold, AReshapeOfAReshapeIsOne) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", ElementType::F32, {"n", 4, 6});
  const ValueId twice =
      builder.node("Reshape", {builder.node("Reshape", {x, builder.list({-1, 6})}), builder.list({-1, 24})});
  const ValueId once = builder.node("Reshape", {x, builder.list({-1, 24})});
  Fold fold(builder.graph, {});
  ASSERT_TRUE(fold.run());
  EXPECT_EQ(fold.find(twice)->element, fold.find(once)->element);
  EXPECT_EQ(fold.find(twice)->shape, fold.find(once)->shape);
}

TEST(Fold, JoinedPartsAreAChoice) {
  EXPECT_EQ(text("Concat", {reals({2}), reals({3})}, {{"axis", 0}}),
            "([(i0 + -2) >= 0] ? input#1((i0 + -2)) : input#0(i0)) of [5]");
}

TEST(Fold, ShapesAreNumbersAndSizes) {
  EXPECT_EQ(text("Shape", {reals({"n", 7})}, {{"start", -1}}), "7 of [1]");
  EXPECT_EQ(text("Size", {reals({"n", 7})}), "(7 ?0.0) of []");
}

TEST(Fold, IndicesBelowZeroCountFromTheEnd) {
  EXPECT_EQ(text("Gather", {reals({5}), list({-1})}), "input#1(4) of [1]");
  EXPECT_EQ(text("Gather", {reals({5}), integers({})}),
            "input#0(([input#1() >= 0] ? input#1() : (input#1() + 5))) of []");
}

TEST(Fold, AContractionIsALeafOfItsProduct) {
  FoldedNode node({"MatMul", {reals({2, 3}), reals({3, 4})}, {}, ""});
  ASSERT_TRUE(node.status);
  Terms &terms = node.fold.terms;
  const Folded &value = node.value();
  const LeafDefinition &leaf = terms.definition(terms.leaf(value.element));
  EXPECT_EQ(leaf.op, "sum");
  EXPECT_EQ(terms.text(leaf.bodies[0]), "input#1(i12, i1) input#0(i0, i12)");
}

TEST(Fold, ASumOfEqualsIsTheirCount) {
  GraphBuilder builder;
  const ValueId shape = builder.list({2, 5});
  const ValueId zeros = builder.node("ConstantOfShape", {shape});
  const ValueId sum = builder.node("ReduceSum", {builder.node("Cos", {zeros}), builder.list({1})}, {{"keepdims", 0}});
  Fold fold(builder.graph, {});
  ASSERT_TRUE(fold.run());
  EXPECT_EQ(fold.find(sum)->element, fold.terms.scale(fold.terms.call(Function::Cos, {fold.terms.number(0)}), 5));
}

TEST(Fold, WhatSeveralReadIsALeaf) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", ElementType::F32, {2, 3});
  const ValueId sum = builder.node("Add", {x, builder.number(1)});
  const ValueId other = builder.node("Add", {x, builder.number(2)});
  builder.output(builder.node("Mul", {builder.node("Exp", {sum}), builder.node("Sin", {sum})}), "y", {2, 3});
  builder.output(builder.node("Exp", {other}), "z", {2, 3});
  Fold fold(builder.graph, {});
  ASSERT_TRUE(fold.run());
  EXPECT_EQ(fold.terms.text(fold.find(sum)->element), "shared#3(i0, i1)");
  EXPECT_EQ(fold.terms.text(fold.find(other)->element), "(input#2(i0, i1) + 2)");
}

TEST(Fold, AskingForAShapeIsNotReading) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", ElementType::F32, {2, 3});
  const ValueId sum = builder.node("Add", {x, builder.number(1)});
  const ValueId shape = builder.node("Shape", {builder.node("Neg", {sum})});
  builder.output(builder.node("Reshape", {builder.node("Exp", {sum}), shape}), "y", {2, 3});
  Fold fold(builder.graph, {});
  ASSERT_TRUE(fold.run());
  EXPECT_EQ(fold.terms.text(fold.find(sum)->element), "(input#1(i0, i1) + 1)");
}

TEST(Fold, DeepFormulasAreLeaves) {
  GraphBuilder builder;
  ValueId x = builder.input("x", ElementType::F32, {2, 3});
  for (int i = 0; i < 1000; i++)
    x = builder.node("Sin", {x});
  Fold fold(builder.graph, {});
  ASSERT_TRUE(fold.run());
  EXPECT_LE(fold.terms.depth(fold.find(x)->element), 129);
}

TEST(Fold, LongSumsAreLeaves) {
  GraphBuilder builder;
  ValueId sum = builder.input("x", ElementType::F32, {2, 3});
  for (int i = 0; i < 3000; i++)
    sum = builder.node("Add", {sum, builder.input("x" + std::to_string(i), ElementType::F32, {2, 3})});
  Fold fold(builder.graph, {});
  ASSERT_TRUE(fold.run());
  EXPECT_LE(fold.terms.partCount(fold.find(sum)->element), 1025u);
}

TEST(Fold, UpdatesByKnownIndicesAreAChoice) {
  GraphBuilder builder;
  const ValueId data = builder.input("data", ElementType::F32, {5}),
                updates = builder.input("u", ElementType::F32, {2});
  const ValueId rows = builder.node("Range", {builder.number(1, ElementType::I64), builder.number(3, ElementType::I64),
                                              builder.number(1, ElementType::I64)});
  const ValueId out = builder.node("ScatterND", {data, builder.node("Unsqueeze", {rows, builder.list({1})}), updates});
  Fold fold(builder.graph, {});
  ASSERT_TRUE(fold.run());
  EXPECT_EQ(fold.terms.text(fold.find(out)->element),
            "(([(-1 i0 + 2) >= 0] and [(i0 + -1) >= 0]) ? input#5((i0 + -1)) : input#4(i0))");
}

/// A mask of groups, as exporters of DeepSeek V3 write it.
TEST(Fold, UpdatesByChosenIndicesAreALeaf) {
  GraphBuilder builder;
  const ValueId scores = builder.input("scores", ElementType::F32, {"n", 4});
  const ValueId chosen = builder.nodes("TopK", {scores, builder.list({2})}, 2)[1];
  const ValueId shape = builder.node("Shape", {scores});
  const ValueId ones = builder.node("Expand", {builder.number(1), builder.node("Shape", {chosen})});
  const ValueId mask =
      builder.node("ScatterElements", {builder.node("ConstantOfShape", {shape}), chosen, ones}, {{"axis", 1}});
  Fold fold(builder.graph, {});
  ASSERT_TRUE(fold.run());
  const LeafDefinition &leaf = fold.terms.definition(fold.terms.leaf(fold.find(mask)->element));
  EXPECT_EQ(leaf.op, "scatter-elements");
  EXPECT_EQ(leaf.bodies[0], fold.terms.number(0));
  EXPECT_EQ(fold.terms.text(leaf.bodies[1]), "[(i1 + -1 topk-indices#3(i0, i12)) = 0]");
  EXPECT_EQ(leaf.bodies[2], fold.terms.number(1));
}

/// Tokens gathered for an expert and added where they belong, and all tokens, each times its weight or 0.
TEST(Fold, GatheredExpertsAreMaskedOnes) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", ElementType::F32, {"n", 8}), w = builder.input("w", ElementType::F32, {8, 8});
  const ValueId scores = builder.node("MatMul", {x, builder.input("r", ElementType::F32, {8, 4})});
  const std::vector<ValueId> best = builder.nodes("TopK", {scores, builder.list({2})}, 2);
  const ValueId isOne = builder.node("Equal", {best[1], builder.number(1, ElementType::I64)});
  const ValueId masked = builder.node(
      "Mul",
      {builder.node("MatMul", {x, w}),
       builder.node("ReduceSum", {builder.node("Where", {isOne, best[0], builder.number(0)}), builder.list({1})})});
  const ValueId places = builder.node("NonZero", {isOne});
  const auto place = [&](int64_t axis) {
    return builder.node("Gather", {places, builder.number(double(axis), ElementType::I64)}, {{"axis", 0}});
  };
  const ValueId rows = place(0), both = builder.node("Transpose", {places});
  const ValueId weights = builder.node("Unsqueeze", {builder.node("GatherND", {best[0], both}), builder.list({1})});
  const ValueId worked = builder.node("Mul", {builder.node("MatMul", {builder.node("Gather", {x, rows}), w}), weights});
  const ValueId zeros = builder.node("ConstantOfShape", {builder.node("Shape", {x})});
  const ValueId gathered = builder.node(
      "ScatterND", {zeros, builder.node("Unsqueeze", {rows, builder.list({1})}), worked}, {{"reduction", "add"}});
  Fold fold(builder.graph, {});
  const k2c::Status status = fold.run();
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(fold.find(gathered)->element, fold.find(masked)->element);
}

TEST(Fold, WeightsOfFewBitsAreNumbersTimesScales) {
  const std::vector<double> bytes(48, 0x25);
  const Operand weights = {ElementType::U8, {3, 2, 8}, bytes};
  const Operand scales = {ElementType::F32, {3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6}};
  FoldedNode node({"com.microsoft:MatMulNBits",
                   {reals({1, 32}), weights, scales},
                   {{"N", 3}, {"K", 32}, {"bits", 4}, {"block_size", 16}},
                   ""});
  ASSERT_TRUE(node.status);
  Terms &terms = node.fold.terms;
  const Term product = terms.definition(terms.leaf(node.value().element)).bodies[0];
  EXPECT_EQ(terms.text(product), "quantised#4(i1, i12) input#2(0, i12)");
  EXPECT_EQ(terms.text(terms.definition(terms.leaf(terms.part(product, 0))).bodies[0]),
            "constant#1(i0, floor(i1 / 16)) (nibbles#3(i0, floor(i1 / 16), (i1 + -16 floor(i1 / 16))) + -8)");
}

TEST(Fold, ElementsOfFourBitsAreReadFromAnyOne) {
  const Graph graph;
  const Fold fold(graph, InputRoles());
  const Tensor tensor = {"w", ElementType::U4, {5}, -1, 0, std::make_shared<const std::string>("\x21\x43\x05")};
  EXPECT_EQ(fold.elementsOf(tensor, 0, 5), (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(fold.elementsOf(tensor, 1, 3), (std::vector<double>{2, 3, 4}));
  EXPECT_TRUE(fold.elementsOf(tensor, 4, 2).empty());
}

TEST(Fold, NodesAreNamedWithTheirOperatorSet) {
  FoldedNode node({"Hardmax", {reals({2})}, {}, ""});
  ASSERT_FALSE(node.status);
  EXPECT_EQ(node.status.error().text(),
            "tiny/tiny.onnx: node 'Hardmax0' (Hardmax of ai.onnx 20): this op is not understood; export the model with "
            "another exporter or opset; docs/Onnx.md says what is read");
}

} // namespace
