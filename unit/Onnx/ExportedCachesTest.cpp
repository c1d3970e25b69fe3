//===- ExportedCachesTest.cpp - caches of exporters, and their description ----===//
//
// Graphs of an exporter, changed in memory: a cache that is kept otherwise than attention reads it is no cache.
//
//===----------------------------------------------------------------------===//
#include "ImportGraph.h"
#include "ReadHelpers.h"
#include "k2c/Onnx/Describe.h"
#include "k2c/Onnx/Import.h"
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::onnx;

namespace {

const std::string models = K2C_ONNX_MODELS;

std::string modelFile(const std::string &name) { return models + "/" + name + "/model.onnx"; }

/// A Mixtral of two layers with caches.
struct Changed {
  Changed() {
    Expected<Graph> read = readGraph(modelFile("torch-past-tiny_mixtral"));
    EXPECT_TRUE(read) << read.error().text();
    graph = std::move(*read);
    graph.path = "m.onnx";
  }

  ValueId value(const std::string &name) const {
    const auto found = std::find(graph.values.begin(), graph.values.end(), name);
    EXPECT_NE(found, graph.values.end()) << name;
    return ValueId(found - graph.values.begin());
  }
  ValueId add(const std::string &name) {
    graph.values.push_back(name);
    return ValueId(graph.values.size() - 1);
  }
  Port &output(const std::string &name) {
    return *std::find_if(graph.outputs.begin(), graph.outputs.end(),
                         [&](const Port &port) { return port.value == value(name); });
  }
  /// The node that makes a value.
  std::vector<Node>::iterator producer(const std::string &name) {
    return std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node &node) {
      return std::find(node.outputs.begin(), node.outputs.end(), value(name)) != node.outputs.end();
    });
  }
  /// A node like that of `name`, of another first input, before it.
  ValueId copyOf(const std::string &name, ValueId first) {
    Node copy = *producer(name);
    copy.inputs[0] = first;
    copy.outputs = {add(name + " copy")};
    const ValueId out = copy.outputs[0];
    graph.nodes.insert(producer(name), std::move(copy));
    return out;
  }

  std::string failure() const {
    const Expected<ImportedGraph> model = importGraph(graph);
    return model ? "" : model.error().text();
  }

  Graph graph;
};

TEST(OnnxCaches, AsTheyAreExportedTheyAreRight) { EXPECT_EQ(Changed().failure(), ""); }

TEST(OnnxCaches, AnOutputThatGoesOnWithNothingIsNamed) {
  Changed model;
  model.output("present.0.key").value = model.producer("present.0.key")->inputs[1];
  EXPECT_NE(model.failure().find("is neither logits nor a cache that goes on; export the model with logits and caches "
                                 "alone"),
            std::string::npos)
      << model.failure();
}

TEST(OnnxCaches, CachesThatChangePlacesAreRefused) {
  Changed model;
  std::swap(model.output("present.0.key").value, model.output("present.0.value").value);
  EXPECT_EQ(model.failure(),
            "m.onnx: output 'present.0.value' goes on with input 'past_key_values.0.value', which does "
            "not stand at its place; export the model with caches in one order");
}

TEST(OnnxCaches, ACacheWithoutItsOutputIsRefused) {
  Changed model;
  model.graph.outputs.pop_back();
  EXPECT_NE(model.failure(), "");
  // One that nothing reads either.
  Changed more;
  more.graph.inputs.push_back(more.graph.inputs.back());
  more.graph.inputs.back().value = more.add("more");
  EXPECT_EQ(more.failure(), "m.onnx: 5 inputs are caches, and 4 outputs go on with them; export the model with all of "
                            "its caches as outputs");
}

TEST(OnnxCaches, ACacheThatNoAttentionReadsIsRefused) {
  Changed model;
  model.graph.inputs.push_back(model.graph.inputs.back());
  model.graph.inputs.back().value = model.add("more");
  const ValueId kept = model.copyOf("present.1.value", model.graph.inputs.back().value);
  model.graph.outputs.push_back(model.graph.outputs.back());
  model.graph.outputs.back().value = kept;
  EXPECT_EQ(model.failure(), "m.onnx: input 'more' is kept and read by no attention; export the model without it");
}

TEST(OnnxCaches, WhatIsReadOfPastTokensIsWhatWasKept) {
  Changed model;
  // Past values are negated where attention reads them, not where they are kept.
  Node negation;
  negation.op = "Neg";
  negation.version = 20;
  negation.inputs = {model.value("past_key_values.0.value")};
  negation.outputs = {model.add("negated")};
  const ValueId kept = model.copyOf("present.0.value", model.value("past_key_values.0.value"));
  model.output("present.0.value").value = kept;
  model.producer("present.0.value")->inputs[0] = negation.outputs[0];
  model.graph.nodes.insert(model.graph.nodes.begin(), negation);
  EXPECT_NE(model.failure().find("keys and values of past tokens of layer 0 that are as those of the step"),
            std::string::npos)
      << model.failure();
}

TEST(DescribeOnnx, SaysWhatInputsAreForAndWhereWeightsLie) {
  const Expected<OnnxDescription> found = describeOnnx(modelFile("torch-past-tiny_mixtral"));
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_TRUE(found->spec);
  EXPECT_FALSE(found->error);
  EXPECT_EQ(found->irVersion, 10);
  EXPECT_EQ(found->operatorSets.at("ai.onnx"), std::set<int64_t>{20});
  EXPECT_EQ(found->inputs.size(), 7u);
  const auto roles = [&](const std::string &role) {
    return std::count_if(found->inputs.begin(), found->inputs.end(),
                         [&](const auto &port) { return port.role == role; });
  };
  EXPECT_EQ(roles("tokens"), 1);
  EXPECT_EQ(roles("cache"), 4);
  EXPECT_EQ(roles(""), 0);
  ASSERT_EQ(found->weights.size(), 1u); // both layers are of one kind
  const auto &weights = found->weights[0];
  const auto query =
      std::find_if(weights.begin(), weights.end(), [](const auto &weight) { return weight.role == "q"; });
  ASSERT_NE(query, weights.end());
  EXPECT_EQ(query->tensor, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_TRUE(query->isTransposed);
  EXPECT_EQ(query->type, "FLOAT");
}

TEST(DescribeOnnx, SaysOfARefusedGraphWhatWasUnderstood) {
  const onnx::test::TempFolder folder;
  std::filesystem::copy(modelFile("torch-past-tiny_deepseek_v3"), folder.path);
  folder.write("config.json", R"({"num_hidden_layers": 3})");
  const Expected<OnnxDescription> found = describeOnnx(folder / "model.onnx");
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_FALSE(found->spec);
  EXPECT_EQ(folder.relative(found->error->text()),
            "config.json: num_hidden_layers is 3, and the graph has 2; take both from one export");
  EXPECT_EQ(found->understood, (std::vector<std::string>{"head of 144 ids and 32 columns", "attentions: 2",
                                                         "gated MLPs: 2", "layers of experts: 1"}));
  EXPECT_EQ(found->inputs[0].role, "tokens");
}

TEST(DescribeOnnx, NodesThatNoOutputDependsOnStandApart) {
  EXPECT_TRUE(describeOnnx(modelFile("torch-past-tiny_mixtral"))->unused.empty());
}

TEST(FilesOfOnnx, AreTheFileAndThoseOfItsTensors) {
  const auto name = [](const std::string &path) { return std::filesystem::path(path).filename().string(); };
  const Expected<std::vector<std::string>> files = filesOfOnnx(modelFile("torch-external-tiny_olmoe"));
  ASSERT_TRUE(files) << files.error().text();
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ(name((*files)[0]), "model.onnx");
  EXPECT_EQ(name((*files)[1]), "model.onnx.data");
}

} // namespace
