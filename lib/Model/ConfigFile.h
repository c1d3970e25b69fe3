//===- ConfigFile.h - config.json while it is read ------------------------===//
//
// Every key that some reader asks for is remembered; what remains at the end
// is unknown and stops the import, unless it is harmless or the user ignores
// it.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_MODEL_CONFIGFILE_H
#define K2C_LIB_MODEL_CONFIGFILE_H

#include "Family.h"
#include "base/Json.h"
#include "k2c/Model/ModelSpec.h"

#include <set>

namespace k2c {

class ConfigFile {
public:
  ConfigFile(JsonDocument document, std::vector<std::string> ignoreKeys)
      : document(std::move(document)), ignoreKeys(std::move(ignoreKeys)) {}

  /// The value at a JSON pointer of one or two members, or null when absent.
  /// The key counts as known from now on.
  const nlohmann::json *get(const std::string &pointer);
  /// As get, but a JSON null counts as absent.
  const nlohmann::json *getNonNull(const std::string &pointer);

  /// An error at a key (or at the file, when the key is absent).
  Error error(const std::string &pointer, std::string message, std::string remedy = "") const;
  ConfigPlace place(const std::string &pointer) const;
  const std::string &file() const { return document.file(); }

  /// A whole number between `min` and `max`.
  Expected<int64_t> wholeNumber(const std::string &pointer, const nlohmann::json &value, int64_t min,
                                int64_t max) const;
  /// A finite number above 0.
  Expected<double> positiveNumber(const std::string &pointer, const nlohmann::json &value) const;

  /// Refuses the members of the object at `pointer` ("" is the root) that no
  /// reader asked for. Returns those that the user ignores.
  Expected<std::vector<std::string>> checkUnknown(const std::string &pointer, const HarmlessKeys &harmless);

private:
  JsonDocument document;
  std::vector<std::string> ignoreKeys;
  std::set<std::string> known;
};

/// "/rope_scaling/type" as users write it: "rope_scaling.type".
std::string keyName(const std::string &pointer);

} // namespace k2c

#endif // K2C_LIB_MODEL_CONFIGFILE_H
