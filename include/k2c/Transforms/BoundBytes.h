//===- BoundBytes.h - What a value takes in the arena ---------------------===//
#ifndef K2C_TRANSFORMS_BOUNDBYTES_H
#define K2C_TRANSFORMS_BOUNDBYTES_H

#include "dialects/Nn/Nn.h"

namespace k2c {

/// Bytes `type` takes at most under `limits`; 0 for values without memory (cache views, the step, layer indices).
int64_t boundBytes(mlir::Type type, nn::LimitsAttr limits);

/// Bytes that the counts of so many members take.
int64_t countsBytes(int64_t members);

} // namespace k2c

#endif // K2C_TRANSFORMS_BOUNDBYTES_H
