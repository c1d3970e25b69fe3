//===- Mutator.cpp - files that lie ---------------------------------------===//
#include "Mutator.h"

namespace k2c::test {

/// Numbers at the edges of what fits somewhere, and texts that are no numbers of JSON.
static const char *const hostileTexts[] = {"0",
                                           "-1",
                                           "1",
                                           "2",
                                           "3",
                                           "65537",
                                           "2147483648",
                                           "4294967296",
                                           "9007199254740993",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "18446744073709551615",
                                           "1e308",
                                           "1e999",
                                           "-0.0",
                                           "0.5",
                                           "NaN",
                                           "Infinity",
                                           "null",
                                           "true",
                                           "[]",
                                           "{}",
                                           "\"\"",
                                           "\"x\"",
                                           "\"\\ud800\"",
                                           "\"\xff\xfe\"",
                                           "\"\\u0000\"",
                                           "\"../../etc/passwd\"",
                                           "[1,2,3]",
                                           "{\"a\":{\"b\":[]}}"};

/// A node of the document, deeper ones as often as shallow ones.
Mutator::Json &Mutator::anyNode(Json &root) {
  Json *node = &root;
  while (node->is_structured() && !node->empty() && below(5) != 0) {
    auto at = node->begin();
    std::advance(at, long(below(node->size())));
    node = &*at;
  }
  return *node;
}

/// A string that becomes `text` when the document is printed.
std::string Mutator::raw(std::string text) {
  spliced.push_back(std::move(text));
  return "@raw" + std::to_string(spliced.size() - 1) + "@";
}

void Mutator::changeObject(Json &object) {
  auto at = object.begin();
  std::advance(at, long(below(object.size())));
  const std::string key = at.key();
  const Json value = at.value();
  switch (below(5)) {
  case 0:
    object.erase(at);
    break;
  case 1: // renamed
    object.erase(at);
    object[key + "x"] = value;
    break;
  case 2: // a key twice, with another value or the same
    object[raw("\"" + key + "\"")] = below(2) ? value : Json(raw(hostileTexts[below(std::size(hostileTexts))]));
    break;
  case 3:
    object["surprise"] = value;
    break;
  default: { // two values change places
    auto other = object.begin();
    std::advance(other, long(below(object.size())));
    std::swap(at.value(), other.value());
  }
  }
}

void Mutator::change(Json &root) {
  Json &node = anyNode(root);
  if (node.is_object() && !node.empty())
    return changeObject(node);
  if (node.is_array() && !node.empty() && below(4) != 0) {
    if (below(2))
      node.erase(below(node.size()));
    else
      node.push_back(node[below(node.size())]);
    return;
  }
  if (node.is_number_integer() && below(2)) {
    const int64_t number = node.get<int64_t>();
    const int64_t changes[] = {1, -1, number, 999 * (number & 0xffffffff), -2 * (number & 0xffffffff)};
    node = int64_t(uint64_t(number) + uint64_t(changes[below(std::size(changes))])); // wraps around
    return;
  }
  if (node.is_string() && below(3) == 0) {
    node = node.get<std::string>().substr(0, below(node.get<std::string>().size() + 1)) + (below(2) ? "" : "\u00e9x");
    return;
  }
  if (below(12) == 0) {
    const size_t depth = below(2) ? 33 : 20000;
    node = raw(std::string(depth, '[') + (below(2) ? std::string(depth, ']') : ""));
    return;
  }
  node = raw(hostileTexts[below(std::size(hostileTexts))]);
}

std::string Mutator::json(const std::string &text) {
  if (below(8) == 0)
    return bytes(text);
  Json document = Json::parse(text);
  spliced.clear();
  for (size_t changes = 1 + below(2); changes > 0; --changes)
    change(document);
  std::string result = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t i = 0; i < spliced.size(); ++i) {
    const std::string quoted = "\"@raw" + std::to_string(i) + "@\"";
    if (size_t at = result.find(quoted); at != result.npos)
      result.replace(at, quoted.size(), spliced[i]);
  }
  return result;
}

std::string Mutator::safetensors(const std::string &file) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | uint8_t(file[size_t(i)]);
  std::string header = file.substr(8, length);
  const std::string data = file.substr(8 + length);
  if (below(6) == 0)
    return file.substr(0, below(2) ? below(16) : below(file.size()));
  if (below(6) == 0) {
    const uint64_t lengths[] = {0,    1, 2, length - 1, length + 1, file.size(), uint64_t(1) << 31, uint64_t(1) << 63,
                                ~0ull};
    length = lengths[below(std::size(lengths))];
  } else {
    header = json(header);
    length = header.size();
  }
  std::string result;
  for (int i = 0; i < 8; ++i)
    result += char(length >> (8 * i));
  return result + header + data;
}

std::string Mutator::lines(const std::string &text) {
  size_t begin = below(text.size());
  begin = text.rfind('\n', begin) + 1; // npos + 1 is the beginning
  const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
  const std::string line = text.substr(begin, end - begin);
  const std::string changed[] = {"",
                                 line + line,
                                 "\n" + line,
                                 line.substr(line.size() / 2),
                                 bytes(line),
                                 " " + line,
                                 line.substr(0, line.find(' ')) + " 4294967296\n",
                                 "=" + line};
  return text.substr(0, begin) + changed[below(std::size(changed))] + text.substr(end);
}

std::string Mutator::bytes(std::string text) {
  static const std::string likely("{}[]\",:0123456789.-e/n\\ \x80\xff\0", 26);
  if (below(4) == 0)
    return text.substr(0, below(text.size() + 1));
  for (size_t changes = 1 + below(4); changes > 0 && !text.empty(); --changes) {
    const size_t at = below(text.size());
    switch (below(3)) {
    case 0:
      text[at] = likely[below(likely.size())];
      break;
    case 1:
      text.erase(at, 1 + below(8));
      break;
    default:
      text.insert(at, text.substr(at, 1 + below(20)));
    }
  }
  return text;
}

} // namespace k2c::test
