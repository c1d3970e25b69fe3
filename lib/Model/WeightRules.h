//===- WeightRules.h - the weight families of a model ---------------------===//
#ifndef K2C_LIB_MODEL_WEIGHTRULES_H
#define K2C_LIB_MODEL_WEIGHTRULES_H

#include "Fields.h"

namespace k2c {

/// Fills spec.weights and spec.ignoredTensors from a family's rules; layers,
/// storage and quantization are set already. Checks that no count overflows.
Status applyWeightRules(ModelSpec &spec, const Family &family, const Fields &fields, const std::string &configFile);

} // namespace k2c

#endif // K2C_LIB_MODEL_WEIGHTRULES_H
