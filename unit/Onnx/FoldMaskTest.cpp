//===- FoldMaskTest.cpp - masks of exporters become one condition -----------------===//
//
// Whatever way an exporter asks whether a row sees a key, it is [past + row - key >= 0] where no token is padding.
//
//===----------------------------------------------------------------------===//
#include "Fold.h"
#include "GraphBuilder.h"

#include <gtest/gtest.h>
#include <limits>

using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// A graph of ids [batch, sequence], a mask [batch, past + sequence] and a cache [batch, 2, past, 4].
class FoldMaskTest : public testing::Test {
protected:
  FoldMaskTest() {
    roles.tokens = ids;
    roles.masks = {mask};
    roles.positions = {positions};
    roles.caches = {cache};
  }

  ValueId whole(double value) { return builder.number(value, ElementType::I64); }
  ValueId op(const std::string &name, const std::vector<ValueId> &inputs,
             const GraphBuilder::Attributes &attributes = {}) {
    return builder.node(name, inputs, attributes);
  }
  ValueId unsqueezed(ValueId value, const std::vector<int64_t> &axes) {
    return op("Unsqueeze", {value, builder.list(axes)});
  }
  /// Size `axis` of a value, of rank 0.
  ValueId size(ValueId value, int64_t axis) { return op("Gather", {op("Shape", {value}), whole(double(axis))}); }
  ValueId range(ValueId count) { return op("Range", {whole(0), count, whole(1)}); }

  /// The terms of a condition at row i0 and key i1, and of what it must be.
  void expectCausal(ValueId condition, size_t rank) {
    Fold fold(builder.graph, roles);
    const k2c::Status status = fold.run();
    ASSERT_TRUE(status) << status.error().text();
    Terms &terms = fold.terms;
    const Term all = terms.add(fold.past, fold.sequence);
    const Term row = terms.variable(int32_t(rank - 2), fold.sequence), key = terms.variable(int32_t(rank - 1), all);
    EXPECT_EQ(terms.text(fold.find(condition)->element),
              terms.text(terms.atLeastZero(terms.subtract(terms.add(fold.past, row), key))));
  }

  GraphBuilder builder;
  ValueId ids = builder.input("ids", ElementType::I64, {"b", "s"});
  ValueId mask = builder.input("mask", ElementType::I64, {"b", "t"});
  ValueId positions = builder.input("positions", ElementType::I64, {"b", "s"});
  ValueId cache = builder.input("cache", ElementType::F32, {"b", 2, "p", 4});
  InputRoles roles;
};

TEST_F(FoldMaskTest, OfRanges) {
  const ValueId row = op("Add", {range(size(ids, 1)), size(cache, 2)}), key = range(size(mask, 1));
  expectCausal(op("LessOrEqual", {key, unsqueezed(row, {1})}), 2);
}

TEST_F(FoldMaskTest, OfPositions) {
  const ValueId key = range(size(mask, 1));
  expectCausal(op("GreaterOrEqual", {unsqueezed(positions, {2}), key}), 3);
}

TEST_F(FoldMaskTest, OfALookedUpMask) {
  const ValueId row = op("Add", {range(size(ids, 1)), size(cache, 2)}), key = range(size(mask, 1));
  const ValueId isCausal = op("LessOrEqual", {key, unsqueezed(row, {1})});
  const ValueId isToken = op("Cast", {op("Gather", {mask, key}, {{"axis", 1}})}, {{"to", 9}});
  expectCausal(op("And", {isCausal, unsqueezed(isToken, {1})}), 3);
}

TEST_F(FoldMaskTest, OfTheLowerTriangle) {
  const ValueId total = size(mask, 1), rows = size(ids, 1);
  const ValueId shape = op("Concat", {unsqueezed(rows, {0}), unsqueezed(total, {0})}, {{"axis", 0}});
  const ValueId ones = op("Expand", {whole(1), shape});
  expectCausal(op("Cast", {op("Trilu", {ones, op("Sub", {total, rows})}, {{"upper", 0}})}, {{"to", 9}}), 2);
}

TEST_F(FoldMaskTest, OfNegations) {
  const ValueId row = op("Add", {range(size(ids, 1)), size(cache, 2)}), key = range(size(mask, 1));
  const ValueId isLater = op("Greater", {key, unsqueezed(row, {1})});
  const ValueId isPadding = op("Not", {op("Cast", {op("Gather", {mask, key}, {{"axis", 1}})}, {{"to", 9}})});
  expectCausal(op("Not", {op("Or", {unsqueezed(isPadding, {1}), isLater})}), 3);
}

TEST_F(FoldMaskTest, OfSegmentsThatAreAllOne) {
  const ValueId row = op("Add", {range(size(ids, 1)), size(cache, 2)}), key = range(size(mask, 1));
  const ValueId starts = op("Cast", {op("Not", {op("Equal", {mask, whole(1)})})}, {{"to", 7}});
  const ValueId segment = op("CumSum", {starts, whole(1)});
  const ValueId isSame = op("Equal", {op("Gather", {segment, key}, {{"axis", 1}}), whole(0)});
  expectCausal(op("And", {op("LessOrEqual", {key, unsqueezed(row, {1})}), unsqueezed(isSame, {1})}), 3);
}

/// Added to scores: a number where a row does not see a key, else 0, from either side.
TEST_F(FoldMaskTest, OfWhatIsAdded) {
  const ValueId row = op("Add", {range(size(ids, 1)), size(cache, 2)}), key = range(size(mask, 1));
  const double least = -std::numeric_limits<float>::max();
  const ValueId isSeen = op("LessOrEqual", {key, unsqueezed(row, {1})});
  const ValueId plain = op("Where", {isSeen, builder.number(0), builder.number(least)});
  const ValueId turned = op("Where", {op("Not", {isSeen}), builder.number(least), builder.number(0)});
  Fold fold(builder.graph, roles);
  ASSERT_TRUE(fold.run());
  EXPECT_EQ(fold.find(plain)->element, fold.find(turned)->element);
}

} // namespace
