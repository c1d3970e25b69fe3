//===- ReadConfig.h - config.json to ModelSpec ----------------------------===//
#ifndef K2C_LIB_MODEL_READCONFIG_H
#define K2C_LIB_MODEL_READCONFIG_H

#include "ConfigFile.h"
#include "Family.h"

namespace k2c {

/// The model that a config.json describes by the rules of its family. Error: a key that is missing, contradicts another
/// or, to compile, is in neither the family nor `harmless`.
Expected<ModelSpec> readConfig(ConfigFile &config, const Family &family, const HarmlessKeys &harmless,
                               LoadPurpose purpose);

/// One id or a list of ids; null is none.
Expected<std::vector<int64_t>> readIds(ConfigFile &config, const std::string &pointer, int64_t vocab);

} // namespace k2c

#endif // K2C_LIB_MODEL_READCONFIG_H
