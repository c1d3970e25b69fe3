//===- VerifyShared.h - Rows that all ranks of a stage work on -------------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYSHARED_H
#define K2C_LIB_TRANSFORMS_VERIFYSHARED_H

#include "Origins.h"
#include "dialects/Dist/Dist.h"

namespace k2c {

/// Whether rows of `op` are shared with all members, or come back from them.
bool sharesRows(dist::AllToAllOp op, Origins &origins);

/// Refuses shared rows that are not those which were counted, or do not come back as they went; `op` is such a site.
mlir::LogicalResult verifyShared(dist::AllToAllOp op, Origins &origins, mlir::StringRef who);

/// What arrived is read where it lies, by how much of it came.
mlir::LogicalResult verifyGaps(Run<dist::CloseGapsOp> gaps, Origins &origins, mlir::StringRef who);

/// What came back is put together by the plan by which it was shared.
mlir::LogicalResult verifyJoined(Run<dist::JoinColumnsOp> joined, Origins &origins, mlir::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYSHARED_H
