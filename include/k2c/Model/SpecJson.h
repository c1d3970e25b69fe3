//===- SpecJson.h - what a program was compiled for, as JSON ---------------===//
#ifndef K2C_MODEL_SPECJSON_H
#define K2C_MODEL_SPECJSON_H

#include "k2c/Model/ModelSpec.h"
#include <nlohmann/json.hpp>

namespace k2c {

/// Everything of `spec` that decides a program: the manifest's "spec". Names of folders, token ids that end a text and
/// skipped keys are left out.
nlohmann::json specJson(const ModelSpec &spec);

/// The pointers of which two flat objects have different values, or one has none, in order.
std::vector<std::string> differingKeys(const nlohmann::json &ours, const nlohmann::json &theirs);
/// "attention.heads" for the pointer "/attention/heads".
std::string dottedKey(const std::string &pointer);

/// Compares `spec`, read from `file`, with the manifest's `compiled`. Error: the first key that differs, both values.
Status checkSameSpec(const ModelSpec &spec, const std::string &file, const nlohmann::json &compiled);

} // namespace k2c

#endif // K2C_MODEL_SPECJSON_H
