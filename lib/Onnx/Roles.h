//===- Roles.h - what the inputs of a graph are for -----------------------------------===//
#ifndef K2C_LIB_ONNX_ROLES_H
#define K2C_LIB_ONNX_ROLES_H

#include "Fold.h"

namespace k2c::onnx {

/// The roles that the inputs may have, the likeliest first; never empty. Error: no input is ids of tokens, or one is
/// nothing that a decoder reads.
Expected<std::vector<InputRoles>> rolesOf(const Graph &graph);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_ROLES_H
