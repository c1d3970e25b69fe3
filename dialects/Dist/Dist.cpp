//===- Dist.cpp - The dist dialect: registration and verifiers ------------===//
//
// Ids are those of DistOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Dist/Dist.h"
#include "dialects/VerifyAttributes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
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

/// [C1], [C2] of topology.
LogicalResult TopologyAttr::verify(EmitError emitError, StringRef name, int64_t ranks, ArrayRef<int64_t> numa) {
  if (ranks < 1)
    return emitError() << "'#dist.topology' [C1] expects at least one rank of '" << name << "', got " << ranks;
  for (int64_t cores : numa)
    if (cores < 1)
      return emitError() << "'#dist.topology' [C2] expects cores on every node of '" << name << "', got " << cores;
  return success();
}

/// [C1], [C2], [C3] of plan.
LogicalResult PlanAttr::verify(EmitError emitError, StringRef, int64_t expandedFrom, ArrayAttr without,
                               int64_t tileChoice) {
  if (expandedFrom < -1)
    return emitError() << "'#dist.plan' [C1] expects expanded_from >= -1, got " << expandedFrom;
  if (tileChoice < 0)
    return emitError() << "'#dist.plan' [C2] expects a tile_choice that is not negative, got " << tileChoice;
  for (Attribute pass : without ? without.getValue() : ArrayRef<Attribute>())
    if (!isa<StringAttr>(pass))
      return emitError() << "'#dist.plan' [C3] expects names of passes in without, got " << pass;
  return success();
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  const bool isPlan = attribute.getName() == planAttrName;
  if (!isPlan && attribute.getName() != topologyAttrName)
    return refuseAttribute(op, attribute);
  const Attribute value = attribute.getValue();
  return expectAttribute(op, attribute, isa<ModuleOp>(op) && (isPlan ? isa<PlanAttr>(value) : isa<TopologyAttr>(value)),
                         "#" + attribute.getName().getValue() + " on a module");
}
