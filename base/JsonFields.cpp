// Every reader of a bundle's number is here: type first, then range, then the caller may use it.
//
// A JsonFields is a view of one object that knows its place in the document. What it refuses ends the reader with an
// exception that names the place, what stands there, what must stand there, and what to do:
//
//   root.object("model").integer("layers", 1, 65536)    ->  manifest.json: model.layers: is 0, must be within 1..65536
//
// So a reader is a list of assignments, and a value that it has is one that was accepted. The exception ends in
// readJsonFields, which is where a reader begins.
#include "base/JsonFields.h"
#include "base/JsonText.h"
#include <algorithm>

namespace k2c {

using nlohmann::json;

JsonFields::JsonFields(const json &value, std::string_view file, const char *remedy, std::string path)
    : value(&value), file(file), remedy(remedy), path(std::move(path)) {
  if (!value.is_object())
    wrongType(value, "", "an object");
}

std::string JsonFields::pathOf(const std::string &key) const {
  return path.empty() || key.empty() ? path + key : path + "." + key;
}

std::string JsonFields::place(const std::string &key) const {
  const std::string inside = pathOf(key);
  return std::string(file) + (inside.empty() ? "" : ": ") + inside;
}

void JsonFields::fail(const std::string &key, const std::string &message, const std::string &remedy) const {
  throw ParseError{{K2RT_INVALID_BUNDLE, place(key), message, remedy}};
}

void JsonFields::wrongType(const json &value, const std::string &key, const std::string &wanted) const {
  const std::string found = value.is_array()    ? "a list of " + std::to_string(value.size())
                            : value.is_object() ? "an object"
                                                : shortenedJson(value);
  fail(key, "is " + found + ", must be " + wanted);
}

bool JsonFields::has(const char *key) const {
  const auto found = value->find(key);
  return found != value->end() && !found->is_null();
}

const json &JsonFields::at(const std::string &key) const {
  const auto found = value->find(key);
  if (found == value->end())
    fail(shortened(key, maxOfKey), "is missing");
  return *found;
}

int64_t JsonFields::integerOf(const json &value, const std::string &key, int64_t least, int64_t most) const {
  const bool tooLarge = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX);
  const bool isInteger = value.is_number_integer() && !tooLarge;
  if (isInteger && value.get<int64_t>() >= least && value.get<int64_t>() <= most)
    return value.get<int64_t>();
  const std::string range = "within " + std::to_string(least) + ".." + std::to_string(most);
  wrongType(value, key, (isInteger ? "" : "an integer ") + (least == most ? std::to_string(least) : range));
}

int64_t JsonFields::integer(const char *key, int64_t least, int64_t most) const {
  return integerOf(at(key), key, least, most);
}

int64_t JsonFields::integer(const char *key, int64_t least, int64_t most, int64_t absent) const {
  return has(key) ? integer(key, least, most) : absent;
}

bool JsonFields::flag(const char *key, bool absent) const {
  if (!has(key))
    return absent;
  if (!at(key).is_boolean())
    wrongType(at(key), key, "true or false");
  return at(key).get<bool>();
}

const std::string &JsonFields::stringOf(const json &value, const std::string &key, size_t maxBytes) const {
  if (!value.is_string() || value.get_ref<const std::string &>().size() > maxBytes)
    wrongType(value, key, "a string of at most " + std::to_string(maxBytes) + " bytes");
  return value.get_ref<const std::string &>();
}

const std::string &JsonFields::string(const char *key, size_t maxBytes) const {
  return stringOf(at(key), key, maxBytes);
}

std::string JsonFields::string(const char *key, const char *absent) const { return has(key) ? string(key) : absent; }

const json &JsonFields::list(const char *key, size_t maxElements) const {
  const json &value = at(key);
  if (!value.is_array() || value.size() > maxElements)
    wrongType(value, key, "a list of at most " + std::to_string(maxElements));
  return value;
}

static std::string indexed(const char *key, size_t index) { return key + ("[" + std::to_string(index) + "]"); }

std::vector<int64_t> JsonFields::integers(const char *key, int64_t least, int64_t most, size_t maxElements) const {
  std::vector<int64_t> numbers;
  for (const json &value : list(key, maxElements))
    numbers.push_back(integerOf(value, indexed(key, numbers.size()), least, most));
  return numbers;
}

std::vector<std::vector<int64_t>> JsonFields::integerLists(const char *key, int64_t least, int64_t most, int64_t none,
                                                           size_t maxLists, size_t maxElements) const {
  std::vector<std::vector<int64_t>> lists;
  for (const json &inner : list(key, maxLists)) {
    const std::string place = indexed(key, lists.size());
    if (!inner.is_array() || inner.size() > maxElements)
      wrongType(inner, place, "a list of at most " + std::to_string(maxElements));
    std::vector<int64_t> &numbers = lists.emplace_back();
    for (const json &value : inner)
      numbers.push_back(value.is_null() ? none : integerOf(value, indexed(place.c_str(), numbers.size()), least, most));
  }
  return lists;
}

std::vector<std::string> JsonFields::strings(const char *key, size_t maxElements) const {
  std::vector<std::string> texts;
  for (const json &value : list(key, maxElements))
    texts.push_back(stringOf(value, indexed(key, texts.size()), maxStringBytes));
  return texts;
}

JsonFields JsonFields::object(const std::string &key) const {
  return JsonFields(at(key), file, remedy, pathOf(shortened(key, maxOfKey)));
}

std::vector<JsonFields> JsonFields::objects(const char *key, size_t maxElements) const {
  std::vector<JsonFields> views;
  for (const json &value : list(key, maxElements))
    views.emplace_back(value, file, remedy, pathOf(indexed(key, views.size())));
  return views;
}

std::vector<std::optional<JsonFields>> JsonFields::objectsOrNulls(const char *key, size_t maxElements) const {
  std::vector<std::optional<JsonFields>> views;
  for (const json &value : list(key, maxElements)) {
    views.emplace_back();
    if (!value.is_null())
      views.back().emplace(value, file, remedy, pathOf(indexed(key, views.size() - 1)));
  }
  return views;
}

std::vector<std::pair<std::string, JsonFields>> JsonFields::members() const {
  std::vector<std::pair<std::string, JsonFields>> views;
  for (const auto &[key, member] : value->items())
    views.emplace_back(key,
                       JsonFields(member, file, remedy, path + (path.empty() ? "" : ".") + shortened(key, maxOfKey)));
  return views;
}

std::string JsonFields::raw(const char *key) const {
  return has(key) ? at(key).dump(-1, ' ', true, json::error_handler_t::replace) : "{}";
}

void JsonFields::onlyKeys(std::initializer_list<const char *> keys) const {
  for (const auto &[key, member] : value->items())
    if (std::none_of(keys.begin(), keys.end(), [&key = key](const char *known) { return key == known; }))
      fail(shortened(key, maxOfKey), "unknown key");
}

} // namespace k2c
