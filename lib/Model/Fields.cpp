//===- Fields.cpp - the values a config gives to a family's fields --------===//
//
// The keys of a config become the fields of a family, in the order of the families file, so that a default may be an
// expression over the fields before it:
//
//   head_dim: {field: head_dim, kind: size, default: hidden / heads}
//
// The kind of a key says how its value is checked. Absent and null are told apart: null is an error unless the rule
// says what it stands for. A text of the file is, in this order, a field, a truth value, a decimal number, an
// expression of whole numbers, or a word. A word that must be one of a list also sets a flag for each of them,
// <field>_is_<word>, which conditions of weights and checks can read. At last the checks run, whose messages are
// filled with {field} values. A Section reads an entry of the file where it has one and the field of the same name
// where not.
//
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "Expression.h"
#include "base/JsonText.h"
#include "k2c/Support/Join.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

using namespace k2c;
using nlohmann::json;

namespace {

/// "/ffn_config/moe_top_k" for the key ffn_config.moe_top_k.
std::string pointerOf(const std::string &key) {
  std::string pointer = "/" + key;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return pointer;
}

/// What a share of the field `of` is: whole, because readers of the same file would round it in different ways.
Expected<FieldValue> readShare(const ConfigFile &config, const KeyRule &rule, const json &value, const Fields &fields) {
  Expected<double> share = config.positiveNumber(pointerOf(rule.key), value);
  if (!share)
    return share.takeError();
  Expected<int64_t> whole = fields.integer(rule.of);
  if (!whole)
    return whole.takeError();
  const double part = *share * double(*whole);
  if (part <= double(*whole) && part == std::floor(part))
    return FieldValue(int64_t(part));
  const std::string most = std::to_string(*whole);
  return config.error(pointerOf(rule.key),
                      rule.key + " " + shortenedJson(value) + " of " + rule.of + " " + most + " is " +
                          json(part).dump() + ", not a whole number of at most " + most,
                      "take config.json from the published model");
}

/// The indices at which a list, as long as the field `of` says, has the value `is`.
Expected<FieldValue> readWhere(const ConfigFile &config, const KeyRule &rule, const json &value, const Fields &fields) {
  Expected<int64_t> count = fields.integer(rule.of);
  if (!count)
    return count.takeError();
  auto meant = [](const std::string &text) {
    const bool isNumber = text.find_first_not_of("0123456789") == std::string::npos && text.size() < 19;
    return isNumber ? json(std::stoll(text)) : json(text);
  };
  auto isKnown = [&](const json &item) {
    return std::any_of(rule.oneOf.begin(), rule.oneOf.end(), [&](const auto &text) { return item == meant(text); });
  };
  if (!value.is_array() || int64_t(value.size()) != *count || !std::all_of(value.begin(), value.end(), isKnown))
    return config.error(pointerOf(rule.key), rule.key + " must be a list of " + std::to_string(*count) + " (" +
                                                 rule.of + ") of " + joined(rule.oneOf) + ", got " +
                                                 shortenedJson(value));
  std::vector<int64_t> indices;
  for (int64_t at = 0; at < *count; ++at)
    if (value[size_t(at)] == meant(rule.is))
      indices.push_back(at);
  return FieldValue(std::move(indices));
}

/// Reads the value of a present key.
Expected<FieldValue> readValue(const ConfigFile &config, const KeyRule &rule, const json &value, const Fields &fields) {
  std::string pointer = pointerOf(rule.key);
  auto mustBe = [&](const char *kind) {
    return config.error(pointer, rule.key + " must be " + kind + ", got " + shortenedJson(value));
  };
  switch (rule.kind) {
  case KeyKind::Size:
  case KeyKind::Count: {
    Expected<int64_t> number = config.wholeNumber(pointer, value, rule.kind == KeyKind::Size ? 1 : 0, rule.max);
    if (!number)
      return number.takeError();
    return FieldValue(*number);
  }
  case KeyKind::Number: {
    Expected<double> number = config.positiveNumber(pointer, value);
    if (!number)
      return number.takeError();
    return FieldValue(*number);
  }
  case KeyKind::Share:
    return readShare(config, rule, value, fields);
  case KeyKind::Flag:
    if (!value.is_boolean())
      return mustBe("true or false");
    return FieldValue(value.get<bool>());
  case KeyKind::Word:
    if (!value.is_string())
      return mustBe("a word in quotes");
    return FieldValue(value.get<std::string>());
  case KeyKind::Indices: {
    std::vector<int64_t> indices;
    if (!value.is_array())
      return mustBe("a list of layers");
    for (const json &item : value) {
      Expected<int64_t> index = config.wholeNumber(pointer, item, 0, rule.max);
      if (!index)
        return index.takeError();
      indices.push_back(*index);
    }
    return FieldValue(std::move(indices));
  }
  case KeyKind::Where:
    break;
  }
  return readWhere(config, rule, value, fields);
}

Expected<FieldValue> readKey(ConfigFile &config, const KeyRule &rule, const Fields &fields) {
  std::string pointer = pointerOf(rule.key);
  const json *value = config.get(pointer);
  if (!value && !rule.defaultText)
    return Error{config.file(), "key '" + rule.key + "' is missing", "take config.json from the published model"};
  if (value && value->is_null() && !rule.nullText)
    return config.error(pointer, rule.key + " must not be null");
  if (value && !value->is_null())
    return readValue(config, rule, *value, fields);
  bool isNull = value && *rule.nullText != "default";
  Expected<FieldValue> standIn = fields.resolve(isNull ? *rule.nullText : *rule.defaultText);
  if (!standIn)
    return Error{config.file(), "key '" + rule.key + "' is not given and cannot be derived: " + standIn.error().message,
                 "correct the sizes or add the key"};
  return standIn;
}

} // namespace

std::string k2c::toText(const FieldValue &value) {
  if (const auto *number = std::get_if<int64_t>(&value))
    return std::to_string(*number);
  if (const auto *number = std::get_if<double>(&value))
    return json(*number).dump();
  if (const auto *flag = std::get_if<bool>(&value))
    return *flag ? "true" : "false";
  if (const auto *list = std::get_if<std::vector<int64_t>>(&value))
    return json(*list).dump();
  return std::get<std::string>(value);
}

Expected<int64_t> Fields::integer(const std::string &expression) const {
  return evaluate(expression, [&](const std::string &name) -> Expected<int64_t> {
    auto at = values.find(name);
    if (at != values.end()) {
      if (const auto *number = std::get_if<int64_t>(&at->second))
        return *number;
      if (const auto *flag = std::get_if<bool>(&at->second))
        return int64_t(*flag);
      if (const auto *list = std::get_if<std::vector<int64_t>>(&at->second))
        return int64_t(list->size());
    }
    return Error{"", "'" + name + "' is not a whole number here", ""};
  });
}

std::vector<int64_t> Fields::indices(const std::string &name) const {
  auto at = values.find(name);
  const auto *list = at == values.end() ? nullptr : std::get_if<std::vector<int64_t>>(&at->second);
  return list ? *list : std::vector<int64_t>();
}

Expected<FieldValue> Fields::members(const std::string &from, const std::string &to, const std::string &step) const {
  std::array<int64_t, 3> bounds = {};
  const std::array<const std::string *, 3> texts = {&from, &to, &step};
  for (size_t i = 0; i < bounds.size(); ++i) {
    Expected<int64_t> bound = integer(*texts[i]);
    if (!bound)
      return bound.takeError();
    bounds[i] = *bound;
  }
  if (bounds[2] < 1)
    return Error{"", "step must be at least 1, got " + std::to_string(bounds[2]), ""};
  std::vector<int64_t> indices;
  for (int64_t at = bounds[0]; at < bounds[1]; at += bounds[2])
    indices.push_back(at);
  return FieldValue(std::move(indices));
}

Expected<FieldValue> Fields::resolve(const std::string &text) const {
  if (text == "[]")
    return FieldValue(std::vector<int64_t>());
  if (const size_t to = text.find(" to "), step = text.find(" step "); to < step && step != std::string::npos)
    return members(text.substr(0, to), text.substr(to + 4, step - to - 4), text.substr(step + 6));
  if (auto at = values.find(text); at != values.end())
    return at->second;
  if (text == "true" || text == "false")
    return FieldValue(text == "true");
  // "1.0e-6" has a sign but is a literal.
  double number = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc() && end == text.data() + text.size() && text.find_first_of(".e") != std::string::npos)
    return FieldValue(number);
  if (text.find_first_of("+-*/%=<>") != std::string::npos ||
      text.find_first_not_of("0123456789") == std::string::npos) {
    Expected<int64_t> whole = integer(text);
    if (!whole)
      return whole.takeError();
    return FieldValue(*whole);
  }
  return FieldValue(text);
}

std::string Fields::fill(const std::string &text) const {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t open = text.find('{', at), close = text.find('}', open);
    if (open == std::string::npos || close == std::string::npos)
      return out + text.substr(at);
    auto field = values.find(text.substr(open + 1, close - open - 1));
    out += text.substr(at, open - at);
    if (field != values.end())
      out += toText(field->second);
    at = close + 1;
  }
  return out;
}

Expected<Fields> k2c::readFields(ConfigFile &config, const Family &family, std::map<std::string, ConfigPlace> &places) {
  Fields fields;
  for (const KeyRule &rule : family.keys) {
    Expected<FieldValue> value = readKey(config, rule, fields);
    if (!value)
      return value.takeError();
    if (rule.kind != KeyKind::Where && !rule.oneOf.empty() &&
        std::find(rule.oneOf.begin(), rule.oneOf.end(), toText(*value)) == rule.oneOf.end())
      return config.error(pointerOf(rule.key), rule.key + " '" + shortened(toText(*value)) + "' is not in this build",
                          "supported: " + joined(rule.oneOf));
    for (const std::string &word : rule.kind == KeyKind::Word ? rule.oneOf : std::vector<std::string>())
      fields.set(rule.field + "_is_" + word, toText(*value) == word);
    fields.set(rule.field, std::move(*value));
    places[rule.field] = config.place(pointerOf(rule.key));
  }
  for (const CheckRule &check : family.checks) {
    Expected<int64_t> holds = fields.integer(check.that);
    if (!holds)
      return config.error(pointerOf(check.at), holds.error().message);
    if (!*holds)
      return config.error(pointerOf(check.at), fields.fill(check.say), "take config.json from the published model");
  }
  return fields;
}

void Section::fail(const std::string &entry, const std::string &why) {
  if (!failure)
    failure = Error{where, "entry '" + entry + "' " + why, ""};
}

FieldValue Section::value(const std::string &entry) {
  Expected<FieldValue> value = fields.resolve(has(entry) ? entries.at(entry) : entry);
  if (value)
    return *value;
  fail(entry, value.error().message);
  return int64_t(0);
}

int64_t Section::sizeOr(const std::string &entry, int64_t otherwise) {
  return has(entry) || fields.has(entry) ? size(entry) : otherwise;
}

int64_t Section::size(const std::string &entry) {
  FieldValue read = value(entry);
  if (const auto *number = std::get_if<int64_t>(&read))
    return *number;
  return fail(entry, "is not a whole number"), 0;
}

double Section::number(const std::string &entry) {
  FieldValue read = value(entry);
  if (const auto *number = std::get_if<double>(&read))
    return *number;
  if (const auto *whole = std::get_if<int64_t>(&read))
    return static_cast<double>(*whole);
  return fail(entry, "is not a number"), 0;
}

bool Section::flag(const std::string &entry) {
  FieldValue read = value(entry);
  if (const auto *flag = std::get_if<bool>(&read))
    return *flag;
  return fail(entry, "is not true or false"), false;
}

std::string Section::word(const std::string &entry) {
  FieldValue read = value(entry);
  if (const auto *text = std::get_if<std::string>(&read))
    return *text;
  return fail(entry, "is not a word"), "";
}
