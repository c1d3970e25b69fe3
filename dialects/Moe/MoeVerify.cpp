//===- MoeVerify.cpp - Verifiers of the moe dialect -----------------------===//
//
// Ids are those of MoeBase.td and MoeOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Moe/Moe.h"

using namespace mlir;
using namespace k2c::moe;

/// [C1] of tree.
LogicalResult TreeAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t leaves) {
  if (leaves < 1 || leaves > 128 || (leaves & (leaves - 1)))
    return emitError() << "'#moe.tree' [C1] expects a power of two up to 128, got " << leaves;
  return success();
}

/// [C1] of plan.
LogicalResult PlanType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t experts, int64_t top) {
  if (top <= 0 || top > experts)
    return emitError() << "'!moe.plan' [C1] expects 0 < top <= " << experts << " experts, got " << top;
  return success();
}
