//===- ExpressionTest.cpp - integer expressions of families files ---------===//

#include "Expression.h"

#include <gtest/gtest.h>

using namespace k2c;

namespace {

Expected<int64_t> run(const std::string &text) {
  return evaluate(text, [](const std::string &name) -> Expected<int64_t> {
    if (name == "heads")
      return 6;
    if (name == "huge")
      return int64_t(1) << 62;
    return Error{"", "no " + name, ""};
  });
}

TEST(Expression, Precedence) {
  EXPECT_EQ(*run("2 + 3 * 4"), 14);
  EXPECT_EQ(*run("(2 + 3) * heads"), 30);
  EXPECT_EQ(*run("heads / 3 - 1"), 1);
  EXPECT_EQ(*run("heads % 4 == 2 and heads >= 6"), 1);
  EXPECT_EQ(*run("heads < 6 and 1 == 1"), 0);
}

TEST(Expression, InexactDivision) {
  EXPECT_EQ(run("heads / 4").error().message, "'heads / 4' asks for 6 / 4, which is not whole");
  EXPECT_EQ(run("heads % 0").error().message, "'heads % 0' divides by 0");
}

TEST(Expression, Overflow) {
  EXPECT_EQ(run("huge * 4").error().message, "'huge * 4' overflows 64 bits");
  EXPECT_EQ(run("huge + huge").error().message, "'huge + huge' overflows 64 bits");
}

TEST(Expression, UnknownNameAndBadText) {
  EXPECT_EQ(run("layers + 1").error().message, "no layers");
  EXPECT_EQ(run("(1").error().message, "'(1' lacks ')'");
  EXPECT_EQ(run("1 2").error().message, "'1 2' has something behind its end");
  EXPECT_EQ(run("").error().message, "'' ends too early");
  EXPECT_EQ(run("1 + ?").error().message, "'1 + ?' has an unknown sign");
  EXPECT_EQ(run("1x").error().message, "'1x' has a malformed number");
  EXPECT_EQ(run("9223372036854775808").error().message, "'9223372036854775808' has a malformed number");
}

} // namespace
