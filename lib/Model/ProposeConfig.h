//===- ProposeConfig.h - config.json of a description --------------------===//
#ifndef K2C_LIB_MODEL_PROPOSECONFIG_H
#define K2C_LIB_MODEL_PROPOSECONFIG_H

#include "Family.h"
#include <nlohmann/json.hpp>

namespace k2c {

/// What config.json might say for `family` to describe `spec`, the likeliest first: several where a word may be either.
/// Of `spec` count the attention firstAttention and the table firstRope. Whether one of them does describe it tells
/// only reading it.
std::vector<nlohmann::json> proposeConfigs(const Family &family, const ModelSpec &spec);

} // namespace k2c

#endif // K2C_LIB_MODEL_PROPOSECONFIG_H
