//===- QueryInputs.cpp - Inputs of a query with their places --------------===//
//
// A view of one JSON object of inputs that notes every key somebody asked for. After the query has run, a key that
// nobody read is a mistake of the user, a misspelt or meaningless input, and not a silent default:
//
//   {"model": "kimi-k2", "w_byte": 2}   ->   nothing reads 'w_byte' with these inputs; read are: model w_bytes
//
// Nested objects are views that share one state: the keys that were read, by the object's JSON pointer, the first
// failure, and the models that were loaded, which live as long as the inputs do. A read that fails keeps the first
// error and returns the least value of its range, so that callers go on without tests and ask ok() before they answer.
// Asking has() does not read. A whole number may be written 8.0.
//
//===----------------------------------------------------------------------===//

#include "base/JsonText.h"
#include "k2c/Formulas/Query.h"
#include "k2c/Onnx/Import.h"
#include "k2c/Support/Join.h"

#include <algorithm>
#include <cctype>
#include <cmath>

using namespace k2c;
using nlohmann::json;

QueryInputs::QueryInputs(const JsonDocument &document, Compat compat, std::string pointer)
    : QueryInputs(document, std::make_shared<State>(State{compat, std::nullopt, {}, {}, {}}), std::move(pointer)) {}

QueryInputs::QueryInputs(const JsonDocument &document, std::shared_ptr<State> state, std::string pointer)
    : document(&document), state(std::move(state)), pointer(std::move(pointer)) {
  json::json_pointer at(this->pointer);
  if (document.root().contains(at) && document.root().at(at).is_object())
    values = &document.root().at(at);
  this->state->opened.push_back(this->pointer);
}

void QueryInputs::fail(const std::string &key, const std::string &message, const std::string &remedy) {
  if (ok())
    state->failure =
        Error{document->place(pointer + "/" + escapeJsonPointer(key)), "'" + shortened(key) + "' " + message, remedy};
}

const json *QueryInputs::raw(const std::string &key) const {
  std::vector<std::string> &read = state->read[pointer];
  if (std::find(read.begin(), read.end(), key) == read.end())
    read.push_back(key);
  if (!values)
    return nullptr;
  auto at = values->find(key);
  return at == values->end() ? nullptr : &*at;
}

bool QueryInputs::has(const std::string &key) const { return values && values->contains(key); }

std::optional<Error> QueryInputs::unread(const std::set<std::string> &ignored) const {
  for (const std::string &object : state->opened) {
    const json &values = document->root().at(json::json_pointer(object));
    const std::vector<std::string> &read = state->read[object];
    for (const auto &[key, value] : values.items()) {
      if (ignored.count(key) || std::find(read.begin(), read.end(), key) != read.end())
        continue;
      std::string keys;
      for (const std::string &each : read)
        keys += (keys.empty() ? "" : " ") + each;
      const std::string of = object.empty() ? "with these inputs" : "in '" + shortened(object.substr(1)) + "'";
      return Error{document->place(object + "/" + escapeJsonPointer(key)),
                   "nothing reads '" + shortened(key) + "' " + of, "leave it out; read are: " + keys};
    }
  }
  return std::nullopt;
}

/// What is wrong, as people say it: "must be 1 to 8, got 9".
static std::string range(const std::string &min, const std::string &max, const json &got) {
  return "must be " + min + " to " + max + ", got " + shortenedJson(got);
}

int64_t QueryInputs::whole(const std::string &key, int64_t min, int64_t max) {
  return whole(key, std::nullopt, min, max);
}

int64_t QueryInputs::whole(const std::string &key, std::optional<int64_t> otherwise, int64_t min, int64_t max) {
  const json *value = raw(key);
  if (!value) {
    if (!otherwise)
      fail(key, "is missing", "give a whole number of at least " + std::to_string(min));
    return otherwise.value_or(min);
  }
  // Integers beyond 2^53 arrive exactly or as a float that cannot be told from its neighbours: both end here.
  double real = value->is_number() ? value->get<double>() : std::nan("");
  if (real >= static_cast<double>(min) && real <= static_cast<double>(max) && real == std::floor(real))
    return value->is_number_integer() ? value->get<int64_t>() : static_cast<int64_t>(real);
  fail(key, (value->is_number() ? "" : "must be a whole number; it ") +
                range(std::to_string(min), std::to_string(max), *value));
  return min;
}

double QueryInputs::number(const std::string &key, double min, double max) {
  return number(key, std::nullopt, min, max);
}

double QueryInputs::number(const std::string &key, std::optional<double> otherwise, double min, double max) {
  const json *value = raw(key);
  if (!value) {
    if (!otherwise)
      fail(key, "is missing", "give a number of at least " + json(min).dump());
    return otherwise.value_or(min);
  }
  if (value->is_number() && value->get<double>() >= min && value->get<double>() <= max)
    return value->get<double>();
  fail(key, (value->is_number() ? "" : "must be a number; it ") + range(json(min).dump(), json(max).dump(), *value));
  return min;
}

bool QueryInputs::flag(const std::string &key, bool otherwise) {
  const json *value = raw(key);
  if (!value)
    return otherwise;
  if (!value->is_boolean())
    fail(key, "must be true or false, got " + shortenedJson(*value));
  return value->is_boolean() && value->get<bool>();
}

size_t QueryInputs::word(const std::string &key, const std::vector<std::string> &words,
                         std::optional<size_t> otherwise) {
  const json *value = raw(key);
  if (!value && otherwise)
    return *otherwise;
  if (value && value->is_string()) {
    std::string text = value->get<std::string>();
    text = text.substr(0, text.find(" ("));
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    for (size_t i = 0; i < words.size(); ++i)
      if (text == words[i])
        return i;
  }
  fail(key, value ? "has the unknown value " + shortenedJson(*value) : "is missing", "give one of " + joined(words));
  return 0;
}

std::vector<double> QueryInputs::numbers(const std::string &key, double min, double max, size_t maxItems) {
  std::vector<double> list;
  const json *value = raw(key);
  if (!value || !value->is_array() || value->size() > maxItems) {
    fail(key, value ? "must be a list of at most " + std::to_string(maxItems) + " numbers" : "is missing",
         "give a list of numbers");
    return list;
  }
  for (const json &item : *value) {
    if (!item.is_number() || !(item.get<double>() >= min && item.get<double>() <= max)) {
      fail(key, "has an item that " + range(json(min).dump(), json(max).dump(), item));
      return {};
    }
    list.push_back(item.get<double>());
  }
  return list;
}

const ModelSpec *QueryInputs::model(const std::string &key) {
  const json *value = raw(key);
  if (!value || !(value->is_string() || value->is_object())) {
    fail(key, value ? "must be a name, a path or a config.json object" : "is missing",
         "known models: see `k2c plan --models`");
    return nullptr;
  }
  LoadOptions options;
  options.purpose = LoadPurpose::Plan;
  Expected<ModelSpec> spec = value->is_object()
                                 ? parseModelSpec(value->dump(), document->place(pointer + "/" + key), options)
                                 : loadSourceToPlan(value->get_ref<const std::string &>());
  if (!spec) {
    if (ok())
      state->failure = spec.takeError();
    return nullptr;
  }
  state->models.push_back(std::make_unique<ModelSpec>(std::move(*spec)));
  return state->models.back().get();
}

QueryInputs QueryInputs::object(const std::string &key) {
  const json *value = raw(key);
  if (!value || !value->is_object())
    fail(key, value ? "must be an object" : "is missing");
  return QueryInputs(*document, state, pointer + "/" + escapeJsonPointer(key));
}
