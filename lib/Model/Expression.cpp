//===- Expression.cpp - integer expressions of a families file ------------===//
//
// Recursive descent with one function per precedence; the first error stops
// everything. Texts come from embedded families files, so depth is not a
// concern; values come from a config and are.
//
//===----------------------------------------------------------------------===//

#include "Expression.h"

#include <cctype>
#include <utility>

using namespace k2c;

namespace {

class Parser {
public:
  Parser(const std::string &text, const Lookup &lookup) : text(text), lookup(lookup) {}

  Expected<int64_t> run() {
    int64_t value = conjunction();
    if (!failure && !atEnd())
      fail("has something behind its end");
    if (failure)
      return *failure;
    return value;
  }

private:
  bool atEnd() {
    while (pos < text.size() && text[pos] == ' ')
      ++pos;
    return pos == text.size();
  }

  bool accept(const std::string &token) {
    if (atEnd() || text.compare(pos, token.size(), token) != 0)
      return false;
    pos += token.size();
    return true;
  }

  int64_t fail(const std::string &why) {
    if (!failure)
      failure = Error{"", "'" + text + "' " + why, ""};
    pos = text.size();
    return 0;
  }

  int64_t conjunction() {
    int64_t value = comparison();
    while (accept("and ")) {
      int64_t right = comparison();
      value = value != 0 && right != 0;
    }
    return value;
  }

  int64_t comparison() {
    int64_t left = sum();
    // Two-character operators first.
    for (const char *op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!accept(op))
        continue;
      int64_t right = sum();
      std::string_view name = op;
      return name == "=="   ? left == right
             : name == "!=" ? left != right
             : name == "<=" ? left <= right
             : name == ">=" ? left >= right
             : name == "<"  ? left < right
                            : left > right;
    }
    return left;
  }

  int64_t sum() {
    int64_t value = product();
    for (;;) {
      bool plus = accept("+");
      if (!plus && !accept("-"))
        return value;
      int64_t right = product();
      if (plus ? __builtin_add_overflow(value, right, &value) : __builtin_sub_overflow(value, right, &value))
        return fail("overflows 64 bits");
    }
  }

  int64_t product() {
    int64_t value = atom();
    for (;;) {
      if (accept("*")) {
        int64_t right = atom();
        if (__builtin_mul_overflow(value, right, &value))
          return fail("overflows 64 bits");
      } else if (accept("/")) {
        int64_t right = atom();
        if (failure)
          return 0;
        if (right <= 0 || value % right != 0)
          return fail("asks for " + std::to_string(value) + " / " + std::to_string(right) + ", which is not whole");
        value /= right;
      } else if (accept("%")) {
        int64_t right = atom();
        if (failure)
          return 0;
        if (right <= 0)
          return fail("divides by " + std::to_string(right));
        value %= right;
      } else {
        return value;
      }
    }
  }

  int64_t atom() {
    if (accept("(")) {
      int64_t value = conjunction();
      return accept(")") ? value : fail("lacks ')'");
    }
    if (atEnd())
      return fail("ends too early");
    size_t begin = pos;
    while (pos < text.size() && (std::isalnum(static_cast<unsigned char>(text[pos])) || text[pos] == '_'))
      ++pos;
    std::string word = text.substr(begin, pos - begin);
    if (word.empty())
      return fail("has an unknown sign");
    if (!std::isdigit(static_cast<unsigned char>(word[0])))
      return name(word);
    int64_t value = 0;
    for (char c : word)
      if (!std::isdigit(static_cast<unsigned char>(c)) || __builtin_mul_overflow(value, int64_t(10), &value) ||
          __builtin_add_overflow(value, int64_t(c - '0'), &value))
        return fail("has a malformed number");
    return value;
  }

  int64_t name(const std::string &word) {
    Expected<int64_t> value = lookup(word);
    if (value)
      return *value;
    if (!failure)
      failure = value.takeError();
    pos = text.size();
    return 0;
  }

  const std::string &text;
  const Lookup &lookup;
  size_t pos = 0;
  std::optional<Error> failure;
};

} // namespace

Expected<int64_t> k2c::evaluate(const std::string &text, const Lookup &lookup) { return Parser(text, lookup).run(); }
