//===- AttentionKernels.h - Scratch of the attention kernels -----------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_ATTENTIONKERNELS_H
#define K2C_LIB_KERNELS_CPU_ATTENTIONKERNELS_H

#include "TransposedKeys.h"

namespace k2c::emit {

TransposedKeysLayout layoutOf(const GqaAttentionDesc &d, const TileConfig &tile);
AttentionLayout layoutOf(const AbsorbedAttentionDesc &d, const TileConfig &tile);
AttentionLayout layoutOf(const ExpandedAttentionDesc &d, const TileConfig &tile);

/// Scratch of a block of expanded keys and values, after the layout's.
int64_t expandedBytes(const ExpandedAttentionDesc &d);

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_ATTENTIONKERNELS_H
