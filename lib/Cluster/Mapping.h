//===- Mapping.h - A mapping of a topology file, read key by key ----------===//
#ifndef K2C_LIB_CLUSTER_MAPPING_H
#define K2C_LIB_CLUSTER_MAPPING_H

#include "base/Utf8.h"
#include "k2c/Cluster/Quantity.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Support/YamlMapping.h"

namespace k2c::cluster {

/// Devices that a topology may have.
inline constexpr int64_t maxRanks = 1 << 20;

/// A mapping of a topology file: counts, and quantities with their sources.
class Mapping : public YamlMapping {
public:
  using YamlMapping::YamlMapping;

  void count(const char *key, int64_t &value) {
    YAML::Node child = at(key);
    if (mistake)
      return;
    keep(document.asInt(child, key), value);
    if (!mistake && (value < 1 || value > maxCount))
      fail(child, std::string(key) + " is " + std::to_string(value) + ", must be 1 to " + std::to_string(maxCount));
  }
  /// `key: 48 KiB` or `key: {value: 48 KiB, source: "..."}`.
  double quantity(const char *key, Dimension dimension, std::string &source) {
    YAML::Node value = sourced(key, source);
    return mistake ? 0 : scalar(value, key, dimension);
  }
  template <class Tag> void number(const char *key, Dimension dimension, Sourced<Quantity<Tag, double>> &to) {
    to.value = Quantity<Tag, double>(quantity(key, dimension, to.source));
  }
  void number(const char *key, Sourced<Bytes> &to) {
    to.value = Bytes(static_cast<int64_t>(quantity(key, Dimension::Bytes, to.source)));
  }

  /// A number without unit, above 0 and at most 1, with or without a source.
  void share(const char *key, Sourced<double> &to) {
    YAML::Node number = sourced(key, to.source);
    if (mistake)
      return;
    keep(document.asDouble(number, key), to.value);
    if (!mistake && !(to.value > 0 && to.value <= 1))
      fail(number, std::string(key) + " is '" + shortened(number.Scalar()) + "', must be above 0 and at most 1");
  }

  /// A whole number from 0 to `most`, with or without a source.
  void whole(const char *key, int64_t most, Sourced<int64_t> &to) {
    YAML::Node number = sourced(key, to.source);
    if (mistake)
      return;
    keep(document.asInt(number, key), to.value);
    if (!mistake && (to.value < 0 || to.value > most))
      fail(number, std::string(key) + " is " + std::to_string(to.value) + ", must be 0 to " + std::to_string(most));
  }

  static constexpr int64_t maxCount = 1 << 20;

private:
  YAML::Node sourced(const char *key, std::string &source) {
    YAML::Node child = at(key);
    if (mistake)
      return child;
    source = "stated in " + document.place(child);
    if (!child.IsMap())
      return child;
    Mapping pair(document, child, key, {"value", "source"});
    if (pair.has("source"))
      pair.text("source", source);
    YAML::Node value = pair.at("value");
    take(pair);
    return value;
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
};

/// Reads `measured` of a device, which is at `node`.
void readCalibration(Mapping &device, const YAML::Node &node, Calibration &calibration);

} // namespace k2c::cluster

#endif // K2C_LIB_CLUSTER_MAPPING_H
