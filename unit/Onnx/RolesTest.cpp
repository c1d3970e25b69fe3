//===- RolesTest.cpp - what the inputs of a graph are for ---------------------===//
#include "Roles.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::onnx;

namespace {

/// A graph of inputs, and of nodes that read them.
struct Inputs {
  Inputs() { graph.path = "m.onnx"; }

  ValueId value(const std::string &name) {
    graph.values.push_back(name);
    return ValueId(graph.values.size() - 1);
  }
  ValueId input(const std::string &name, ElementType type, const std::vector<std::string> &sizes) {
    Port port;
    port.value = value(name);
    port.type = type;
    port.shape.emplace();
    for (const std::string &size : sizes)
      port.shape->push_back({-1, size});
    graph.inputs.push_back(port);
    return port.value;
  }
  ValueId node(const std::string &op, const std::vector<ValueId> &inputs) {
    Node node;
    node.op = op;
    node.inputs = inputs;
    node.outputs = {value(op)};
    graph.nodes.push_back(node);
    return node.outputs[0];
  }
  /// A table of embeddings, indexed by `ids`.
  void lookUp(ValueId ids) { node("Gather", {value("table"), ids}); }

  Expected<std::vector<InputRoles>> roles() const { return rolesOf(graph); }
  std::string failure() const {
    const auto found = roles();
    return found ? "" : found.error().text();
  }

  Graph graph;
};

TEST(OnnxRoles, NamesMeanNothing) {
  Inputs inputs;
  const ValueId mask = inputs.input("input_ids", ElementType::I64, {"b", "t"});
  const ValueId ids = inputs.input("attention_mask", ElementType::I64, {"b", "s"});
  const ValueId cache = inputs.input("position_ids", ElementType::F16, {"b", "h", "p", "d"});
  inputs.lookUp(ids);
  const auto roles = inputs.roles();
  ASSERT_TRUE(roles) << roles.error().text();
  const InputRoles &first = roles->front();
  EXPECT_EQ(first.tokens, ids);
  EXPECT_EQ(first.masks, std::vector<ValueId>{mask});
  EXPECT_EQ(first.caches, std::vector<ValueId>{cache});
  EXPECT_TRUE(first.positions.empty());
}

TEST(OnnxRoles, IntegersAsLongAsTheIdsArePositionsFirstAndAMaskThen) {
  Inputs inputs;
  const ValueId ids = inputs.input("a", ElementType::I64, {"b", "s"});
  const ValueId other = inputs.input("c", ElementType::I64, {"b", "s"});
  inputs.lookUp(ids);
  const auto roles = inputs.roles();
  ASSERT_TRUE(roles) << roles.error().text();
  ASSERT_EQ(roles->size(), 2u);
  EXPECT_EQ((*roles)[0].positions, std::vector<ValueId>{other});
  EXPECT_EQ((*roles)[1].masks, std::vector<ValueId>{other});
}

TEST(OnnxRoles, IdsAreFoundThroughOpsThatKeepThem) {
  Inputs inputs;
  const ValueId ids = inputs.input("a", ElementType::I32, {"b", "s"});
  inputs.lookUp(inputs.node("Reshape", {inputs.node("Cast", {ids}), inputs.value("shape")}));
  const auto roles = inputs.roles();
  ASSERT_TRUE(roles) << roles.error().text();
  EXPECT_EQ(roles->front().tokens, ids);
}

TEST(OnnxRoles, OfTwoInputsThatIndexTablesBothAreTried) {
  Inputs inputs;
  const ValueId a = inputs.input("a", ElementType::I64, {"b", "s"}),
                c = inputs.input("c", ElementType::I64, {"b", "s"});
  inputs.lookUp(a);
  inputs.lookUp(c);
  const auto roles = inputs.roles();
  ASSERT_TRUE(roles) << roles.error().text();
  EXPECT_EQ(roles->front().tokens, a);
  EXPECT_EQ(roles->back().tokens, c);
}

TEST(OnnxRoles, WithoutIdsThatIndexATableNothingIsADecoder) {
  const std::string none =
      "m.onnx: no input [batch, sequence] of token ids indexes a table of embeddings; export a decoder with input_ids";
  Inputs rows; // embeddings of another graph
  rows.lookUp(rows.input("inputs_embeds", ElementType::F32, {"b", "s", "h"}));
  EXPECT_EQ(rows.failure(), none);
  Inputs computed;
  computed.lookUp(computed.node("Abs", {computed.input("a", ElementType::I64, {"b", "s"})}));
  EXPECT_EQ(computed.failure(), none);
  Inputs circle; // of a graph that no reader makes
  circle.graph.nodes.push_back({"Identity", "", 18, "", {0}, {0}, {}});
  circle.value("x");
  circle.lookUp(0);
  EXPECT_EQ(circle.failure(), none);
}

TEST(OnnxRoles, AnInputOfNoRoleIsNamed) {
  Inputs inputs;
  inputs.lookUp(inputs.input("ids", ElementType::I64, {"b", "s"}));
  inputs.input("use_cache_branch", ElementType::Bool, {"1"});
  EXPECT_EQ(
      inputs.failure(),
      "m.onnx: input 'use_cache_branch' is neither ids, a mask, positions nor a cache; export the model without it");
}

} // namespace
