//===- Remarks.h - Every decision of a compile, as text -------------------===//
#ifndef K2C_LIB_PIPELINES_REMARKS_H
#define K2C_LIB_PIPELINES_REMARKS_H

#include "mlir/IR/MLIRContext.h"
#include <string>

namespace k2c {

/// Collects the remarks of all passes run on `context` into `text`, which outlives the context: one line a decision,
/// "[pass] what was decided {metric = value, ...}".
void collectRemarks(mlir::MLIRContext &context, std::string &text);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_REMARKS_H
