//===- Json.cpp - JSON text with bounds and places ------------------------===//
//
// Parsing is nlohmann's, with a callback that watches depth and keys. Places
// are found afterwards by walking the text along a pointer: the text is known
// to be well-formed then, so the walk only matches brackets and skips strings.
//
//===----------------------------------------------------------------------===//

#include "base/Json.h"
#include "base/File.h"
#include "base/JsonText.h"
#include "base/Utf8.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <vector>

using namespace k2c;
using nlohmann::json;

namespace {

LineColumn lineColumn(std::string_view text, size_t offset) {
  LineColumn at;
  for (size_t i = 0; i < offset && i < text.size(); ++i) {
    ++at.column;
    if (text[i] == '\n')
      at = {at.line + 1, 1};
  }
  return at;
}

std::string placeOf(const std::string &file, LineColumn at) {
  return file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

/// Walks well-formed JSON text.
class Walker {
public:
  explicit Walker(std::string_view text) : text(text) {}

  size_t pos = 0;

  void space() {
    while (pos < text.size() && std::strchr(" \t\r\n", text[pos]) && text[pos])
      ++pos;
  }
  bool at(char c) const { return pos < text.size() && text[pos] == c; }

  /// Reads the string at pos and returns its decoded value.
  std::string string() {
    size_t begin = pos++;
    while (pos < text.size() && text[pos] != '"')
      pos += text[pos] == '\\' ? 2 : 1;
    ++pos;
    json decoded = json::parse(text.substr(begin, pos - begin), nullptr, false);
    return decoded.is_string() ? decoded.get<std::string>() : std::string();
  }

  /// Skips the value at pos by matching brackets.
  void skip() {
    int depth = 0;
    do {
      space();
      if (pos >= text.size())
        return;
      char c = text[pos];
      if (c == '"')
        string();
      else if (c == '{' || c == '[')
        ++depth, ++pos;
      else if (c == '}' || c == ']')
        --depth, ++pos;
      else if (c == ',' || c == ':')
        ++pos;
      else
        while (pos < text.size() && !std::strchr(" \t\r\n,]}:", text[pos]))
          ++pos;
    } while (depth > 0);
  }

  /// Moves into member `key` of the object or array at pos; `place` becomes the
  /// start of the key or element.
  bool enter(const std::string &key, size_t &place) {
    space();
    bool isObject = at('{');
    if (!isObject && !at('['))
      return false;
    char close = isObject ? '}' : ']';
    ++pos;
    for (size_t index = 0;; ++index) {
      space();
      if (pos >= text.size() || at(close))
        return false;
      size_t begin = pos;
      bool found = isObject ? string() == key : std::to_string(index) == key;
      if (isObject) {
        space();
        ++pos; // ':'
        space();
      }
      if (found)
        return place = begin, true;
      skip();
      space();
      if (at(','))
        ++pos;
    }
  }

private:
  std::string_view text;
};

/// Watches the parser for nesting beyond the limit, and for a key that occurs twice in one object, of which it would
/// keep the last: readers disagree about which of the two counts.
class Watcher {
public:
  Watcher(const std::string &file, int maxDepth, const json::parser_callback_t &take)
      : file(file), maxDepth(maxDepth), take(take) {}

  /// Whether the parser keeps what it read. Throws ParseError.
  bool operator()(int depth, json::parse_event_t event, json &parsed) {
    using Event = json::parse_event_t;
    const bool begins = event == Event::object_start || event == Event::array_start;
    if (begins && depth >= maxDepth)
      throw ParseError{
          {file, "JSON is nested deeper than " + std::to_string(maxDepth) + " levels", "flatten the file"}};
    const bool keeps = !take || take(depth, event, parsed);
    if (event == Event::object_end || event == Event::array_end) {
      levels.pop_back();
    } else if (event == Event::key) {
      if (keeps)
        enter(parsed.get_ref<const std::string &>());
    } else {
      if (!levels.empty())
        ++levels.back().element;
      if (begins)
        levels.emplace_back();
    }
    return keeps;
  }

private:
  struct Level {
    size_t element = 0; ///< of a list; counts from 1
    std::set<std::string> keys;
    const std::string *key = nullptr; ///< the present one; of an object
  };

  void enter(const std::string &key) {
    const auto [entry, isNew] = levels.back().keys.insert(key);
    levels.back().key = &*entry;
    if (!isNew)
      throw ParseError{{file + ": " + path(), "occurs twice in its object", "remove one of the two"}};
  }

  std::string path() const {
    std::string text;
    for (const Level &level : levels)
      text += !level.key ? "[" + std::to_string(level.element - 1) + "]"
                         : (text.empty() ? "" : ".") + shortened(*level.key, maxOfKey);
    return text;
  }

  const std::string &file;
  const int maxDepth;
  const json::parser_callback_t &take;
  std::vector<Level> levels;
};

std::vector<std::string> splitPointer(std::string_view pointer) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      keys.emplace_back();
    } else if (keys.empty()) {
      keys.emplace_back(1, pointer[i]);
    } else if (pointer[i] == '~' && i + 1 < pointer.size()) {
      keys.back() += pointer[++i] == '1' ? '/' : '~';
    } else {
      keys.back() += pointer[i];
    }
  }
  return keys;
}

} // namespace

LineColumn JsonDocument::locate(std::string_view pointer) const {
  Walker walker(text_);
  walker.space();
  size_t place = walker.pos;
  for (const std::string &key : splitPointer(pointer))
    if (!walker.enter(key, place))
      break;
  return lineColumn(text_, place);
}

std::string JsonDocument::place(std::string_view pointer) const { return placeOf(file_, locate(pointer)); }

Expected<json> k2c::parseJsonValue(std::string_view text, const std::string &file, int maxDepth,
                                   const json::parser_callback_t &take) {
  // The parser would take a NUL byte for the end of the text, whatever follows.
  if (size_t nul = text.find('\0'); nul != text.npos)
    return Error{placeOf(file, lineColumn(text, nul)), "not JSON: a NUL byte", ""};
  try {
    return json::parse(text.begin(), text.end(), Watcher(file, maxDepth, take));
  } catch (ParseError &failure) {
    return std::move(failure.error);
  } catch (const json::parse_error &error) {
    size_t offset = error.byte > 0 ? error.byte - 1 : 0;
    std::string why = parserText(error);
    if (size_t cut = why.find("syntax error"); cut != std::string::npos)
      why = why.substr(cut);
    return Error{placeOf(file, lineColumn(text, offset)), "not JSON: " + why, ""};
  } catch (const json::exception &error) {
    return Error{file, "not JSON: " + parserText(error), ""};
  }
}

Expected<JsonDocument> k2c::parseJson(std::string text, std::string file, const JsonLimits &limits) {
  if (text.size() > limits.maxBytes)
    return Error{file,
                 "JSON text has " + std::to_string(text.size()) + " bytes, more than the " +
                     std::to_string(limits.maxBytes) + " accepted",
                 ""};
  Expected<json> root = parseJsonValue(text, file, limits.maxDepth);
  if (!root)
    return root.takeError();
  return JsonDocument(std::move(file), std::move(text), std::move(*root));
}

Expected<std::string> k2c::readTextFile(const std::string &path, size_t maxBytes) {
  // O_NONBLOCK: opening a fifo must not wait for a writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0)
    return Error{path, std::string("cannot open: ") + std::strerror(errno), ""};
  struct stat info{};
  if (::fstat(file.number, &info) != 0 || !S_ISREG(info.st_mode))
    return Error{path, "not a regular file", "name a file (symbolic links are followed)"};
  size_t size = static_cast<size_t>(info.st_size);
  if (size > maxBytes)
    return Error{path,
                 "file has " + std::to_string(size) + " bytes, more than the " + std::to_string(maxBytes) + " accepted",
                 ""};
  std::string text(size, '\0');
  const BytesRead read = readAt(file.number, 0, text.data(), info.st_size);
  if (read.count != info.st_size)
    return Error{path, "read " + std::to_string(read.count) + " of " + std::to_string(size) + " bytes", ""};
  return text;
}

Expected<JsonDocument> k2c::readJsonFile(const std::string &path, const JsonLimits &limits) {
  Expected<std::string> text = readTextFile(path, limits.maxBytes);
  if (!text)
    return text.takeError();
  return parseJson(std::move(*text), path, limits);
}

std::string k2c::escapeJsonPointer(std::string_view key) {
  std::string out;
  for (char c : key)
    out += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  return out;
}
