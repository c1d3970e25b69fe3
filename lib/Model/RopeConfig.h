//===- RopeConfig.h - the rotary embedding of a config.json ---------------===//
#ifndef K2C_LIB_MODEL_ROPECONFIG_H
#define K2C_LIB_MODEL_ROPECONFIG_H

#include "ConfigFile.h"
#include "Fields.h"

namespace k2c {

/// Reads rope_theta with rope_scaling, or rope_parameters. `section` is the family's: dims, pairs, default_theta,
/// attention_scale; with `theta` in it the table has that base and is not scaled, whatever these keys say.
Expected<RopeSpec> readRope(ConfigFile &config, Section section, int64_t maxPosition);

} // namespace k2c

#endif // K2C_LIB_MODEL_ROPECONFIG_H
