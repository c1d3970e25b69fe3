//===- Yaml.h - YAML text with bounds and places --------------------------===//
//
// The YAML k2c reads is plain data: mappings, sequences and scalars. Anchors,
// aliases, tags, several documents and duplicate keys are refused, so a file
// means what it shows.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_SUPPORT_YAML_H
#define K2C_SUPPORT_YAML_H

#include "base/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <yaml-cpp/yaml.h>

namespace k2c {

struct YamlLimits {
  size_t maxBytes = size_t(4) << 20;
  int maxDepth = 32;
};

/// A parsed YAML text and its name.
struct YamlDocument {
  std::string file;
  YAML::Node root;

  /// "file:line:column" of a node.
  std::string place(const YAML::Node &node) const;
  /// An error at a node.
  Error error(const YAML::Node &node, std::string message, std::string remedy = "") const;

  /// The scalar at `node` as T; `what` names it in the error. No exception
  /// leaves.
  Expected<std::string> asString(const YAML::Node &node, const std::string &what) const;
  Expected<int64_t> asInt(const YAML::Node &node, const std::string &what) const;
  Expected<double> asDouble(const YAML::Node &node, const std::string &what) const;

  /// Checks that `node` is a mapping and that every key of it is one of
  /// `known`.
  Status checkKeys(const YAML::Node &node, const std::string &what, const std::vector<std::string> &known) const;
};

/// Parses `text`; `file` names it in errors.
Expected<YamlDocument> parseYaml(const std::string &text, std::string file, const YamlLimits &limits = {});

} // namespace k2c

#endif // K2C_SUPPORT_YAML_H
