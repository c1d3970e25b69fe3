//===- ConfigFile.cpp - config.json while it is read ----------------------===//

#include "ConfigFile.h"
#include "base/JsonText.h"

#include <algorithm>
#include <cmath>

using namespace k2c;
using nlohmann::json;

namespace {

constexpr size_t third = maxQuoted / 3; // of what a message quotes

bool contains(const std::vector<std::string> &list, const std::string &word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool isHarmless(const HarmlessKeys &harmless, const std::string &key, const json &value) {
  if (contains(harmless.any, key))
    return true;
  auto only = harmless.only.find(key);
  return only != harmless.only.end() && contains(only->second, value.dump());
}

} // namespace

std::string k2c::keyName(const std::string &pointer) {
  std::string name = pointer.substr(pointer.empty() ? 0 : 1);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

const json *ConfigFile::get(const std::string &pointer) {
  known.insert(pointer);
  const json *value = &document.root();
  for (size_t at = 1; at <= pointer.size();) {
    size_t end = std::min(pointer.find('/', at), pointer.size());
    auto member = value->find(pointer.substr(at, end - at));
    if (!value->is_object() || member == value->end())
      return nullptr;
    value = &*member;
    at = end + 1;
  }
  return value;
}

const json *ConfigFile::getNonNull(const std::string &pointer) {
  const json *value = get(pointer);
  return value && value->is_null() ? nullptr : value;
}

Error ConfigFile::error(const std::string &pointer, std::string message, std::string remedy) const {
  return Error{document.place(pointer), std::move(message), std::move(remedy)};
}

ConfigPlace ConfigFile::place(const std::string &pointer) const {
  LineColumn at = document.locate(pointer);
  return {document.file(), keyName(pointer), at.line, at.column};
}

Expected<int64_t> ConfigFile::wholeNumber(const std::string &pointer, const json &value, int64_t min,
                                          int64_t max) const {
  bool inRange = value.is_number_unsigned()
                     ? value.get<uint64_t>() <= static_cast<uint64_t>(max) && value.get<int64_t>() >= min
                     : value.is_number_integer() && value.get<int64_t>() >= min;
  if (inRange)
    return value.get<int64_t>();
  return error(pointer, keyName(pointer) + " must be a whole number from " + std::to_string(min) + " to " +
                            std::to_string(max) + ", got " + shortenedJson(value));
}

Expected<double> ConfigFile::positiveNumber(const std::string &pointer, const json &value) const {
  if (value.is_number())
    if (double number = value.get<double>(); std::isfinite(number) && number > 0)
      return number;
  return error(pointer, keyName(pointer) + " must be a number above 0, got " + shortenedJson(value));
}

Expected<std::vector<std::string>> ConfigFile::checkUnknown(const std::string &pointer, const HarmlessKeys &harmless) {
  const json *object = get(pointer);
  std::vector<std::string> ignored;
  if (!object || !object->is_object())
    return ignored;
  for (const auto &[key, value] : object->items()) {
    std::string at = pointer + "/" + escapeJsonPointer(key);
    std::string name = keyName(pointer + "/" + key);
    bool isIgnored = contains(ignoreKeys, name);
    if (known.count(at)) {
      if (isIgnored)
        return error(at, "key '" + shortened(name) + "' changes what the model computes", "it cannot be ignored");
      continue;
    }
    if (pointer.empty() && isHarmless(harmless, key, value))
      continue;
    if (!isIgnored)
      return error(at, "unknown key '" + shortened(name, third) + "' with value " + shortenedJson(value, third),
                   "if it changes nothing at inference, name it with --ignore-key " + shortened(name, third));
    ignored.push_back(name);
  }
  return ignored;
}
