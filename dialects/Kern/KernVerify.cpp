//===- KernVerify.cpp - Verifiers of the kern dialect ---------------------===//
//
// Ids are those of KernOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Kern/Kern.h"
#include "dialects/Nn/NnVerify.h"
#include "dialects/VerifyAttributes.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace k2c;
using namespace k2c::kern;

/// [C1], [C2] of cpu.
LogicalResult CpuAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name, int64_t cores, int64_t l1,
                              int64_t l2, ArrayAttr features, WeightLayout) {
  for (int64_t size : {cores, l1, l2})
    if (size <= 0)
      return emitError() << "'#kern.cpu' [C1] expects positive cores and caches of '" << name << "', got " << size;
  for (Attribute feature : features)
    if (!isa<StringAttr>(feature))
      return emitError() << "'#kern.cpu' [C2] expects features as strings, got " << feature;
  return success();
}

/// [C1], [C2] of gpu.
LogicalResult GpuAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef arch, int64_t sms,
                              int64_t threads, int64_t workers, int64_t ctas, CpuAttr, WeightLayout) {
  for (int64_t size : {sms, threads, workers, ctas})
    if (size <= 0)
      return emitError() << "'#kern.gpu' [C1] expects positive sizes of '" << arch << "', got " << size;
  if (threads % workers != 0)
    return emitError() << "'#kern.gpu' [C2] expects workers that divide the threads of a CTA, got " << workers << " of "
                       << threads;
  return success();
}

LogicalResult KernDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != targetAttrName)
    return refuseAttribute(op, attribute);
  return expectAttribute(op, attribute, isa<ModuleOp>(op) && isa<CpuAttr, GpuAttr>(attribute.getValue()),
                         "#kern.cpu or #kern.gpu on a module");
}

/// [C1] of tile.
LogicalResult TileAttr::verify(function_ref<InFlightDiagnostic()> emitError, InstructionSet, int64_t lanes, int64_t mr,
                               int64_t nr, int64_t prefetch, int64_t rowsBlock, int64_t headTile, int64_t valueParts,
                               int64_t splitTokens, WeightLayout) {
  std::pair<StringRef, int64_t> positive[] = {
      {"lanes", lanes}, {"mr", mr}, {"nr", nr}, {"head_tile", headTile}, {"value_parts", valueParts}};
  for (auto [name, value] : positive)
    if (value <= 0)
      return emitError() << "'#kern.tile' [C1] expects positive " << name << ", got " << value;
  if (prefetch < 0 || rowsBlock < 0 || splitTokens < 0)
    return emitError() << "'#kern.tile' [C1] expects no negative prefetch, rows_block or split_tokens, got " << prefetch
                       << ", " << rowsBlock << " and " << splitTokens;
  return success();
}

/// [C1], [C2] of func.
LogicalResult FuncOp::verifyRegions() {
  if (getBody().getNumArguments() != getArgumentTypes().size())
    return emitOpError("[C2] expects a body");
  for (Operation &inner : getBody().front())
    if (!isa<nn::KernelOp, YieldOp>(inner))
      return emitOpError("[C1] expects ops that stand in kernels, got '") << inner.getName() << '\'';
  TypeRange yielded = getBody().front().getTerminator()->getOperandTypes();
  if (yielded != TypeRange(getResultTypes()))
    return emitOpError("[C2] expects the yield to have types (") << getResultTypes() << "), got (" << yielded << ')';
  return success();
}

/// [C4] to [C7] of call.
LogicalResult CallOp::verify() {
  auto takesOperand = [](Attribute binding) {
    auto weight = dyn_cast<WeightAttr>(binding);
    return !weight || weight.getLayered();
  };
  size_t bound = llvm::count_if(getBindings(), takesOperand);
  if (bound != getOperands().size())
    return emitOpError("[C5] expects bindings for ") << getOperands().size() << " operands, got " << bound;
  auto behind = llvm::make_range(std::next((*this)->getIterator()), (*this)->getBlock()->end());
  if (getNowait() && llvm::none_of(behind, llvm::IsaPred<CallOp>))
    return emitOpError("[C6] expects another call behind a nowait one in its block");
  if (int64_t partials = getPartials().value_or(0); partials < 0 || partials % 64)
    return emitOpError("[C7] expects partials at a multiple of 64, got ") << partials;
  if (!getOffsetsAttr())
    return success();
  ArrayRef<int64_t> offsets = getOffsetsAttr();
  if (offsets.size() != getNumResults())
    return emitOpError("[C4] expects ") << getNumResults() << " offsets, got " << offsets.size();
  for (int64_t offset : offsets)
    if (offset < 0 || offset % 64)
      return emitOpError("[C4] expects offsets that are multiples of 64, got ") << offset;
  return success();
}

/// [C1], [C2], [C3] of call.
LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<FuncOp>(*this, getCalleeAttr());
  if (!kernel)
    return emitOpError("[C1] expects ") << getCalleeAttr() << " to be a kern.func";
  ArrayRef<Type> expected = kernel.getArgumentTypes();
  SmallVector<Argument> arguments = getCallArguments();
  if (arguments.size() != expected.size())
    return emitOpError("[C2] expects ") << expected.size() << " arguments, got " << arguments.size();
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    Type type;
    if (argument.weight) {
      auto weight = nn::lookupWeight(*this, argument.weight.getFamily(), argument.weight.getLayered(), tables);
      if (failed(weight))
        return failure();
      type = *weight;
    } else {
      type = argument.value.getType();
    }
    if (type != expected[index])
      return emitOpError("[C3] expects argument ") << index << " of type " << expected[index] << ", got " << type;
  }
  if (getResultTypes() != TypeRange(kernel.getResultTypes()))
    return emitOpError("[C3] expects results (") << kernel.getResultTypes() << "), got (" << getResultTypes() << ')';
  return success();
}
