//===- Dist.cpp - The dist dialect: registration and verifiers ------------===//
//
// Ids are those of DistOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Dist/Dist.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k2c::dist;

#include "dialects/Dist/DistDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttributes.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Dist/DistAttributes.cpp.inc"
      >();
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// [C1] of topology.
LogicalResult TopologyAttr::verify(EmitError emitError, StringRef name, int64_t ranks) {
  if (ranks < 1)
    return emitError() << "'#dist.topology' [C1] expects at least one rank of '" << name << "', got " << ranks;
  return success();
}

/// [C1] of layout.
LogicalResult LayoutAttr::verify(EmitError emitError, int64_t dp, int64_t ep, int64_t pp) {
  for (int64_t size : {dp, ep, pp})
    if (size < 1)
      return emitError() << "'#dist.layout' [C1] expects positive sizes, got " << size;
  return success();
}

/// [C1] of memory.
LogicalResult MemoryAttr::verify(EmitError emitError, int64_t weights, int64_t cache, int64_t arena, int64_t reserve) {
  for (int64_t bytes : {weights, cache, arena, reserve})
    if (bytes < 0)
      return emitError() << "'#dist.memory' [C1] expects no negative size, got " << bytes;
  return success();
}

/// [C1], [C2] of plan.
LogicalResult PlanAttr::verify(EmitError emitError, LayoutAttr, int64_t expandedFrom, MemoryAttr, int64_t prefill,
                               int64_t decode) {
  if (expandedFrom < -1)
    return emitError() << "'#dist.plan' [C1] expects expanded_from >= -1, got " << expandedFrom;
  for (int64_t time : {prefill, decode})
    if (time < 0)
      return emitError() << "'#dist.plan' [C2] expects no negative time, got " << time;
  return success();
}
