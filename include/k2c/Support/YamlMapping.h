//===- YamlMapping.h - A mapping of a YAML text, read key by key ----------===//
#ifndef K2C_SUPPORT_YAMLMAPPING_H
#define K2C_SUPPORT_YAMLMAPPING_H

#include "k2c/Support/Yaml.h"

namespace k2c {

/// A mapping of a document. It remembers the first mistake and reads nothing after it, so that a reader of a file is a
/// list of assignments.
class YamlMapping {
public:
  YamlMapping(const YamlDocument &document, YAML::Node node, std::string what, const std::vector<std::string> &known)
      : document(document), node(std::move(node)), what(std::move(what)) {
    keep(document.checkKeys(this->node, this->what, known));
  }

  bool has(const char *key) const { return !mistake && node.IsMap() && node[key]; }
  /// The value of a key that must be there.
  YAML::Node at(const char *key) {
    if (has(key))
      return node[key];
    fail(node, what + " lacks '" + key + "'");
    return YAML::Node();
  }
  void text(const char *key, std::string &value) {
    if (YAML::Node child = at(key); !mistake)
      keep(document.asString(child, key), value);
  }

  void fail(const YAML::Node &place, std::string message, std::string remedy = "") {
    keep(Status(document.error(place, std::move(message), std::move(remedy))));
  }
  void keep(Status status) {
    if (!status && !mistake)
      mistake = status.takeError();
  }
  template <class T> void keep(Expected<T> result, T &value) {
    if (result)
      value = std::move(*result);
    else
      keep(Status(result.takeError()));
  }
  /// The mistake of a mapping within this one.
  void take(YamlMapping &inner) {
    if (inner.mistake)
      keep(Status(std::move(*inner.mistake)));
  }

  const YamlDocument &document;
  std::optional<Error> mistake;

protected:
  YAML::Node node;
  std::string what;
};

} // namespace k2c

#endif // K2C_SUPPORT_YAMLMAPPING_H
