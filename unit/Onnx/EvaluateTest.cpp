//===- EvaluateTest.cpp - bounds of an evaluation --------------------------------------===//
//
// Terms are made by hand: what Fold gives has none of these faults, but sizes are whoever asks's.
//
//===----------------------------------------------------------------------===//
#include "Evaluate.h"
#include "GraphBuilder.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// A folded graph of the input x = 0, 1, .., [4].
class OnnxEvaluate : public testing::Test {
protected:
  OnnxEvaluate() : graph(graphOfInput()), fold(graph, InputRoles()) {
    EXPECT_TRUE(fold.run());
    x = fold.find(0)->element;
  }
  static Graph graphOfInput() {
    GraphBuilder builder;
    builder.output(builder.input("x", ElementType::F32, {4}), "y", {4});
    return builder.finish();
  }

  Terms &terms() { return fold.terms; }
  Evaluate evaluate(int64_t most = maxEvaluatedSteps) {
    return Evaluate(fold, {{"n", 3}}, [](ValueId, int64_t index) { return double(index); }, most);
  }
  /// What an evaluation of such a value says; "": it has numbers.
  std::string failure(const std::vector<Term> &shape, Term element) {
    const Expected<std::vector<double>> found = evaluate().elements({ElementType::F32, shape, element});
    return found ? "" : found.error().text();
  }
  /// Of a leaf of this op and of shape [size], whose body is `body`.
  Term leaf(const std::string &op, Term body, double size = 4) {
    LeafDefinition definition;
    definition.op = op;
    definition.bodies = {body};
    definition.shape = {terms().number(size)};
    return terms().element(terms().leafOf(definition), {terms().variable(0, terms().number(4))});
  }
  void expectIn(const std::string &failure, const std::string &text) {
    EXPECT_NE(failure.find(text), std::string::npos) << failure;
    EXPECT_NE(failure.find("tiny/tiny.onnx: "), std::string::npos) << failure;
    EXPECT_NE(failure.find("evaluate smaller sizes"), std::string::npos) << failure;
  }

  const Graph graph;
  Fold fold;
  Term x{};
};

TEST_F(OnnxEvaluate, NumbersOfATerm) {
  const Term doubled = terms().scale(leaf("shared", x), 2);
  const auto found = evaluate().elements({ElementType::F32, {terms().number(4)}, doubled});
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(*found, (std::vector<double>{0, 2, 4, 6}));
}

TEST_F(OnnxEvaluate, SizesThatAreNone) {
  Evaluate evaluated = evaluate();
  ASSERT_TRUE(evaluated.size(terms().size("n")));
  EXPECT_EQ(*evaluated.size(terms().size("n")), 3);
  const auto negative = evaluated.size(terms().number(-1));
  ASSERT_FALSE(negative);
  expectIn(negative.error().text(), "a size is -1");
  const auto unknown = evaluated.size(terms().size("m"));
  ASSERT_FALSE(unknown);
  expectIn(unknown.error().text(), "size 'm' is not given");
}

TEST_F(OnnxEvaluate, MoreElementsThanItsBound) {
  const Term large = terms().number(double(maxEvaluatedElements)), two = terms().number(2);
  expectIn(failure({large, two}, terms().number(0)), "a value has 16777217 elements or more");
  LeafDefinition definition;
  definition.op = "shared";
  definition.bodies = {x};
  definition.shape = {large, two};
  const Term zero = terms().number(0);
  expectIn(failure({}, terms().element(terms().leafOf(definition), {zero, zero})), "a leaf has too many elements");
}

TEST_F(OnnxEvaluate, MoreStepsThanItsBound) {
  const Folded value{ElementType::F32, {terms().number(4)}, x};
  EXPECT_TRUE(evaluate(20).elements(value));
  const auto found = evaluate(3).elements(value);
  ASSERT_FALSE(found);
  expectIn(found.error().text(), "the evaluation takes more than 3 steps");
}

TEST_F(OnnxEvaluate, LeavesDeepInEachOther) {
  const std::vector<Term> shape{terms().number(4)};
  Term deep = x;
  for (int i = 0; i < 1000; i++)
    deep = leaf("shared", terms().plus(deep, 1));
  // The input below 999 others is still reached, the one below 1000 is not.
  expectIn(failure(shape, deep), "leaves lie more than 1000 deep in each other");
  Term shallow = x;
  for (int i = 0; i < 999; i++)
    shallow = leaf("shared", terms().plus(shallow, 1));
  EXPECT_EQ(failure(shape, shallow), "");
}

TEST_F(OnnxEvaluate, TermsWithoutAValue) {
  expectIn(failure({}, terms().variable(100, terms().number(4))), "a variable has no value");
  expectIn(failure({terms().number(4)}, leaf("nonzero", x)), "leaf 'nonzero' is not evaluated");
}

TEST_F(OnnxEvaluate, ConstantsThatAreNone) {
  LeafDefinition definition;
  definition.op = "constant";
  definition.numbers = {0};
  definition.shape = {terms().number(4)};
  const Leaf constant = terms().leafOf(definition);
  expectIn(failure({}, terms().element(constant, {terms().number(1)})), "constant 'x' cannot be read");
}

} // namespace
