//===- RefusalsMoveTest.cpp - what ops that move elements refuse ------------------------===//
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

TEST(OnnxRefusals, DropoutOfTraining) {
  expectEach({{"Dropout", {reals({2}), number(0.5), number(0, ElementType::Bool)}, {}, ""},
              {"Dropout",
               {reals({2}), number(0.5), number(1, ElementType::Bool)},
               {},
               "a step of training is not understood"}});
}

TEST(OnnxRefusals, AxesOfSizeOne) {
  expectEach({{"Squeeze", {reals({1, 2}), list({0})}, {}, ""},
              {"Squeeze", {reals({2, 1}), list({0})}, {}, "axis 0 has size 2, not 1"},
              {"Squeeze", {reals({1, 2}), integers({1})}, {}, "its axes are not constant"},
              {"Squeeze", {reals({1, 2}), list({2})}, {}, "axis 2 of a tensor of rank 2"},
              {"Unsqueeze", {reals({2}), list({0, -1})}, {}, ""},
              {"Unsqueeze", {reals({2}), integers({1})}, {}, "its axes are not constant"},
              {"Unsqueeze", {reals({2}), list({2})}, {}, "axis 2 of a result of rank 2"},
              {"Unsqueeze", {reals({2}), list({0, -3})}, {}, "axis -3 of a result of rank 3"}});
}

TEST(OnnxRefusals, NewShapes) {
  expectEach({{"Reshape", {reals({2, 3}), list({0, -1, 1})}, {}, ""},
              {"Reshape", {reals({2, 3}), integers({"n"})}, {}, "its shape is not known before a run"},
              {"Reshape", {reals({2, 3}), list({0, 0, 0})}, {}, "size 0 at axis 2 of a tensor of rank 2"},
              {"Reshape", {reals({2, 3}), list({5})}, {}, "elements of shape [2, 3] do not become [5]"},
              {"Reshape", {reals({2, 3}), list({-1, -1})}, {}, "elements of shape [2, 3] do not become [0, -1]"},
              {"Flatten", {reals({2, 3})}, {{"axis", 2}}, ""},
              {"Flatten", {reals({2, 3})}, {{"axis", 3}}, "axis 3 of a tensor of rank 2"},
              {"Flatten", {reals({0, 3})}, {{"axis", 2}}, "elements of shape [0, 3] do not become [0, 1]"},
              {"Expand", {reals({1, 3}), list({2, 1})}, {}, ""},
              {"Expand", {reals({1, 3}), integers({"n"})}, {}, "its shape is not known before a run"},
              {"Expand", {reals({2}), list({3})}, {}, "elements of shape [2] are not repeated to [3]"},
              {"Tile", {reals({2}), list({3})}, {}, ""},
              {"Tile", {reals({2}), integers({"n"})}, {}, "its repeats are not known before a run"}});
}

TEST(OnnxRefusals, OrdersOfAxes) {
  const char *const text = "perm is no permutation of 2 axes";
  expectEach({{"Transpose", {reals({2, 3})}, {{"perm", Values{1, 0}}}, ""},
              {"Transpose", {reals({2, 3})}, {{"perm", Values{0, 0}}}, text},
              {"Transpose", {reals({2, 3})}, {{"perm", Values{0, 2}}}, text},
              {"Transpose", {reals({2, 3})}, {{"perm", Values{0}}}, text}});
}

TEST(OnnxRefusals, Slices) {
  const char *const counts = "its axes and steps are not as many as its bounds, or not known before a run";
  expectEach({{"Slice", {reals({4}), list({1}), list({3}), list({0}), list({1})}, {}, ""},
              {"Slice", {reals({4}), integers({1}), list({3})}, {}, " and 3 of an axis of size 4 are not understood"},
              {"Slice", {reals({4}), integers({"n"}), list({3})}, {}, "its bounds are not known before a run"},
              {"Slice", {reals({4}), list({0}), list({3}), list({1})}, {}, "axis 1 of a tensor of rank 1"},
              {"Slice", {reals({4}), list({0}), list({3}), list({0}), list({1, 1})}, {}, counts},
              {"Slice", {reals({4}), list({0, 0}), list({3, 3})}, {}, counts},
              {"Slice", {reals({4}), list({0}), list({3}), list({0}), list({0})}, {}, "axis 0 is cut in steps of 0"},
              {"Slice", {reals({4}), list({0, 0}), list({3, 3}), list({0, 0})}, {}, "axis 0 is given twice"},
              {"Slice", {reals({4, 4}), list({0, 0}), list({3, 3}), list({1, 1})}, {}, "axis 1 is given twice"}});
}

TEST(OnnxRefusals, PartsOfAnAxis) {
  expectEach({{"Split", {reals({4}), list({1, 3})}, {}, "", 2},
              {"Split", {reals({4}), integers({2})}, {}, "its sizes are not known before a run", 2},
              {"Split", {reals({4}), list({4})}, {}, "an axis of size 4 is not known to be 2 parts", 2},
              {"Split", {reals({4}), list({1, 2})}, {}, "its parts are not 4 elements", 2},
              {"Split", {reals({4})}, {{"axis", 1}}, "axis 1 of a tensor of rank 1", 2}});
}

TEST(OnnxRefusals, PartsOfASequence) {
  const auto refusal = [](const Operand &size, int64_t part) {
    GraphBuilder graph;
    const ValueId whole = graph.input("x", ElementType::F32, {4});
    const ValueId parts = graph.node("SplitToSequence", {whole, add(graph, size, "size")});
    graph.node("SequenceAt", {parts, graph.number(double(part), ElementType::I64)});
    return refusalOf(graph.graph);
  };
  EXPECT_EQ(refusal(number(2, ElementType::I64), 1), "");
  EXPECT_NE(refusal(number(2, ElementType::I64), 3).find("part 3 of a sequence of 2"), std::string::npos);
  EXPECT_NE(
      refusal(integers({}), 0).find("the parts of an axis of size 4 are not of one size that is known before a run"),
      std::string::npos);
  expectEach({{"SequenceAt",
               {reals({2}), number(0, ElementType::I64)},
               {},
               "a part of a sequence that is not known before a run"}});
}

TEST(OnnxRefusals, ValuesThatAreJoined) {
  const GraphBuilder::Attributes first{{"axis", 0}};
  expectEach(
      {{"Concat", {reals({2, 3}), reals({4, 3})}, first, ""},
       {"Concat", {reals({2, 3}), reals({4, 4})}, first, "operands of shape [2, 3] and [4, 4] do not fit each other"},
       {"Concat", std::vector<Operand>(513, number(0)), first, "axis 0 of a tensor of rank 0"},
       {"Concat", std::vector<Operand>(513, list({0})), first, "513 operands are more than 512"}});
}

TEST(OnnxRefusals, ElementsThatAreGathered) {
  expectEach(
      {{"Gather", {reals({3}), number(-3, ElementType::I64)}, {}, ""},
       {"Gather", {reals({3}), number(3, ElementType::I64)}, {}, "index 3 of an axis of size 3"},
       {"GatherND", {reals({3, 3}), list({1, 2})}, {}, ""},
       {"GatherND", {reals({3, 3}), list({2, 2, 2})}, {}, "indices of shape [3] do not fit a tensor of shape [3, 3]"},
       {"GatherND", {reals({3, 3}), list({3, 3})}, {}, "index 3 of an axis of size 3"},
       {"GatherElements", {reals({3}), list({2})}, {}, ""},
       {"GatherElements", {reals({3}), list({4, 4})}, {}, "index 4 of an axis of size 3"},
       {"GatherElements",
        {reals({3}), integers({2, 2})},
        {},
        "indices of shape [2, 2] do not fit a tensor of shape [3]"}});
}

TEST(OnnxRefusals, ElementsThatAreWritten) {
  const Operand none = list({0, 1}), data = integers({2});
  const char *const byData = "reduction 'mul' by indices that are data is not understood";
  expectEach(
      {{"ScatterElements", {reals({3}), none, reals({2})}, {{"reduction", "none"}}, ""},
       {"ScatterElements",
        {reals({3}), data, reals({2})},
        {{"reduction", "mean"}},
        "reduction 'mean' is not understood"},
       {"ScatterElements", {reals({3}), data, reals({2})}, {{"reduction", "mul"}}, byData},
       {"ScatterElements",
        {reals({3}), data, reals({1})},
        {},
        "indices of shape [2] and updates of shape [1] do not fit data of shape [3]"},
       {"ScatterND", {reals({3}), integers({2, 1}), reals({2})}, {}, ""},
       {"ScatterND",
        {reals({3}), integers({2, 2}), reals({2})},
        {},
        "indices of shape [2, 2] do not fit data of shape [3]"},
       {"ScatterND", {reals({3}), integers({2, 1}), reals({3})}, {}, "updates of shape [3] are not of shape [2]"}});
}

} // namespace
