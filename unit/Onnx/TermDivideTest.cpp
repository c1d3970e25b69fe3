//===- TermDivideTest.cpp - floors of integers -----------------------------------===//
#include "Term.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace k2c::onnx;

namespace {

/// Sizes batch, sequence and past, and indices below them.
class TermDivideTest : public testing::Test {
protected:
  Term modulo(Term a, Term b) { return t.modulo(a, b); }

  Terms t;
  Term batch = t.size("batch"), sequence = t.size("sequence"), past = t.size("past", 0);
  Term all = t.add(past, sequence);
  Term b = t.variable(0, batch), s = t.variable(1, sequence), j = t.variable(2, all), d = t.variable(3, t.number(64));
};

TEST_F(TermDivideTest, WhatIsBelowTheDivisorDoesNotCount) {
  EXPECT_EQ(t.floorDivide(t.sum(0, {{s, 64}, {d, 1}}), t.number(64)), s);
  EXPECT_EQ(modulo(t.sum(0, {{s, 64}, {d, 1}}), t.number(64)), d);
}

TEST_F(TermDivideTest, WhatMayBeTheDivisorCounts) {
  EXPECT_EQ(t.kind(t.floorDivide(t.plus(d, 1), t.number(64))), TermKind::Floor);
}

TEST_F(TermDivideTest, NumbersAreDividedDownwards) {
  EXPECT_EQ(t.floorDivide(t.number(-1), t.number(4)), t.number(-1));
  EXPECT_EQ(modulo(t.number(-1), t.number(4)), t.number(3));
}

TEST_F(TermDivideTest, SizesDivideTheirMultiples) {
  EXPECT_EQ(t.floorDivide(t.add(t.multiply(b, sequence), s), sequence), b);
  EXPECT_EQ(modulo(t.add(t.multiply(b, sequence), s), sequence), s);
}

TEST_F(TermDivideTest, SumsOfSizesDivideTheirMultiples) {
  EXPECT_EQ(t.floorDivide(t.multiply(t.scale(batch, 64), all), t.scale(all, 16)), t.scale(batch, 4));
  EXPECT_EQ(t.floorDivide(t.add(t.multiply(b, all), j), all), b);
}

TEST_F(TermDivideTest, FreshRowsAreBehindThoseOfThePast) {
  const Term row = t.add(t.add(t.multiply(b, all), past), s);
  EXPECT_EQ(t.floorDivide(row, all), b);
  EXPECT_EQ(modulo(row, all), t.add(past, s));
}

TEST_F(TermDivideTest, OtherSumsDoNotDivide) {
  EXPECT_NE(t.floorDivide(t.multiply(batch, all), t.add(past, batch)), batch);
}

TEST_F(TermDivideTest, FloorsOfFloorsAreOne) {
  EXPECT_EQ(t.floorDivide(t.floorDivide(d, t.number(4)), t.number(2)), t.floorDivide(d, t.number(8)));
  const Term flat = t.variable(4, t.multiply(t.scale(batch, 2), sequence));
  EXPECT_EQ(t.floorDivide(t.floorDivide(flat, t.number(2)), sequence), t.floorDivide(flat, t.scale(sequence, 2)));
}

TEST_F(TermDivideTest, CommonFactorsAreTakenOut) {
  EXPECT_EQ(t.floorDivide(t.sum(3, {{j, 4}}), t.scale(sequence, 4)), t.floorDivide(j, sequence));
  EXPECT_NE(t.floorDivide(t.sum(4, {{j, 4}}), t.scale(sequence, 4)), t.floorDivide(j, sequence));
}

TEST_F(TermDivideTest, NothingIsAskedOfAnAxisWithoutElements) { EXPECT_EQ(t.floorDivide(d, t.number(0)), t.number(0)); }

/// Whatever rule a floor is made by, it is the floor at all indices and sizes.
TEST_F(TermDivideTest, FloorsAreFloors) {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const std::vector<Term> atoms{b, s, j, d, t.multiply(b, sequence), t.multiply(b, all), past, sequence, batch};
  const std::vector<Term> divisors{t.number(2), t.number(6),     t.number(64),          sequence,
                                   all,         t.scale(all, 2), t.multiply(batch, all)};
  for (int round = 0; round < 400; round++) {
    std::vector<Part> parts;
    for (int i = pick(1, 4); i > 0; i--)
      parts.push_back({atoms[size_t(pick(0, int(atoms.size()) - 1))], double(pick(-2, 6))});
    const Term term = t.sum(pick(-5, 9), parts), divisor = divisors[size_t(pick(0, int(divisors.size()) - 1))];
    const Term made = t.floorDivide(term, divisor);
    const int batches = pick(1, 3), rows = pick(1, 4), before = pick(0, 4);
    const std::vector<int> index{pick(0, batches - 1), pick(0, rows - 1), pick(0, before + rows - 1), pick(0, 63)};
    const auto at = [&](Term of) {
      return t.rewrite(of, [&](Term inner) -> std::optional<Term> {
        if (t.kind(inner) == TermKind::Variable)
          return t.number(index[size_t(t.tag(inner))]);
        if (t.kind(inner) == TermKind::Size)
          return t.number(inner == batch ? batches : inner == sequence ? rows : before);
        return std::nullopt;
      });
    };
    const Term above = at(term), below = at(divisor), is = at(made);
    ASSERT_TRUE(t.isNumber(above) && t.isNumber(below) && t.isNumber(is)) << t.text(made);
    EXPECT_EQ(t.number(is), std::floor(t.number(above) / t.number(below)))
        << "floor(" << t.text(term) << " / " << t.text(divisor) << ") made as " << t.text(made);
  }
}

} // namespace
