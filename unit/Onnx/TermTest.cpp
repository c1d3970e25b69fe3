//===- TermTest.cpp - laws of terms ---------------------------------------------===//
#include "Term.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace k2c::onnx;

namespace {

/// A pool with indices i0 below 8 and i1 below 64, sizes n and m, and real numbers x, y and z.
class TermTest : public testing::Test {
protected:
  Term real(const std::string &op) {
    LeafDefinition definition;
    definition.op = op;
    return t.element(t.leafOf(std::move(definition)), {});
  }

  Terms t;
  Term i0 = t.variable(0, t.number(8)), i1 = t.variable(1, t.number(64));
  Term n = t.size("n"), m = t.size("m"), past = t.size("past", 0);
  Term x = real("x"), y = real("y"), z = real("z");
};

TEST_F(TermTest, OrderOfSummandsDoesNotCount) {
  EXPECT_EQ(t.add(t.add(x, y), z), t.add(t.add(z, x), y));
  EXPECT_NE(t.add(x, y), t.add(x, z));
}

TEST_F(TermTest, OrderOfFactorsDoesNotCount) {
  EXPECT_EQ(t.multiply(t.multiply(x, y), z), t.multiply(z, t.multiply(y, x)));
}

TEST_F(TermTest, EqualSummandsAreCounted) {
  EXPECT_EQ(t.add(x, x), t.scale(x, 2));
  EXPECT_EQ(t.subtract(x, x), t.number(0));
}

TEST_F(TermTest, EqualFactorsAreAPower) {
  EXPECT_EQ(t.multiply(x, x), t.power(x, 2));
  EXPECT_EQ(t.multiply(x, t.power(x, -1)), t.number(1));
}

TEST_F(TermTest, ARootOfASquareIsNotTheNumber) {
  EXPECT_NE(t.power(t.power(x, 2), 0.5), x);
  EXPECT_EQ(t.power(t.power(x, 2), 0.5), t.power(t.multiply(x, x), 0.5));
}

TEST_F(TermTest, FactorsOfASumGoBeforeAProduct) {
  EXPECT_EQ(t.multiply(t.scale(x, 2), t.add(y, z)), t.multiply(x, t.sum(0, {{y, 2}, {z, 2}})));
}

TEST_F(TermTest, SumsOfRealNumbersAreNotMultipliedOut) {
  EXPECT_EQ(t.kind(t.multiply(x, t.add(y, z))), TermKind::Product);
}

TEST_F(TermTest, PolynomialsOfIntegersAreMultipliedOut) {
  EXPECT_EQ(t.multiply(n, t.add(m, t.number(2))), t.sum(0, {{t.multiply(n, m), 1}, {n, 2}}));
  EXPECT_EQ(t.power(t.plus(n, 1), 2), t.sum(1, {{t.multiply(n, n), 1}, {n, 2}}));
}

TEST_F(TermTest, LargePolynomialsStayProducts) {
  Term sum = t.number(1);
  for (int i = 0; i < 80; i++)
    sum = t.add(sum, t.size("s" + std::to_string(i)));
  EXPECT_EQ(t.kind(t.multiply(sum, sum)), TermKind::Product);
  EXPECT_TRUE(t.isInteger(t.multiply(sum, sum)));
}

TEST_F(TermTest, NumbersAreNoNegativeZero) { EXPECT_EQ(t.number(-0.0), t.number(0)); }

TEST_F(TermTest, AnIndexOfAnAxisOfOneIsZero) { EXPECT_EQ(t.variable(3, t.number(1)), t.number(0)); }

TEST_F(TermTest, IndicesOfOtherSizesAreOthers) { EXPECT_NE(t.variable(0, n), t.variable(0, m)); }

TEST_F(TermTest, OneOverOnePlusAnExponentialIsASigmoid) {
  const Term plain = t.power(t.plus(t.call(Function::Exp, {t.scale(x, -1)}), 1), -1);
  EXPECT_EQ(plain, t.call(Function::Sigmoid, {x}));
  EXPECT_NE(t.power(t.plus(t.call(Function::Exp, {x}), 1), -1), plain);
}

TEST_F(TermTest, OperandsOfMaxHaveNoOrder) {
  EXPECT_EQ(t.call(Function::Max, {x, y}), t.call(Function::Max, {y, x}));
  EXPECT_NE(t.call(Function::Power, {x, y}), t.call(Function::Power, {y, x}));
}

TEST_F(TermTest, WholeNumbersAreCutOffToThemselves) {
  EXPECT_EQ(t.call(Function::Truncate, {n}), n);
  EXPECT_NE(t.call(Function::Truncate, {x}), x);
}

TEST_F(TermTest, LeavesOfEqualDefinitionsAreOne) {
  const auto leaf = [&](Term body) {
    LeafDefinition definition;
    definition.op = "sum";
    definition.bodies = {body};
    definition.shape = {n};
    definition.node = int32_t(t.number(0)); // not part of what it is
    return t.leafOf(std::move(definition));
  };
  EXPECT_EQ(leaf(t.add(x, y)), leaf(t.add(y, x)));
  EXPECT_NE(leaf(x), leaf(y));
}

TEST_F(TermTest, ConstantsAtNumbersAreNumbers) {
  LeafDefinition definition;
  definition.op = "constant";
  definition.shape = {t.number(4)};
  const Leaf leaf = t.leafOf(std::move(definition));
  t.constants = [](Leaf, const std::vector<int64_t> &at) { return std::optional<double>(10.0 * double(at[0])); };
  EXPECT_EQ(t.element(leaf, {t.number(3)}), t.number(30));
  EXPECT_EQ(t.kind(t.element(leaf, {i0})), TermKind::Element);
  EXPECT_EQ(t.substitute(t.element(leaf, {i0}), {t.number(2)}), t.number(20));
}

TEST_F(TermTest, ComparisonsAreSettledByBounds) {
  EXPECT_EQ(t.atLeastZero(i0), t.number(1));
  EXPECT_EQ(t.atLeastZero(t.subtract(t.number(7), i0)), t.number(1));
  EXPECT_EQ(t.atLeastZero(t.plus(i0, -8)), t.number(0));
  EXPECT_EQ(t.kind(t.atLeastZero(t.plus(i0, -7))), TermKind::AtLeastZero);
}

TEST_F(TermTest, SizesHaveALeast) {
  EXPECT_EQ(t.atLeastZero(t.plus(n, -1)), t.number(1));
  EXPECT_EQ(t.kind(t.atLeastZero(t.plus(past, -1))), TermKind::AtLeastZero);
}

/// The highest index of a constant is no bound of its elements.
TEST_F(TermTest, ElementsAreNotBoundedByTheirIndices) {
  LeafDefinition definition;
  definition.op = "constant";
  definition.shape = {t.number(8)};
  definition.isInteger = true;
  definition.min = -8;
  const Leaf leaf = t.leafOf(std::move(definition));
  t.constants = [](Leaf, const std::vector<int64_t> &at) { return std::optional<double>(at[0] == 7 ? -8 : 60); };
  EXPECT_EQ(t.kind(t.equalsZero(t.subtract(t.element(leaf, {i0}), i1))), TermKind::EqualsZero);
}

TEST_F(TermTest, ElementsHaveTheLeastOfTheirLeaf) {
  LeafDefinition definition;
  definition.op = "topk-indices";
  definition.numbers = {0, 5, 2, 1};
  definition.shape = {t.number(8)};
  definition.isInteger = true;
  definition.min = 0;
  const Term chosen = t.element(t.leafOf(std::move(definition)), {i0});
  EXPECT_EQ(t.atLeastZero(chosen), t.number(1));
  EXPECT_EQ(t.atLeastZero(t.subtract(t.number(4), chosen)), t.number(1));
  EXPECT_EQ(t.kind(t.atLeastZero(t.subtract(t.number(3), chosen))), TermKind::AtLeastZero);
}

TEST_F(TermTest, ComparisonsAreInLowestTerms) {
  EXPECT_EQ(t.atLeastZero(t.sum(-5, {{i0, 2}})), t.atLeastZero(t.plus(i0, -3)));
}

TEST_F(TermTest, NegationsOfComparisonsAreComparisons) {
  const Term isLater = t.atLeastZero(t.subtract(i0, i1));
  EXPECT_EQ(t.negate(isLater), t.atLeastZero(t.plus(t.subtract(i1, i0), -1)));
  EXPECT_EQ(t.negate(t.negate(isLater)), isLater);
}

TEST_F(TermTest, NegationsOfConjunctionsAreDisjunctions) {
  const Term a = t.negative(x), b = t.negative(y);
  EXPECT_EQ(t.negate(t.both(a, b)), t.either(t.negate(a), t.negate(b)));
  EXPECT_EQ(t.both(a, t.number(1)), a);
  EXPECT_EQ(t.both(a, t.number(0)), t.number(0));
  EXPECT_EQ(t.either(a, a), a);
}

TEST_F(TermTest, EqualityDoesNotDependOnAFactor) {
  EXPECT_EQ(t.equalsZero(t.subtract(x, y)), t.equalsZero(t.subtract(y, x)));
  EXPECT_EQ(t.equalsZero(t.plus(n, 0)), t.number(0));
}

TEST_F(TermTest, OfAChoiceOfNumbersIsZeroWhatItsConditionSays) {
  const Term a = t.negative(x);
  EXPECT_EQ(t.equalsZero(t.select(a, t.number(0), t.number(2))), a);
  EXPECT_EQ(t.equalsZero(t.select(a, t.number(2), t.number(0))), t.negate(a));
  EXPECT_EQ(t.equalsZero(t.select(a, t.number(2), t.number(3))), t.number(0));
}

TEST_F(TermTest, ChoicesOfTheSameAreNone) { EXPECT_EQ(t.select(t.negative(x), y, y), y); }

TEST_F(TermTest, ChoicesHaveOneOrientation) {
  const Term isLow = t.atLeastZero(t.subtract(t.number(3), i0)), isHigh = t.atLeastZero(t.plus(i0, -4));
  EXPECT_EQ(t.select(isLow, x, y), t.select(isHigh, y, x));
  const Term a = t.negative(x), b = t.negative(y);
  EXPECT_EQ(t.select(t.negate(t.both(a, b)), x, y), t.select(t.both(a, b), y, x));
}

TEST_F(TermTest, ABranchKnowsItsCondition) {
  const Term isLow = t.atLeastZero(t.subtract(t.number(3), i0)), isVeryLow = t.atLeastZero(t.subtract(t.number(1), i0));
  EXPECT_EQ(t.select(isVeryLow, t.select(isLow, x, y), z), t.select(isVeryLow, x, z));
  EXPECT_EQ(t.select(isLow, x, t.select(isVeryLow, y, z)), t.select(isLow, x, z));
  EXPECT_NE(t.select(isLow, t.select(isVeryLow, x, y), z), t.select(isLow, x, z));
}

TEST_F(TermTest, AnIndexIsZeroWhereItIsBelowOne) {
  LeafDefinition definition;
  definition.op = "leaf";
  definition.shape = {t.number(8)};
  const Leaf leaf = t.leafOf(std::move(definition));
  const Term any = t.element(leaf, {i0}), first = t.element(leaf, {t.number(0)});
  EXPECT_EQ(t.select(t.atLeastZero(t.scale(i0, -1)), first, any), any);
  EXPECT_NE(t.select(t.atLeastZero(t.subtract(t.number(1), i0)), first, any), any);
}

TEST_F(TermTest, VariablesAreSubstitutedAtOnce) {
  const Term swapped = t.substitute(t.sum(0, {{i0, 10}, {i1, 1}}), {i1, i0});
  EXPECT_EQ(swapped, t.sum(0, {{i1, 10}, {i0, 1}}));
}

TEST_F(TermTest, VariablesBehindThoseGivenStay) {
  EXPECT_EQ(t.substitute(t.add(i0, i1), {t.number(2)}), t.plus(i1, 2));
}

TEST_F(TermTest, VariablesOfTermsAreThoseOfTheirIndices) {
  LeafDefinition definition;
  definition.op = "leaf";
  definition.shape = {t.number(64)};
  const Term element = t.element(t.leafOf(std::move(definition)), {i1});
  EXPECT_EQ(t.variablesOf({t.multiply(x, element), i0}), (std::vector<Term>{i0, i1}));
}

TEST_F(TermTest, TextIsCutWhereItIsLong) {
  Term sum = x;
  for (int i = 0; i < 100; i++)
    sum = t.call(Function::Sin, {t.add(sum, sum)});
  EXPECT_EQ(t.text(sum, 10), "sin((2 sin..");
  EXPECT_EQ(t.text(t.sum(1, {{i0, 2}, {t.power(x, 2), 1}})), "(2 i0 + x#0()^2 + 1)");
}

TEST_F(TermTest, InfinityIsNoWholeNumber) {
  const Term least = t.number(-std::numeric_limits<double>::infinity());
  EXPECT_FALSE(t.isInteger(least));
  EXPECT_FALSE(t.isInteger(t.add(n, least)));
}

TEST_F(TermTest, WorkIsBounded) {
  EXPECT_FALSE(t.isExhausted());
  Term deep = x;
  for (int i = 0; i < 500; i++)
    deep = t.call(Function::Sin, {t.add(deep, i0)});
  for (int i = 0; !t.isExhausted() && i < 1000000; i++)
    t.substitute(deep, {t.number(i)});
  EXPECT_TRUE(t.isExhausted());
}

} // namespace
