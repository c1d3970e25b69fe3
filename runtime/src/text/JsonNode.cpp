// Accessors with places.
#include "text/JsonNode.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c::runtime {

/// A key in a path of errors, which may have several.
static constexpr size_t maxOfKey = 43;

Error parseError(const nlohmann::json::exception &exception, const std::string &file) {
  return {K2RT_INVALID_BUNDLE, file, parserText(exception), ""};
}

std::string JsonNode::place() const { return path.empty() ? *file : *file + ": " + path; }

void JsonNode::refuse(const std::string &message) const {
  throw ParseError{{K2RT_INVALID_BUNDLE, place(), message, ""}};
}

void JsonNode::unsupported(const std::string &what) const {
  throw ParseError{{K2RT_UNSUPPORTED, place(), what + " is not in this build", "use token ids instead of text"}};
}

void JsonNode::wrongType(const char *wanted) const {
  refuse(std::string("expected ") + wanted + ", found " + value->type_name());
}

const JsonNode::Json::object_t &JsonNode::object() const {
  if (!value->is_object())
    wrongType("an object");
  return value->get_ref<const Json::object_t &>();
}

JsonNode JsonNode::member(const Json::object_t::value_type &entry) const {
  const std::string key = shortened(entry.first, maxOfKey);
  return JsonNode(entry.second, *file, path.empty() ? key : path + "." + key);
}

JsonNode JsonNode::operator[](const std::string &key) const {
  auto found = object().find(key);
  if (found == object().end())
    refuse("\"" + shortened(key) + "\" is missing");
  return member(*found);
}

std::optional<JsonNode> JsonNode::find(const std::string &key) const {
  auto found = object().find(key);
  if (found == object().end() || found->second.is_null())
    return std::nullopt;
  return member(*found);
}

size_t JsonNode::size() const {
  if (!value->is_array())
    wrongType("an array");
  return value->size();
}

JsonNode JsonNode::at(size_t index) const {
  return JsonNode((*value)[index], *file, path + "[" + std::to_string(index) + "]");
}

const std::string &JsonNode::text() const {
  if (!value->is_string())
    wrongType("a string");
  return value->get_ref<const std::string &>();
}

int64_t JsonNode::integer(int64_t low, int64_t high) const {
  if (!value->is_number_integer())
    wrongType("an integer");
  const bool huge = value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(INT64_MAX);
  const int64_t number = huge ? INT64_MAX : value->get<int64_t>();
  if (number < low || number > high)
    refuse(value->dump() + " is not between " + std::to_string(low) + " and " + std::to_string(high));
  return number;
}

bool JsonNode::flag(const std::string &key, bool absent) const {
  std::optional<JsonNode> found = find(key);
  if (!found)
    return absent;
  if (!found->value->is_boolean())
    found->wrongType("true or false");
  return found->value->get<bool>();
}

void JsonNode::onlyKeys(std::initializer_list<const char *> keys) const {
  for (const auto &entry : object())
    if (std::none_of(keys.begin(), keys.end(), [&](const char *key) { return entry.first == key; }))
      member(entry).refuse("unknown key");
}

} // namespace k2c::runtime
