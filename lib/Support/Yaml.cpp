//===- Yaml.cpp - YAML text with bounds and places ------------------------===//
//
// Two readings of one text: an event handler that refuses what k2c does not
// accept, before any node exists; then yaml-cpp's own loader, whose nodes carry
// their marks.
//
//===----------------------------------------------------------------------===//

#include "k2c/Support/Yaml.h"
#include "base/Json.h"
#include "base/Utf8.h"
#include "k2c/Support/Join.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <yaml-cpp/eventhandler.h>

using namespace k2c;

namespace {

std::string placeOf(const std::string &file, const YAML::Mark &mark) {
  if (mark.is_null())
    return file;
  return file + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

/// Refuses anchors, aliases, tags, depth, duplicate keys and what is no text by
/// throwing an Error, caught in parseYaml.
class Guard : public YAML::EventHandler {
public:
  Guard(const std::string &file, int maxDepth) : file(file), maxDepth(maxDepth) {}

  void OnDocumentStart(const YAML::Mark &) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override { value(mark, anchor, nullptr); }
  void OnAlias(const YAML::Mark &, YAML::anchor_t) override {} // its anchor, which stands before it, was refused
  void OnScalar(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                const std::string &text) override {
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(mark, "tag '" + shortened(tag) + "' is not accepted");
    std::string line = text;
    line.erase(std::remove_if(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }), line.end());
    if (printable(line) != line)
      throw Error{placeOf(file, mark), "'" + shortened(line) + "' is not UTF-8, or controls a terminal",
                  "write it in printable characters"};
    value(mark, anchor, &text);
  }
  void OnSequenceStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, false);
  }
  void OnSequenceEnd() override { frames.pop_back(); }
  void OnMapStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, true);
  }
  void OnMapEnd() override { frames.pop_back(); }

private:
  struct Frame {
    bool isMap;
    bool expectsKey;
    std::set<std::string> keys;
  };

  [[noreturn]] void refuse(const YAML::Mark &mark, std::string message) {
    throw Error{placeOf(file, mark), std::move(message), "write the value out"};
  }

  void value(const YAML::Mark &mark, YAML::anchor_t anchor, const std::string *scalar) {
    if (anchor)
      refuse(mark, "anchors are not accepted");
    if (frames.empty() || !frames.back().isMap)
      return;
    Frame &frame = frames.back();
    if (frame.expectsKey) {
      if (!scalar)
        refuse(mark, "a key must be a plain word");
      if (!frame.keys.insert(*scalar).second)
        throw Error{placeOf(file, mark), "key '" + shortened(*scalar) + "' occurs twice in one mapping",
                    "remove one of the two"};
    }
    frame.expectsKey = !frame.expectsKey;
  }

  void open(const YAML::Mark &mark, YAML::anchor_t anchor, bool isMap) {
    value(mark, anchor, nullptr);
    if (static_cast<int>(frames.size()) >= maxDepth)
      throw Error{placeOf(file, mark), "YAML is nested deeper than " + std::to_string(maxDepth) + " levels",
                  "flatten the file"};
    frames.push_back({isMap, isMap, {}});
  }

  const std::string &file;
  int maxDepth;
  std::vector<Frame> frames;
};

template <class T>
Expected<T> scalarAs(const YamlDocument &document, const YAML::Node &node, const std::string &what, const char *kind) {
  T value{};
  if (node.IsDefined() && node.IsScalar() && YAML::convert<T>::decode(node, value))
    return value;
  std::string got = !node.IsDefined() ? "nothing"
                    : node.IsScalar() ? "'" + shortened(node.Scalar()) + "'"
                                      : "a collection";
  return document.error(node, what + " must be " + kind + ", got " + got);
}

} // namespace

std::string YamlDocument::place(const YAML::Node &node) const {
  return node.IsDefined() ? placeOf(file, node.Mark()) : file;
}

Error YamlDocument::error(const YAML::Node &node, std::string message, std::string remedy) const {
  return Error{place(node), std::move(message), std::move(remedy)};
}

Expected<std::string> YamlDocument::asString(const YAML::Node &node, const std::string &what) const {
  return scalarAs<std::string>(*this, node, what, "a word");
}
Expected<int64_t> YamlDocument::asInt(const YAML::Node &node, const std::string &what) const {
  return scalarAs<int64_t>(*this, node, what, "a whole number");
}
Expected<double> YamlDocument::asDouble(const YAML::Node &node, const std::string &what) const {
  return scalarAs<double>(*this, node, what, "a number");
}

Status YamlDocument::checkKeys(const YAML::Node &node, const std::string &what,
                               const std::vector<std::string> &known) const {
  if (!node.IsMap())
    return error(node, what + " must be a mapping");
  for (const auto &entry : node)
    if (std::find(known.begin(), known.end(), entry.first.Scalar()) == known.end())
      return error(entry.first, what + " has no key '" + shortened(entry.first.Scalar()) + "'",
                   "the keys are " + joined(known));
  return Status::success();
}

Expected<YamlDocument> k2c::parseYaml(const std::string &text, std::string file, const YamlLimits &limits) {
  if (text.size() > limits.maxBytes)
    return Error{file,
                 "YAML text has " + std::to_string(text.size()) + " bytes, more than the " +
                     std::to_string(limits.maxBytes) + " accepted",
                 ""};
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Guard guard(file, limits.maxDepth);
    if (!parser.HandleNextDocument(guard))
      return Error{file, "the YAML file is empty", ""};
    if (parser.HandleNextDocument(guard))
      return Error{file, "the YAML file holds more than one document", "split it"};
    YAML::Node root = YAML::Load(text);
    return YamlDocument{std::move(file), root};
  } catch (const Error &error) {
    return error;
  } catch (const YAML::Exception &error) {
    return Error{placeOf(file, error.mark), "not YAML: " + shortened(error.msg, maxQuoted), ""};
  }
}
