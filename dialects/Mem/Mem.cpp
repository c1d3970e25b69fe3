//===- Mem.cpp - The mem dialect: registration and verifiers --------------===//
//
// Ids are those of MemOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Mem/Mem.h"
#include "dialects/VerifyAttributes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k2c;
using namespace k2c::mem;

#include "dialects/Mem/MemDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Mem/MemAttributes.cpp.inc"

void MemDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Mem/MemAttributes.cpp.inc"
      >();
}

/// [C1] of certificate.
LogicalResult CertificateAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t weights, int64_t cache,
                                      int64_t arena, int64_t scratch, int64_t logits) {
  for (int64_t bytes : {weights, cache, arena, scratch, logits})
    if (bytes < 0)
      return emitError() << "'#mem.certificate' [C1] expects no negative size, got " << bytes;
  return success();
}

LogicalResult MemDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name == certificateAttrName)
    return expectAttribute(op, attribute, isa<ModuleOp>(op) && isa<CertificateAttr>(attribute.getValue()),
                           "#mem.certificate on a module");
  if (name != peakAttrName && name != argumentAttrName)
    return refuseAttribute(op, attribute);
  auto bytes = dyn_cast<IntegerAttr>(attribute.getValue());
  const bool isPlaced = isa<FunctionOpInterface>(op) || (isa<ModuleOp>(op) && name == peakAttrName);
  return expectAttribute(op, attribute,
                         isPlaced && bytes && bytes.getType().isSignlessInteger(64) && bytes.getInt() >= 0,
                         Twine("bytes as a 64-bit integer that is not negative on a function") +
                             (name == peakAttrName ? " or a module" : ""));
}

static std::optional<int64_t> bytesOf(Operation *op, StringRef name) {
  auto bytes = op->getAttrOfType<IntegerAttr>(name);
  return bytes ? std::optional(bytes.getInt()) : std::nullopt;
}

std::optional<int64_t> mem::peakOf(Operation *op) { return bytesOf(op, MemDialect::peakAttrName); }

void mem::setPeak(Operation *op, int64_t bytes) {
  op->setAttr(MemDialect::peakAttrName, Builder(op->getContext()).getI64IntegerAttr(bytes));
}

std::optional<int64_t> mem::argumentOf(Operation *function) { return bytesOf(function, MemDialect::argumentAttrName); }

void mem::setArgument(Operation *function, int64_t offset) {
  function->setAttr(MemDialect::argumentAttrName, Builder(function->getContext()).getI64IntegerAttr(offset));
}
