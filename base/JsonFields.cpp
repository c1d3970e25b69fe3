// Every reader of a hostile number is here: type first, then range, then the caller may use it.
//
// Before a text is parsed, its nesting is bounded and a NUL byte refused; a key that occurs twice ends the parse. A
// JsonFields is then a view of one object that knows its place in the document. All views of a document share one
// Error, and the first mistake is the one that stays:
//
//   root.object("model").integer("layers", 1, 65536)    ->  manifest.json: model.layers: is 0, must be within 1..65536
//
// So a reader names all its fields in a row and asks ok() once. The trap is what a refused field reads as: 0, an empty
// text or an empty list, even where the range begins at 1. Whoever divides by a field or sizes a buffer by it asks
// ok() before.
#include "base/JsonFields.h"
#include "base/JsonText.h"
#include "base/UniqueKeys.h"
#include "base/Utf8.h"

namespace k2c {

using nlohmann::json;

static constexpr size_t maxNesting = 32;
static constexpr size_t maxStringBytes = 4096;

/// Nesting is bounded before parsing: it is what a hostile document exhausts first.
static bool nestedTooDeep(std::string_view text) {
  size_t depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > maxNesting)
        return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

Expected<json> parseJsonFields(std::string_view text, const std::string &place, k2rt_code code) {
  if (nestedTooDeep(text))
    return Error{code, place, "is nested deeper than " + std::to_string(maxNesting), ""};
  // The parser would take a NUL byte for the end of the text, whatever follows.
  if (const size_t nul = text.find('\0'); nul != text.npos)
    return Error{code, place, "is not JSON: byte " + std::to_string(nul) + " is NUL", ""};
  try {
    UniqueKeys keys;
    return json::parse(text.begin(), text.end(), [&](int depth, json::parse_event_t event, const json &value) {
      return keys(depth, event, value);
    });
  } catch (const UniqueKeys::Twice &key) {
    return Error{code, place + ": " + key.path, "occurs twice in its object", "remove one of the two"};
  } catch (const json::exception &problem) {
    return Error{code, place, "is not JSON: " + parserText(problem), ""};
  }
}

static const json &emptyObject() {
  static const json empty = json::object();
  return empty;
}

JsonFields::JsonFields(const json &document, std::string where, Error &error)
    : node(&document), place(std::move(where)), error(&error) {
  if (!document.is_object()) {
    fail("", "is not an object");
    node = &emptyObject();
  }
}

void JsonFields::fail(const std::string &key, const std::string &message, const std::string &remedy) {
  if (!ok())
    return;
  std::string where = place + key;
  while (!where.empty() && (where.back() == '.' || where.back() == ' ' || where.back() == ':'))
    where.pop_back();
  *error = Error{K2RT_INVALID_BUNDLE, std::move(where), message, remedy};
}

bool JsonFields::has(const char *key) const { return node->contains(key) && !(*node)[key].is_null(); }

const json *JsonFields::find(const char *key) {
  const auto at = node->find(key);
  if (at != node->end())
    return &*at;
  fail(key, "is missing", "compile the bundle again with this version of k2c");
  return nullptr;
}

int64_t JsonFields::checked(const json &value, const std::string &key, int64_t least, int64_t most) {
  const bool tooLarge = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX);
  if (!value.is_number_integer() || tooLarge) {
    fail(key, tooLarge ? "is larger than 2^63" : "is not an integer");
    return 0;
  }
  const int64_t number = value.get<int64_t>();
  if (number >= least && number <= most)
    return number;
  fail(key, "is " + std::to_string(number) + ", must be within " + std::to_string(least) + ".." + std::to_string(most));
  return 0;
}

int64_t JsonFields::integer(const char *key, int64_t least, int64_t most) {
  const json *value = find(key);
  return value ? checked(*value, key, least, most) : 0;
}

int64_t JsonFields::integer(const char *key, int64_t least, int64_t most, int64_t absent) {
  return has(key) ? integer(key, least, most) : absent;
}

std::string JsonFields::string(const char *key) {
  const json *value = find(key);
  if (!value)
    return {};
  if (!value->is_string() || value->get_ref<const std::string &>().size() > maxStringBytes) {
    fail(key, "is not a string of at most " + std::to_string(maxStringBytes) + " bytes");
    return {};
  }
  return value->get<std::string>();
}

std::string JsonFields::string(const char *key, const char *absent) { return has(key) ? string(key) : absent; }

const json *JsonFields::list(const char *key, size_t maxElements) {
  const json *value = find(key);
  if (!value)
    return nullptr;
  if (!value->is_array()) {
    fail(key, "is not a list");
    return nullptr;
  }
  if (value->size() > maxElements) {
    fail(key,
         "has " + std::to_string(value->size()) + " elements, at most " + std::to_string(maxElements) + " are allowed");
    return nullptr;
  }
  return value;
}

static std::string indexed(const char *key, size_t index) { return key + ("[" + std::to_string(index) + "]"); }

std::vector<int64_t> JsonFields::integers(const char *key, int64_t least, int64_t most, size_t maxElements) {
  std::vector<int64_t> numbers;
  if (const json *values = list(key, maxElements))
    for (const json &value : *values)
      numbers.push_back(checked(value, indexed(key, numbers.size()), least, most));
  return numbers;
}

std::vector<std::string> JsonFields::strings(const char *key, size_t maxElements) {
  std::vector<std::string> texts;
  const json *values = list(key, maxElements);
  if (!values)
    return texts;
  for (const json &value : *values) {
    if (!value.is_string() || value.get_ref<const std::string &>().size() > maxStringBytes) {
      fail(indexed(key, texts.size()), "is not a string of at most " + std::to_string(maxStringBytes) + " bytes");
      return {};
    }
    texts.push_back(value.get<std::string>());
  }
  return texts;
}

JsonFields JsonFields::object(const char *key) {
  const json *value = find(key);
  return JsonFields(value ? *value : emptyObject(), place + key + ".", *error);
}

std::vector<JsonFields> JsonFields::objects(const char *key, size_t maxElements) {
  std::vector<JsonFields> views;
  for (std::optional<JsonFields> &view : objectsOrNulls(key, maxElements)) {
    if (!view)
      fail(indexed(key, views.size()), "is not an object");
    views.push_back(view.value_or(*this));
  }
  return views;
}

std::vector<std::optional<JsonFields>> JsonFields::objectsOrNulls(const char *key, size_t maxElements) {
  std::vector<std::optional<JsonFields>> views;
  if (const json *values = list(key, maxElements))
    for (const json &value : *values) {
      views.emplace_back();
      if (!value.is_null())
        views.back().emplace(value, place + indexed(key, views.size() - 1) + ".", *error);
    }
  return views;
}

std::string JsonFields::raw(const char *key) const {
  return has(key) ? (*node)[key].dump(-1, ' ', true, json::error_handler_t::replace) : "{}";
}

} // namespace k2c
