//===- Mapping.h - A mapping of a topology file, read key by key ----------===//
#ifndef K2C_LIB_CLUSTER_MAPPING_H
#define K2C_LIB_CLUSTER_MAPPING_H

#include "base/Utf8.h"
#include "k2c/Cluster/Quantity.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Support/Yaml.h"

namespace k2c::cluster {

/// A mapping of the document; remembers the first mistake.
class Mapping {
public:
  Mapping(const YamlDocument &document, YAML::Node node, std::string what, const std::vector<std::string> &known)
      : document(document), node(std::move(node)), what(std::move(what)) {
    keep(document.checkKeys(this->node, this->what, known));
  }

  bool has(const char *key) const { return node.IsMap() && node[key]; }
  YAML::Node at(const char *key) {
    if (has(key))
      return node[key];
    keep(document.error(node, what + " lacks '" + key + "'"));
    return YAML::Node();
  }

  void text(const char *key, std::string &value) {
    if (YAML::Node child = at(key); !mistake)
      keep(document.asString(child, key), value);
  }
  void count(const char *key, int64_t &value) {
    YAML::Node child = at(key);
    if (mistake)
      return;
    keep(document.asInt(child, key), value);
    if (!mistake && (value < 1 || value > maxCount))
      keep(document.error(child, std::string(key) + " is " + std::to_string(value) + ", must be 1 to " +
                                     std::to_string(maxCount)));
  }
  /// `key: 48 KiB` or `key: {value: 48 KiB, source: "..."}`.
  double quantity(const char *key, Dimension dimension, std::string &source) {
    YAML::Node child = at(key);
    if (mistake)
      return 0;
    source = "stated in " + document.place(child);
    if (!child.IsMap())
      return scalar(child, key, dimension);
    Mapping pair(document, child, key, {"value", "source"});
    if (pair.has("source"))
      pair.text("source", source);
    double value = pair.mistake ? 0 : scalar(pair.at("value"), key, dimension);
    if (pair.mistake)
      keep(std::move(*pair.mistake));
    return value;
  }
  template <class Tag> void number(const char *key, Dimension dimension, Sourced<Quantity<Tag, double>> &to) {
    to.value = Quantity<Tag, double>(quantity(key, dimension, to.source));
  }
  void number(const char *key, Sourced<Bytes> &to) {
    to.value = Bytes(static_cast<int64_t>(quantity(key, Dimension::Bytes, to.source)));
  }

  /// A number without unit, above 0 and at most 1, with or without a source.
  void share(const char *key, Sourced<double> &to) {
    YAML::Node child = at(key);
    if (mistake)
      return;
    to.source = "stated in " + document.place(child);
    YAML::Node number = child;
    if (child.IsMap()) {
      Mapping pair(document, child, key, {"value", "source"});
      if (pair.has("source"))
        pair.text("source", to.source);
      number = pair.at("value");
      if (pair.mistake)
        return keep(std::move(*pair.mistake));
    }
    keep(document.asDouble(number, key), to.value);
    if (!mistake && !(to.value > 0 && to.value <= 1))
      keep(document.error(number, std::string(key) + " is '" + shortened(number.Scalar()) +
                                      "', must be above 0 and at most 1"));
  }

  void keep(Status status) {
    if (!status && !mistake)
      mistake = status.takeError();
  }
  std::optional<Error> mistake;
  static constexpr int64_t maxCount = 1 << 20;

private:
  template <class T> void keep(Expected<T> result, T &value) {
    if (result)
      value = std::move(*result);
    else
      keep(Status(result.takeError()));
  }
  double scalar(const YAML::Node &child, const char *key, Dimension dimension) {
    std::string text;
    keep(document.asString(child, key), text);
    if (mistake)
      return 0;
    Expected<double> value = parseQuantity(text, dimension, document.place(child));
    if (value && *value <= 9e18)
      return *value;
    keep(value ? Status(document.error(child, "'" + shortened(text) + "' is too large")) : Status(value.takeError()));
    return 0;
  }

  const YamlDocument &document;
  YAML::Node node;
  std::string what;
};

/// Reads `measured` of a device.
Status readCalibration(const YamlDocument &document, const YAML::Node &node, Calibration &calibration);

} // namespace k2c::cluster

#endif // K2C_LIB_CLUSTER_MAPPING_H
