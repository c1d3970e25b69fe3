//===- VerifyParts.h - Parts of what experts make --------------------------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYPARTS_H
#define K2C_LIB_TRANSFORMS_VERIFYPARTS_H

#include "Provenance.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Moe/Moe.h"

namespace k2c {

/// Refuses parts, which came back at `site`, that are not added by the plan by which rows went to who has made them,
/// are weighted as other choices than those that came with these rows, or are other leaves than the order says.
mlir::LogicalResult verifyAdded(Run<moe::AddPartsOp> added, dist::AllToAllOp site, Run<moe::RoutePlanOp> plan,
                                Provenance &values);

/// Refuses `op`, of weights `family` of which there are `parts` by the plan, if its rows have not gone to all parts,
/// its columns are not those of gate and up, or what it has of a sum is taken for all of it; in the distributed form.
mlir::LogicalResult verifyGrouped(moe::GroupedLinearOp op, nn::WeightsOp family, int64_t parts, mlir::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYPARTS_H
