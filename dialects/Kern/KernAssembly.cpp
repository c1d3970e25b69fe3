//===- KernAssembly.cpp - Assembly of kernels and calls -------------------===//
//
// A kern.func is a function whose tile is printed before its other attributes. A kern.call binds each argument of its
// kernel either to a value or to a weight, which it names by symbol, with a layer index where the weight is layered:
//
//   kern.call @k(%x, @w[%l], @embed) at [0, 64] : (!x) -> !y
//       bindings  unit, weight @w of a layer, weight @embed
//       operands  %x, %l
//
// Bindings and operands run in parallel, except that a weight without a layer takes no operand: getCallArguments joins
// the two lists again, for the printer and for every pass. Types are written for values alone, since an index needs
// none and the type of a weight is that of its family; the parser refuses more or fewer types than there are values.
//
//===----------------------------------------------------------------------===//
#include "dialects/Kern/Kern.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace k2c::kern;

//===----------------------------------------------------------------------===//
// kern.func
//===----------------------------------------------------------------------===//

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  nn::buildFunction(builder, state, name, type);
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> inputs, results;
  SmallVector<DictionaryAttr> resultAttrs;
  bool isVariadic = false;
  if (parser.parseSymbolName(name, getSymNameAttrName(state.name), state.attributes) ||
      function_interface_impl::parseFunctionSignatureWithArguments(parser, /*allowVariadic=*/false, arguments,
                                                                   isVariadic, results, resultAttrs))
    return failure();
  for (const OpAsmParser::Argument &argument : arguments)
    inputs.push_back(argument.type);
  Builder &builder = parser.getBuilder();
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(builder.getFunctionType(inputs, results)));
  TileAttr tile;
  if (parseOptionalAttribute(parser, "tile", tile) || parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  if (tile)
    state.addAttribute(getTileAttrName(state.name), tile);
  return parser.parseRegion(*state.addRegion(), arguments);
}

void FuncOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(), /*isVariadic=*/false,
                                                  getResultTypes());
  printOptionalAttribute(printer, *this, "tile", getTileAttr());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getSymNameAttrName(), getFunctionTypeAttrName(), getTileAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void FuncOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn set) {
  nn::nameArguments(region, set, [](BlockArgument argument) {
    return argument.getType().isIndex() ? "l" : nn::rowsOf(argument.getType()) ? "x" : "w";
  });
}

//===----------------------------------------------------------------------===//
// kern.call
//===----------------------------------------------------------------------===//

SmallVector<CallOp::Argument> CallOp::getCallArguments() {
  SmallVector<Argument> arguments;
  auto next = getOperands().begin();
  for (Attribute binding : getBindings()) {
    auto weight = dyn_cast<WeightAttr>(binding);
    bool takesOperand = !weight || weight.getLayered();
    arguments.push_back({weight, takesOperand ? *next++ : Value()});
  }
  return arguments;
}

namespace k2c {
/// `(%x, @w[%l], @embed) at [0, 64] : (!x) -> !y`.
static ParseResult parseCallArguments(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
                                      SmallVectorImpl<Type> &operandTypes, ArrayAttr &bindings,
                                      SmallVectorImpl<Type> &resultTypes, DenseI64ArrayAttr &offsets) {
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> bound;
  SmallVector<bool> isIndex;
  auto parseOne = [&]() -> ParseResult {
    StringAttr name;
    if (failed(parser.parseOptionalSymbolName(name))) {
      bound.push_back(builder.getUnitAttr());
      isIndex.push_back(false);
      return parser.parseOperand(operands.emplace_back());
    }
    bool layered = succeeded(parser.parseOptionalLSquare());
    bound.push_back(WeightAttr::get(parser.getContext(), FlatSymbolRefAttr::get(name), layered));
    if (!layered)
      return success();
    isIndex.push_back(true);
    return failure(parser.parseOperand(operands.emplace_back()) || parser.parseRSquare());
  };
  auto parseOffset = [&](SmallVector<int64_t> &list) { return parser.parseInteger(list.emplace_back()); };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  bindings = builder.getArrayAttr(bound);
  if (succeeded(parser.parseOptionalKeyword("at"))) {
    SmallVector<int64_t> list;
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] { return parseOffset(list); }))
      return failure();
    offsets = builder.getDenseI64ArrayAttr(list);
  }
  FunctionType type;
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseColonType(type))
    return failure();
  auto valueType = type.getInputs().begin();
  for (bool index : isIndex) {
    if (!index && valueType == type.getInputs().end())
      return parser.emitError(place, "expected a type for each value argument");
    operandTypes.push_back(index ? builder.getIndexType() : *valueType++);
  }
  if (valueType != type.getInputs().end())
    return parser.emitError(place, "expected no more types than value arguments");
  llvm::append_range(resultTypes, type.getResults());
  return success();
}

static void printCallArguments(OpAsmPrinter &printer, Operation *op, OperandRange, TypeRange, ArrayAttr,
                               TypeRange results, DenseI64ArrayAttr offsets) {
  SmallVector<Type> valueTypes;
  printer << '(';
  llvm::interleaveComma(cast<CallOp>(op).getCallArguments(), printer, [&](const CallOp::Argument &argument) {
    if (!argument.weight) {
      printer << argument.value;
      valueTypes.push_back(argument.value.getType());
      return;
    }
    printer.printSymbolName(argument.weight.getFamily().getValue());
    if (argument.value)
      printer << '[' << argument.value << ']';
  });
  printer << ')';
  if (offsets) {
    printer << " at [";
    llvm::interleaveComma(offsets.asArrayRef(), printer);
    printer << ']';
  }
  printer << " : ";
  printer.printFunctionalType(valueTypes, results);
}
} // namespace k2c

#define GET_OP_CLASSES
#include "dialects/Kern/KernOps.cpp.inc"
