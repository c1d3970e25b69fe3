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

static bool isTensor(Type type) { return isa<RankedTensorType>(type); }

LogicalResult MemDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name == certificateAttrName)
    return expectAttribute(op, attribute, isa<ModuleOp>(op) && isa<CertificateAttr>(attribute.getValue()),
                           "#mem.certificate on a module");
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (name == argumentsAttrName) {
    auto offsets = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    auto isByte = [](int64_t offset) { return offset >= 0; };
    return expectAttribute(op, attribute,
                           function && offsets && llvm::all_of(offsets.asArrayRef(), isByte) &&
                               offsets.size() == llvm::count_if(function.getArgumentTypes(), isTensor),
                           "bytes that are not negative, for each tensor that a function takes");
  }
  if (name != peakAttrName)
    return refuseAttribute(op, attribute);
  auto bytes = dyn_cast<IntegerAttr>(attribute.getValue());
  return expectAttribute(op, attribute,
                         (function || isa<ModuleOp>(op)) && bytes && bytes.getType().isSignlessInteger(64) &&
                             bytes.getInt() >= 0,
                         "bytes as a 64-bit integer that is not negative on a function or a module");
}

std::optional<int64_t> mem::peakOf(Operation *op) {
  auto bytes = op->getAttrOfType<IntegerAttr>(MemDialect::peakAttrName);
  return bytes ? std::optional(bytes.getInt()) : std::nullopt;
}

void mem::setPeak(Operation *op, int64_t bytes) {
  op->setAttr(MemDialect::peakAttrName, Builder(op->getContext()).getI64IntegerAttr(bytes));
}

Value mem::originOf(Value rows) {
  Operation *producer = rows.getDefiningOp();
  Operation *owner = producer ? producer : rows.getParentBlock()->getParentOp();
  if (isa<nn::PlacedOp>(owner) || (!producer && isa<FunctionOpInterface>(owner)))
    return rows;
  if (auto shared = dyn_cast<nn::SharedPlaceOp>(owner))
    for (auto [mine, other] : shared.getSharedPlaces())
      if (mine == rows)
        return originOf(other);
  if (auto branch = dyn_cast<RegionBranchOpInterface>(owner))
    for (auto [operand, input] : nn::forwardsOf(branch))
      if (input == rows)
        return originOf(operand->get());
  return {};
}

std::optional<int64_t> mem::offsetOf(Value rows) {
  Value origin = originOf(rows);
  if (!origin)
    return std::nullopt;
  if (auto placed = origin.getDefiningOp<nn::PlacedOp>())
    return (*placed.getOffsets())[cast<OpResult>(origin).getResultNumber()];
  Block *owner = origin.getParentBlock();
  auto offsets = owner->getParentOp()->getAttrOfType<DenseI64ArrayAttr>(MemDialect::argumentsAttrName);
  if (!offsets || !owner->isEntryBlock())
    return std::nullopt;
  TypeRange before = owner->getArgumentTypes();
  return offsets[llvm::count_if(before.take_front(cast<BlockArgument>(origin).getArgNumber()), isTensor)];
}

void mem::setArguments(Operation *layer, ArrayRef<int64_t> offsets) {
  layer->setAttr(MemDialect::argumentsAttrName, Builder(layer->getContext()).getDenseI64ArrayAttr(offsets));
}
