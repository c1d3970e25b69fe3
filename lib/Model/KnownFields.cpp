//===- KnownFields.cpp - the fields of a family that are known so far ----===//
#include "KnownFields.h"
#include "Expression.h"

using namespace k2c;
using nlohmann::json;

bool KnownFields::isField(const std::string &name) const {
  return std::any_of(family->keys.begin(), family->keys.end(), [&](const KeyRule &rule) { return rule.field == name; });
}

void KnownFields::know(const std::string &text, const json &value) {
  if (!isField(text) || !values.emplace(text, value).second)
    return;
  for (const KeyRule &rule : family->keys)
    if (rule.field == text && rule.kind == KeyKind::Word)
      for (const std::string &word : rule.oneOf)
        values[text + "_is_" + word] = value == word;
}

std::optional<int64_t> KnownFields::evaluateWith(const std::string &expression, int64_t otherwise,
                                                 std::set<std::string> &missing) const {
  const Expected<int64_t> found = evaluate(expression, [&](const std::string &name) -> Expected<int64_t> {
    const auto known = values.find(name);
    if (known == values.end()) {
      missing.insert(name);
      return otherwise;
    }
    const json &value = known->second;
    if (value.is_array())
      return int64_t(value.size());
    if (value.is_boolean())
      return int64_t(value.get<bool>());
    if (value.is_number_integer())
      return value.get<int64_t>();
    return Error{"", "'" + name + "' is not a whole number here", ""};
  });
  return found ? std::optional(*found) : std::nullopt;
}

std::optional<int64_t> KnownFields::integer(const std::string &expression) const {
  std::set<std::string> missing;
  const std::optional<int64_t> found = evaluateWith(expression, 0, missing);
  return missing.empty() ? found : std::nullopt;
}

bool KnownFields::solve(const std::string &expression, int64_t value) {
  std::set<std::string> missing;
  const std::optional<int64_t> zero = evaluateWith(expression, 0, missing), one = evaluateWith(expression, 1, missing);
  if (missing.size() != 1 || !isField(*missing.begin()) || !zero || !one || *zero == *one)
    return false;
  // All values are of files, so their differences may be out of range.
  int64_t rise = 0, slope = 0;
  if (__builtin_sub_overflow(value, *zero, &rise) || __builtin_sub_overflow(*one, *zero, &slope) || rise % slope != 0)
    return false;
  const int64_t root = rise / slope;
  if (root < 0 || evaluateWith(expression, root, missing) != value)
    return false;
  know(*missing.begin(), root);
  return true;
}
