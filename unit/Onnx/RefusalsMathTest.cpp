//===- RefusalsMathTest.cpp - what Fold and ops that compute refuse ----------------------===//
//
// A node that is folded stands beside each group of nodes that have one fault each.
//
//===----------------------------------------------------------------------===//
#include "RefusalHelpers.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

using Values = std::vector<int64_t>;

TEST(OnnxRefusals, NodesOfAnyOp) {
  expectEach({{"Relu", {reals({2})}, {}, ""},
              {"Loop", {reals({2})}, {}, "this op is not understood"},
              {"com.microsoft:Relu", {reals({2})}, {}, "this op is not understood"},
              {"Relu", {{ElementType::String, {2}, std::nullopt}}, {}, "reads 'x0', which no op understood gives"},
              {"MatMul", {reals({2, 2}), leftOut()}, {}, "input 1, which it needs, is left out"},
              {"Softmax", {reals({2, 2})}, {{"axis", 2}}, "axis 2 of a tensor of rank 2"},
              {"Softmax", {reals({2, 2})}, {{"axis", 1.0}}, "attribute 'axis' is of another type than the op's"}});
}

TEST(OnnxRefusals, ResultsOfManyAxes) {
  const char *const text = "its result has rank 12 and sizes [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "
                           "which is more than a graph of a decoder has";
  expectEach({{"Unsqueeze", {reals(std::vector<SizeOf>(10, 1)), list({0})}, {}, ""},
              {"Unsqueeze", {reals(std::vector<SizeOf>(11, 1)), list({0})}, {}, text}});
}

TEST(OnnxRefusals, FormulasOfTooManySteps) {
  const Graph graph = graphOf({"Relu", {reals({2})}, {}, ""});
  Fold fold(graph, InputRoles());
  std::vector<Part> parts;
  for (int i = 0; i < 4096; i++)
    parts.push_back({fold.terms.size("n" + std::to_string(i)), 1});
  const Term sum = fold.terms.sum(0, parts);
  EXPECT_TRUE(fold.run());
  for (uint64_t steps = 0; steps <= maxSteps; steps += parts.size()) // one for each part
    fold.terms.rewrite(sum, [](Term term) { return term; });
  const Status status = fold.run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "the formulas up to here take more steps than those of a decoder");
}

TEST(OnnxRefusals, NameTheNodeAndWhatToDo) {
  const Graph graph = graphOf({"Loop", {reals({2})}, {}, ""});
  Fold fold(graph, InputRoles());
  const Status status = fold.run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().where, "tiny/tiny.onnx: node 'Loop0' (Loop of ai.onnx 20)");
  EXPECT_EQ(status.error().message, "this op is not understood");
  EXPECT_EQ(status.error().remedy, "export the model with another exporter or opset; docs/Onnx.md says what is read");
}

TEST(OnnxRefusals, InputsWithoutAShape) {
  GraphBuilder graph;
  graph.graph.inputs.push_back({graph.input("x", ElementType::F32, {}), ElementType::F32, std::nullopt});
  const std::string refusal = refusalOf(graph.graph);
  EXPECT_NE(refusal.find("tiny/tiny.onnx: input 'x': the file does not say its shape"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("export the model with dynamic shapes that are named"), std::string::npos) << refusal;
}

TEST(OnnxRefusals, ValuesThatAreMade) {
  AttributeOf value(0);
  value.kind = Attribute::Kind::Tensor;
  value.tensor = Tensor{"value", ElementType::String, {1}, -1, 0, std::make_shared<const std::string>("a")};
  const Operand one = number(1, ElementType::I64);
  expectEach({{"Range", {one, number(4, ElementType::I64), one}, {}, ""},
              {"Range", {integers({}), integers({}), one}, {}, "its length is not known before a run"},
              {"Range", {integers({}), integers({}), integers({})}, {}, "its step is not a constant other than 0"},
              {"Range", {one, one, number(0, ElementType::I64)}, {}, "its step is not a constant other than 0"},
              {"Range", {reals({}), reals({}), number(1)}, {}, "its length is not known before a run"},
              {"ConstantOfShape", {list({2})}, {}, ""},
              {"ConstantOfShape", {integers({"n"})}, {}, "its shape is not known before a run"},
              {"ConstantOfShape", {list({2})}, {{"value", value}}, "its value is of a type that is not read"},
              {"Trilu", {reals({2, 2})}, {}, ""},
              {"Trilu", {reals({2})}, {}, "its operand has rank 1"},
              {"OneHot", {integers({2}), list({4}), list({0, 1})}, {}, ""},
              {"OneHot",
               {integers({2}), integers({}), list({0, 1})},
               {},
               "its classes or its two values are not known before a run"},
              {"OneHot",
               {integers({2}), list({4}), list({1})},
               {},
               "its classes or its two values are not known before a run"}});
}

TEST(OnnxRefusals, ElementsOneByOne) {
  const char *const sizes = "operands of shape [2] and [3] do not fit each other";
  const Operand two = reals({2}), three = reals({3}), condition = {ElementType::Bool, {2}, std::nullopt};
  const Operand bytes = {ElementType::I8, {2}, std::nullopt};
  const Operand otherCondition = {ElementType::Bool, {3}, std::nullopt};
  expectEach({{"Cast", {two}, {{"to", int(ElementType::F16)}}, ""},
              {"Cast", {two}, {{"to", int(ElementType::I8)}}, "a cast of FLOAT to INT8 is not understood"},
              {"Where", {condition, two, two}, {}, ""},
              {"Where", {condition, two, three}, {}, sizes},
              {"Add", {two, two}, {}, ""},
              {"Add", {two, three}, {}, sizes},
              {"Sub", {two, two, two}, {}, "3 operands are not 2"},
              {"Sub", {bytes, bytes}, {}, "of INT8, whose results may be cut off, is not understood"},
              {"Neg", {bytes}, {}, "of INT8, whose results may be cut off, is not understood"},
              {"Max", {bytes, bytes}, {}, ""},
              {"Sub", {integers({2}), integers({2})}, {}, ""},
              {"Max", std::vector<Operand>(64, two), {}, ""},
              {"Max", std::vector<Operand>(65, two), {}, "65 operands are more than 64"},
              {"Mod", {integers({}), integers({})}, {}, " is not understood"},
              {"Less", {two, two}, {}, ""},
              {"Less", {two, three}, {}, sizes},
              {"And", {condition, condition}, {}, ""},
              {"And", {condition, otherCondition}, {}, sizes}});
}

TEST(OnnxRefusals, Norms) {
  const Operand x = reals({2, 4}), weight = reals({4});
  const char *const larger = "its weight or bias has sizes that its operand does not have";
  const char *const axis = "normalises from axis 0 of a tensor of rank 2; the last one is understood";
  expectEach({{"RMSNormalization", {x, weight}, {}, ""},
              {"RMSNormalization", {x, weight}, {{"axis", 0}}, axis},
              {"RMSNormalization", {x, reals({1, 2, 4})}, {}, larger},
              {"RMSNormalization", {reals({2, 1}), weight}, {}, larger},
              {"com.microsoft:SkipSimplifiedLayerNormalization", {x, x, weight}, {}, "", 4},
              {"com.microsoft:SkipSimplifiedLayerNormalization", {x, x, reals({1, 2, 4})}, {}, larger, 4},
              {"com.microsoft:SkipSimplifiedLayerNormalization", {x, x, weight, reals({1, 2, 4})}, {}, larger, 4},
              {"com.microsoft:SkipSimplifiedLayerNormalization", {reals({}), reals({}), weight}, {}, larger, 4},
              {"com.microsoft:SkipSimplifiedLayerNormalization",
               {x, reals({3}), weight},
               {},
               "operands of shape [2, 4] and [3] do not fit each other",
               4}});
}

TEST(OnnxRefusals, ElementsOverAnAxis) {
  expectEach({{"ReduceMax", {integers({2})}, {{"axes", Values{0}}}, ""},
              {"ReduceMax", {integers({0})}, {}, "the most or least of no elements of INT64 is not understood"},
              {"ReduceSum", {reals({2}), integers({1})}, {}, "its axes are not constant"},
              {"ReduceSum", {reals({2}), list({1})}, {}, "axis 1 of a tensor of rank 1"},
              {"ReduceSum", {reals({2}), list({0, -1})}, {}, "axis 0 is given twice"},
              {"ReduceSum", {reals({2})}, {{"keepdims", 2}}, "attribute 'keepdims' is 2, neither 0 nor 1"},
              {"ReduceSum", {reals({2}), list({0})}, {{"keepdims", 0}}, ""},
              {"TopK", {reals({3}), list({2})}, {}, "", 2},
              {"TopK", {reals({3}), integers({1})}, {}, "how many it chooses is not known before a run", 2},
              {"TopK", {reals({3}), list({4})}, {}, "chooses 4 of 3", 2},
              {"CumSum", {reals({3}), number(0, ElementType::I64)}, {}, ""},
              {"CumSum", {reals({3}), integers({})}, {}, "its axis is not a constant"}});
}

TEST(OnnxRefusals, Products) {
  const Operand a = reals({2, 3}), b = reals({3, 4});
  expectEach({{"MatMul", {a, b}, {}, ""},
              {"MatMul", {reals({}), b}, {}, "an operand has rank 0"},
              {"MatMul", {a, reals({4, 5})}, {}, "an operand has 3 columns, the other 4 rows"},
              {"com.microsoft:FusedMatMul", {a, reals({4, 3})}, {{"transB", 1}}, ""},
              {"com.microsoft:FusedMatMul",
               {a, b},
               {{"transBatchA", 1}},
               "operands whose batches are transposed are not understood"},
              {"com.microsoft:FusedGemm", {a, b}, {{"activation", "Tanh"}}, ""},
              {"com.microsoft:FusedGemm", {a, b}, {{"activation", "Elu"}}, "activation 'Elu' is not understood"},
              {"Gemm", {a, b, reals({4})}, {}, ""},
              {"Gemm", {reals({3}), b}, {}, "its operands have ranks 1 and 2, not 2"},
              {"Gemm", {a, reals({4, 5})}, {}, "an operand has 3 columns, the other 4 rows"},
              {"Gemm", {a, b, reals({3})}, {}, "its third operand does not fit the others"},
              {"Gemm", {reals({1, 3}), b, reals({2, 4})}, {}, "its third operand does not fit the others"}});
}

} // namespace
