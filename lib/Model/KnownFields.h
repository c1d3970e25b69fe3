//===- KnownFields.h - the fields of a family that are known so far ------===//
#ifndef K2C_LIB_MODEL_KNOWNFIELDS_H
#define K2C_LIB_MODEL_KNOWNFIELDS_H

#include "Family.h"
#include <nlohmann/json.hpp>
#include <set>

namespace k2c {

/// Values of the fields of a family, as config.json would say them; layers that a list names are an array.
class KnownFields {
public:
  explicit KnownFields(const Family &family) : family(&family) {}

  /// Whether a key of config.json sets it.
  bool isField(const std::string &name) const;
  bool has(const std::string &field) const { return values.count(field); }
  const nlohmann::json &value(const std::string &field) const { return values.at(field); }

  /// The value of a text that is a field; other texts, and fields that are known, stay as they are.
  void know(const std::string &text, const nlohmann::json &value);
  /// The value of an expression of known fields.
  std::optional<int64_t> integer(const std::string &expression) const;
  /// Knows the only field of the expression that is not known, where it decides whether that is `value`; returns
  /// whether it did.
  bool solve(const std::string &expression, int64_t value);

private:
  /// The value of an expression in which fields that are not known are `otherwise`; `missing` receives their names.
  std::optional<int64_t> evaluateWith(const std::string &expression, int64_t otherwise,
                                      std::set<std::string> &missing) const;

  const Family *family;
  std::map<std::string, nlohmann::json> values;
};

/// Knows what says which layers are of which kind: where runs of layers end, after how many layers a kind comes again,
/// and the lists of layers that are excepted.
void knowLayers(KnownFields &fields, const Family &family, const ModelSpec &spec);

} // namespace k2c

#endif // K2C_LIB_MODEL_KNOWNFIELDS_H
