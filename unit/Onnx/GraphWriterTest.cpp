//===- GraphWriterTest.cpp - graphs that are written, read back ---------------===//
#include "GraphWriter.h"
#include "ReadHelpers.h"
#include <cmath>

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

TEST(GraphWriter, WhatIsWrittenIsReadBack) {
  GraphWriter writer;
  writer.input("x", ElementType::F32, {{-1, "batch"}, {8, ""}});
  const std::string sum = writer.node("Add", "sum", {"x", writer.real(0.5f)});
  writer.nodes("Split", "parts", {sum, writer.list({3, 5})}, {"a", "b"}, {{"axis", int64_t(-1)}});
  writer.node("MoE", "y", {"a", "", "b"}, {{"activation_type", "swiglu"}, {"activation_alpha", 1.5}}, "com.microsoft");
  writer.output("y", ElementType::F32, {{-1, "batch"}});
  TempFolder folder;
  const Expected<Graph> graph = readGraph(folder.write("m.onnx", writer.model("1.2.3")));
  ASSERT_TRUE(graph) << graph.error().text();
  EXPECT_EQ(graph->producer, "k2c 1.2.3");
  ASSERT_EQ(graph->nodes.size(), 3u);
  EXPECT_EQ(graph->nodes[1].attributes.at("axis").integer, -1);
  EXPECT_EQ(graph->nodes[2].domain, "com.microsoft");
  EXPECT_EQ(graph->nodes[2].inputs[1], noValue);
  EXPECT_EQ(graph->nodes[2].attributes.at("activation_type").text, "swiglu");
  EXPECT_EQ(graph->nodes[2].attributes.at("activation_alpha").real, 1.5f);
  EXPECT_EQ((*graph->inputs[0].shape)[0].symbol, "batch");
  EXPECT_EQ((*graph->inputs[0].shape)[1].size, 8);
}

TEST(GraphWriter, EqualConstantsAreOne) {
  GraphWriter writer;
  EXPECT_EQ(writer.list({1, 2}), writer.list({1, 2}));
  EXPECT_NE(writer.list({1}), writer.integer(1));
  EXPECT_NE(writer.real(1), writer.integer(1));
  EXPECT_NE(writer.real(0.1f), writer.real(std::nextafter(0.1f, 1.0f)));
}

} // namespace
