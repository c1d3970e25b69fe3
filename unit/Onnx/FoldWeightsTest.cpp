//===- FoldWeightsTest.cpp - where quantised weights lie ---------------------------===//
//
// Whatever an op calls its numbers, scales and zero points, what is read from their bytes is what its formula says.
//
//===----------------------------------------------------------------------===//
#include "Evaluate.h"
#include "RefusalHelpers.h"

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// Constants: bytes that differ, and numbers that differ.
Operand bytes(std::vector<SizeOf> shape, ElementType type = ElementType::U8) {
  int64_t count = 1;
  for (const SizeOf &size : shape)
    count *= size.size;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(double((i * 37 + 11) % (type == ElementType::I8 ? 127 : 251)));
  return {type, std::move(shape), values};
}
Operand numbers(std::vector<SizeOf> shape) {
  Operand out = bytes(std::move(shape));
  out.type = ElementType::F32;
  for (double &value : *out.values)
    value = value / 8 - 3; // exact, of either sign
  return out;
}

/// A node, folded, and the quantised weights that it reads.
struct Stored {
  explicit Stored(const OneNode &one) : graph(graphOf(one)), fold(graph, InputRoles()) {
    const Status status = fold.run();
    EXPECT_TRUE(status) << status.error().text();
    const Term element = fold.find(graph.nodes[0].outputs[0])->element;
    fold.terms.visit(element, [&](Term inner) { see(inner); });
  }
  /// Remembers the quantised weights in a term, and in the body of its contraction.
  void see(Term term) {
    if (fold.terms.kind(term) != TermKind::Element)
      return;
    const Leaf leaf = fold.terms.leaf(term);
    if (fold.quantisedOf(leaf))
      weights = leaf;
    else if (fold.terms.definition(leaf).op == "sum")
      fold.terms.visit(fold.terms.definition(leaf).bodies[0], [&](Term inner) { see(inner); });
  }

  void expectRead(const char *format) {
    ASSERT_TRUE(weights);
    const Quantised stored = *fold.quantisedOf(*weights);
    EXPECT_EQ(stored.format(), format);
    const LeafDefinition definition = fold.terms.definition(*weights);
    Evaluate evaluate(fold, {}, [](ValueId, int64_t) { return 0.0; });
    const Expected<std::vector<double>> wanted =
        evaluate.elements({ElementType::F32, definition.shape, definition.bodies[0]});
    ASSERT_TRUE(wanted) << wanted.error().text();
    std::vector<float> found(wanted->size());
    ASSERT_TRUE(readQuantised(*graph.files, stored, 0, int64_t(found.size()), found.data()));
    EXPECT_EQ(std::vector<double>(found.begin(), found.end()), *wanted);
  }

  Graph graph;
  Fold fold;
  std::optional<Leaf> weights;
};

void expectRead(const OneNode &one, const char *format) {
  SCOPED_TRACE(one.op + " " + format);
  Stored(one).expectRead(format);
}

TEST(FoldWeights, OfProducts) {
  const Operand x = reals({1, 40}), scales = numbers({3, 3});
  const auto product = [&](std::vector<Operand> operands, int64_t bits) {
    return OneNode{"com.microsoft:MatMulNBits",
                   std::move(operands),
                   {{"N", 3}, {"K", 40}, {"bits", bits}, {"block_size", 16}},
                   ""};
  };
  expectRead(product({x, bytes({3, 3, 8}), scales}, 4), "4-bit weights in blocks of 16");
  expectRead(product({x, bytes({3, 3, 8}), scales, bytes({3, 2})}, 4), "4-bit weights in blocks of 16");
  expectRead(product({x, bytes({3, 3, 8}), numbers({9}), bytes({6})}, 4), "4-bit weights in blocks of 16");
  expectRead(product({x, bytes({3, 3, 8}), scales, numbers({3, 3})}, 4), "4-bit weights in blocks of 16");
  expectRead(product({x, bytes({3, 3, 16}), scales, bytes({3, 3})}, 8), "8-bit weights in blocks of 16");
}

TEST(FoldWeights, OfLookups) {
  const OneNode looked = {"com.microsoft:GatherBlockQuantized",
                          {bytes({5, 16}), integers({2}), numbers({5, 2}), bytes({5, 1})},
                          {{"block_size", 16}},
                          ""};
  expectRead(looked, "4-bit weights in blocks of 16");
}

TEST(FoldWeights, OfElements) {
  const auto elements = [](std::vector<Operand> operands, GraphBuilder::Attributes attributes) {
    return OneNode{"DequantizeLinear", std::move(operands), std::move(attributes), ""};
  };
  const Operand x = bytes({4, 6}), scale = number(0.5);
  expectRead(elements({x, scale, number(7, ElementType::U8)}, {}), "8-bit weights with one scale");
  expectRead(elements({x, numbers({6}), bytes({6})}, {}), "8-bit weights with a scale a column");
  expectRead(elements({x, numbers({4}), bytes({4})}, {{"axis", 0}}), "8-bit weights with a scale a row");
  expectRead(elements({x, numbers({2, 6}), bytes({2, 6})}, {{"axis", 0}, {"block_size", 3}}),
             "8-bit weights in blocks of 3");
  expectRead(elements({x, numbers({4, 2})}, {{"axis", -1}, {"block_size", 4}}), "8-bit weights in blocks of 4");
  expectRead(elements({bytes({4, 6}, ElementType::I8), numbers({6})}, {}), "8-bit weights with a scale a column");
}

TEST(FoldWeights, OfExperts) {
  const std::vector<Operand> columns = {reals({1, 32}), reals({1, 2}),     bytes({2, 8, 16}), numbers({2, 8}),
                                        leftOut(),      bytes({2, 32, 2}), numbers({2, 32}),  leftOut(),
                                        leftOut(),      leftOut(),         leftOut(),         bytes({2, 4})};
  expectRead({"com.microsoft:QMoE",
              columns,
              {{"activation_type", "swiglu"}, {"swiglu_fusion", 1}, {"expert_weight_bits", 4}},
              ""},
             "4-bit weights with a scale a row");
}

TEST(FoldWeights, WhatIsNoPartOfAConstantStaysAFormula) {
  const OneNode open = {"DequantizeLinear", {{ElementType::U8, {4, 6}, std::nullopt}, numbers({6})}, {}, ""};
  EXPECT_FALSE(Stored(open).weights);
  // The difference of two numbers of 32 bits is no float; a number alone is rounded to one.
  const Operand wide = bytes({4, 6}, ElementType::I32);
  EXPECT_FALSE(Stored({"DequantizeLinear", {wide, numbers({6}), bytes({6}, ElementType::I32)}, {}, ""}).weights);
  EXPECT_TRUE(Stored({"DequantizeLinear", {wide, numbers({6})}, {}, ""}).weights);
}

} // namespace
