//===- NnLayers.cpp - Layers and their lists ------------------------------===//
//
// Ids are those of NnLayers.td. The assembly of a list is in NnAssembly.cpp.
//
//===----------------------------------------------------------------------===//
#include "dialects/Nn/Nn.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace k2c::nn;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void k2c::nn::buildFunction(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute("function_type", TypeAttr::get(type));
  Block &body = state.addRegion()->emplaceBlock();
  body.addArguments(type.getInputs(), SmallVector<Location>(type.getNumInputs(), state.location));
}

void k2c::nn::nameArguments(Region &region, OpAsmSetValueNameFn set, function_ref<StringRef(BlockArgument)> nameOf) {
  for (BlockArgument argument : region.getArguments())
    if (auto named = dyn_cast<OpAsmTypeInterface>(argument.getType()))
      named.getAsmName([&](StringRef name) { set(argument, name); });
    else
      set(argument, nameOf(argument));
}

//===----------------------------------------------------------------------===//
// layer
//===----------------------------------------------------------------------===//

void LayerOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  buildFunction(builder, state, name, type);
}

ParseResult LayerOp::parse(OpAsmParser &parser, OperationState &state) {
  auto typeOf = [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
                   function_interface_impl::VariadicFlag,
                   std::string &) { return builder.getFunctionType(inputs, results); };
  return function_interface_impl::parseFunctionOp(parser, state, /*allowVariadic=*/false,
                                                  getFunctionTypeAttrName(state.name), typeOf,
                                                  getArgAttrsAttrName(state.name), getResAttrsAttrName(state.name));
}

void LayerOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
                                           getArgAttrsAttrName(), getResAttrsAttrName());
}

void LayerOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn set) {
  nameArguments(region, set, [&](BlockArgument argument) {
    return argument.getType().isIndex() ? "layer" : argument.getArgNumber() <= getResultTypes().size() ? "x" : "read";
  });
}

/// [C1] of layer.
LogicalResult LayerOp::verify() {
  ArrayRef<Type> inputs = getArgumentTypes(), results = getResultTypes();
  auto isRows = [](Type type) { return rowsOf(type) != nullptr; };
  const bool takesStep = inputs.size() > 2 && inputs.front().isIndex() && isa<BatchType>(inputs.back()) &&
                         llvm::all_of(inputs.drop_front().drop_back(), isRows);
  if (takesStep && !results.empty() && inputs.drop_front().drop_back().take_front(results.size()) == results)
    return success();
  return emitOpError("[C1] expects the type (index, carried rows, rows that it reads, !nn.batch) -> carried rows, got ")
         << getFunctionType();
}

/// [C2] of layer.
LogicalResult LayerOp::verifyRegions() {
  TypeRange yielded = getBody().front().getTerminator()->getOperandTypes();
  if (yielded != TypeRange(getResultTypes()))
    return emitOpError("[C2] expects the yield to have types (") << getResultTypes() << "), got (" << yielded << ')';
  return success();
}

//===----------------------------------------------------------------------===//
// layers
//===----------------------------------------------------------------------===//

/// [C1], [C2], [C4] of layers.
LogicalResult LayersOp::verify() {
  if ((*this)->getParentOfType<LayerOp>())
    return emitOpError("[C4] expects to stand in no layer, got one in '")
           << (*this)->getParentOfType<LayerOp>().getSymName() << '\'';
  if (getCarried().empty() || getCarried().getTypes() != getOutputs().getTypes())
    return emitOpError("[C1] expects to carry values, and results of their types, got (")
           << getCarried().getTypes() << ") and (" << getOutputs().getTypes() << ')';
  if (getRuns().empty())
    return emitOpError("[C2] expects at least one run");
  auto runs = llvm::to_vector(getRuns().getAsRange<LayerRunAttr>());
  for (auto [left, right] : llvm::zip(ArrayRef(runs).drop_back(), ArrayRef(runs).drop_front()))
    if (left.getTo() != right.getFrom())
      return emitOpError("[C2] expects the run of ")
             << right.getCallees().front() << " to start at " << left.getTo() << ", got " << right.getFrom();
  return success();
}

SmallVector<FlatSymbolRefAttr> LayersOp::getCallees() {
  SmallVector<FlatSymbolRefAttr> callees;
  for (auto run : getRuns().getAsRange<LayerRunAttr>())
    llvm::append_range(callees, run.getCallees());
  return callees;
}

SmallVector<std::pair<Value, Value>> LayersOp::getSharedPlaces() {
  SmallVector<std::pair<Value, Value>> places;
  for (auto [output, carried] : llvm::zip_equal(getOutputs(), getCarried()))
    places.push_back({output, carried});
  return places;
}

/// [C3] of layers.
LogicalResult LayersOp::verifySymbolUses(SymbolTableCollection &tables) {
  SmallVector<Type> inputs(getOperandTypes());
  inputs.insert(inputs.begin(), IndexType::get(getContext()));
  auto type = FunctionType::get(getContext(), inputs, getCarried().getTypes());
  for (FlatSymbolRefAttr callee : getCallees()) {
    auto layer = tables.lookupNearestSymbolFrom<LayerOp>(*this, callee);
    if (!layer)
      return emitOpError("[C3] expects ") << callee << " to be an nn.layer";
    if (layer.getFunctionType() != type)
      return emitOpError("[C3] expects ") << callee << " of type " << type << ", got " << layer.getFunctionType();
  }
  return success();
}
