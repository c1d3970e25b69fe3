//===- Xml.cpp - The XML that topology files need ---------------------------===//
//
// One pass with a stack of open elements, so that depth costs no call stack.
//
//===----------------------------------------------------------------------===//
#include "Xml.h"
#include "Importers.h"
#include "base/Utf8.h"

#include <cctype>
#include <optional>

namespace k2c::cluster {

namespace {

constexpr size_t mostDepth = 32, mostElements = 65536, mostAttributes = 32;

class XmlReader {
public:
  XmlReader(const std::string &text, const std::string &file) : text(text), file(file) {}

  Expected<XmlElement> read() {
    while (!mistake && skipToTag())
      readTag();
    if (!mistake && !open.empty())
      fail("element '" + shortened(open.back().name) + "' of " + open.back().where + " is not closed");
    if (!mistake && !root)
      fail("no element here");
    if (mistake)
      return std::move(*mistake);
    return std::move(*root);
  }

private:
  std::string place() const { return placeOf(file, line, at - lineBegin + 1); }
  void fail(std::string message, std::string remedy = "") {
    if (!mistake)
      mistake = Error{place(), std::move(message), std::move(remedy)};
  }

  bool starts(const char *word) const { return text.compare(at, std::char_traits<char>::length(word), word) == 0; }
  char peek() const { return at < text.size() ? text[at] : '\0'; }
  void advance() {
    if (text[at++] == '\n') {
      ++line;
      lineBegin = at;
    }
  }
  void skipSpace() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
      advance();
  }
  /// Past the next `end`; false at the end of the text.
  bool skipPast(const char *end) {
    while (at < text.size() && !starts(end))
      advance();
    for (const char *c = end; *c && at < text.size(); ++c)
      advance();
    return at < text.size();
  }

  /// At the next '<' of an element. False at the end or at a mistake.
  bool skipToTag() {
    for (skipSpace(); at < text.size(); skipSpace()) {
      bool comment = starts("<!--");
      if (!comment && !(starts("<?xml") && !root && open.empty()))
        break;
      if (!skipPast(comment ? "-->" : "?>"))
        fail(comment ? "a comment without end" : "a declaration without end");
    }
    if (at >= text.size() || mistake)
      return false;
    if (peek() != '<')
      fail("text is not accepted between elements", "topologies are elements and attributes");
    else if (starts("<!") || starts("<?"))
      fail("document types, entities, CDATA and instructions are not accepted", "write the values out");
    else if (root)
      fail("a second root element");
    return !mistake;
  }

  std::string readName() {
    size_t begin = at;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' || peek() == '-' || peek() == '.')
      advance();
    if (begin == at)
      fail("a name was expected");
    return text.substr(begin, at - begin);
  }

  void expect(char c) {
    if (peek() != c)
      return fail(std::string("'") + c + "' was expected");
    advance();
  }

  void readAttribute(XmlElement &element) {
    std::string name = readName();
    if (mistake)
      return;
    if (element.attribute(name))
      return fail("attribute '" + shortened(name) + "' occurs twice");
    if (element.attributes.size() == mostAttributes)
      return fail("more than " + std::to_string(mostAttributes) + " attributes");
    skipSpace();
    expect('=');
    skipSpace();
    char quote = peek();
    if (!mistake && quote != '"' && quote != '\'')
      return fail("a value in quotes was expected");
    if (mistake)
      return;
    advance();
    size_t begin = at;
    for (; at < text.size() && peek() != quote; advance()) {
      if (peek() == '&')
        return fail("entities are not accepted", "write the value out");
      if (peek() == '<' || peek() == '\0')
        return fail("not a character of a value");
    }
    std::string value = text.substr(begin, at - begin);
    expect(quote);
    element.attributes.emplace_back(std::move(name), std::move(value));
  }

  void close(XmlElement element) {
    if (open.empty())
      root = std::move(element);
    else
      open.back().children.push_back(std::move(element));
  }

  void readEnd() {
    advance();
    std::string name = readName();
    skipSpace();
    if (!mistake && (open.empty() || open.back().name != name))
      return fail("'" + shortened(name) + "' is closed, but " +
                  (open.empty() ? "nothing is open"
                                : "'" + shortened(open.back().name) + "' of " + open.back().where + " is open"));
    expect('>');
    if (mistake)
      return;
    XmlElement element = std::move(open.back());
    open.pop_back();
    close(std::move(element));
  }

  void readTag() {
    XmlElement element;
    element.where = place();
    advance();
    if (peek() == '/')
      return readEnd();
    if (++elements > mostElements)
      return fail("more than " + std::to_string(mostElements) + " elements");
    if (open.size() == mostDepth)
      return fail("elements are nested deeper than " + std::to_string(mostDepth) + " levels");
    element.name = readName();
    for (skipSpace(); !mistake && peek() != '>' && peek() != '/'; skipSpace())
      readAttribute(element);
    bool empty = peek() == '/';
    if (empty && !mistake)
      advance();
    expect('>');
    if (mistake)
      return;
    if (empty)
      close(std::move(element));
    else
      open.push_back(std::move(element));
  }

  const std::string &text, &file;
  size_t at = 0, line = 1, lineBegin = 0, elements = 0;
  std::vector<XmlElement> open;
  std::optional<XmlElement> root;
  std::optional<Error> mistake;
};

} // namespace

const std::string *XmlElement::attribute(const std::string &name) const {
  for (const auto &[key, value] : attributes)
    if (key == name)
      return &value;
  return nullptr;
}

Expected<XmlElement> parseXml(const std::string &text, const std::string &file) { return XmlReader(text, file).read(); }

} // namespace k2c::cluster
