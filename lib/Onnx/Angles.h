//===- Angles.h - rotary tables as the formula that made them ----------------------===//
#ifndef K2C_LIB_ONNX_ANGLES_H
#define K2C_LIB_ONNX_ANGLES_H

#include "Match.h"

namespace k2c::onnx {

/// The rotary embedding whose frequencies, or tables, are those of `rotation` within one unit in the last place. Of
/// tables, maxContext is their length where no formula is found for all of them. Error: no formula gives them.
Expected<RopeSpec> ropeOf(Fold &fold, const Rotation &rotation);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_ANGLES_H
