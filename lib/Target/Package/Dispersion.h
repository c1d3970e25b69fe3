//===- Dispersion.h - To how many nodes a token goes --------------------------===//
#ifndef K2C_LIB_TARGET_PACKAGE_DISPERSION_H
#define K2C_LIB_TARGET_PACKAGE_DISPERSION_H

#include "k2c/Target/Package.h"
#include <nlohmann/json.hpp>

namespace k2c {

/// What the layout, the placement and the model's router prove of its choices, for manifest "dispersion": the
/// most nodes that have experts of a token in a layer, and the most bytes that cross between nodes for a token, rows
/// and choices there and sums back, in all layers (numerics N5), without headers. Routes that a user forces have no
/// bound but that of their number.
nlohmann::json dispersionJson(const ModelSpec &spec, const Plan &plan, const ProgramFacts &program,
                              const BundleFacts &bundle);

} // namespace k2c

#endif // K2C_LIB_TARGET_PACKAGE_DISPERSION_H
