//===- Angles.h - rotary tables as the formula that made them ----------------------===//
#ifndef K2C_LIB_ONNX_ANGLES_H
#define K2C_LIB_ONNX_ANGLES_H

#include "Match.h"

namespace k2c::onnx {

/// The rotary embedding whose frequencies, or tables, are those of `rotation` as far as their type tells: of a formula
/// where one gives them, the `stated` ones before others, else as published, and then tables bound the context. Error:
/// they turn no pairs.
Expected<RopeSpec> ropeOf(Fold &fold, const Rotation &rotation, const std::vector<RopeSpec> &stated = {});

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_ANGLES_H
