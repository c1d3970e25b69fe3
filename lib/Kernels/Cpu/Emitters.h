//===- Emitters.h - One function a kernel body ----------------------------------------===//
//
// Each emitter fills an open KernelBuilder with the loops over the worker's grid items. Arguments are numbered as in
// operands(desc).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_EMITTERS_H
#define K2C_LIB_KERNELS_CPU_EMITTERS_H

#include "Builder.h"
#include "k2c/Kernels/TileConfig.h"

namespace k2c::emit {

void emitBody(KernelBuilder &b, const EmbedDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const RmsNormDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const LinearDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const HeadLinearDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const RotaryDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const AppendDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const GqaAttentionDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const AbsorbedAttentionDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const ExpandedAttentionDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const RoutingDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const PermutationDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const PermuteDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const UnpermuteDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const RowwiseDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const OutputRowsDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const CaptureDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const LocateDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const RoutePlanDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const PackDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const UnpackDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const ReturnPlanDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const ReduceSubtreesDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const MergeSubtreesDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const CombineDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const TokenIdsDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const LookupDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const SharePlanDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const CloseGapsDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const ShareReturnDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const JoinColumnsDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const PartPlanDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const AddPartsDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const BlockArgmaxDesc &desc, const TileConfig &tile);
void emitBody(KernelBuilder &b, const GreedySampleDesc &desc, const TileConfig &tile);

/// Scratch of a linear: the row block that is normalised, or moved because its rows collide in the cache.
int64_t linearBytes(const LinearDesc &desc, const TileConfig &tile);

/// Scratch of the routing.
int64_t routingBytes(const RoutingDesc &desc, int64_t lanes);

/// What a RMS norm needs of one row; both sides may be the same memory.
struct NormRow {
  Value x, weight, y;
  DType xType, weightType, yType;
  int64_t width;
  double eps;
};
/// RmsNormDesc on one row (also the prologue of a linear).
void emitNormRow(KernelBuilder &b, const NormRow &row);

/// `width` elements, rounded to `toType`.
void copyRow(KernelBuilder &b, Value from, DType fromType, Value to, DType toType, int64_t width);

/// Calls body(first, last) for each maximal run of rows in [first, last) that `filter` accepts.
void forRuns(KernelBuilder &b, FormFilter filter, Value first, Value last, llvm::function_ref<void(Value, Value)> body);

/// The permutation of PermutationDesc: offsets[experts + 1], then the route of each slot, then the slot of each route.
struct Permutation {
  Value offsets, routeOfSlot, slotOfRoute;
  static Permutation of(KernelBuilder &b, Value pointer, int64_t experts, int64_t topK);
};

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_EMITTERS_H
