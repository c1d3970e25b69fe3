//===- NnSupport.cpp - What interfaces and verifiers of token ops share ---===//
//
// The ops of tokens share three things. A row space, which is the encoding of a tensor's type: the operands and
// results of an op that keeps the row space all have the same one ([C1]). Weights, which an op first names and later
// reads:
//
//   symbol, index operand   of a layered family, as the importer writes it: @w[%l]
//   tensor operand          once the weight is an argument of the kernel around the op
//
// bindWeight goes from the first form to the second and drops the symbol; WeightRef reads both, so that an op has one
// verifier. A named weight must be nn.weights or nn.constant_table ([W1]), have a layer index exactly if it has a
// layer domain ([W2]), an index or a tensor as its operand ([W3]); [W4] counts them. And checks: each message begins
// with the id of the constraint that the op's description states, and shows what is there beside what was expected.
//
//===----------------------------------------------------------------------===//
#include "dialects/Nn/NnStorage.h"
#include "dialects/Nn/NnVerify.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace k2c::nn;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<std::pair<OpOperand *, Value>> k2c::nn::forwardsOf(RegionBranchOpInterface branch) {
  RegionBranchSuccessorMapping mapping;
  branch.getSuccessorOperandInputMapping(mapping);
  SmallVector<std::pair<OpOperand *, Value>> forwards;
  auto add = [&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      for (Value input : mapping.lookup(&operand))
        forwards.push_back({&operand, input});
  };
  add(branch);
  for (Region &region : branch->getRegions())
    for (Block &block : region)
      add(block.getTerminator());
  return forwards;
}

//===----------------------------------------------------------------------===//
// Row spaces
//===----------------------------------------------------------------------===//

RowsAttr k2c::nn::rowsOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<RowsAttr>(tensor.getEncoding()) : nullptr;
}

RowsAttr k2c::nn::detail::rowSpaceOf(Operation *op) {
  for (Type type : op->getResultTypes())
    if (RowsAttr rows = rowsOf(type))
      return rows;
  for (Type type : op->getOperandTypes())
    if (RowsAttr rows = rowsOf(type))
      return rows;
  return nullptr;
}

/// [C1] of ops that keep the row space.
LogicalResult k2c::nn::detail::verifyRowSpace(Operation *op) {
  if (cast<RowSpaceOp>(op).changesRowSpace())
    return success();
  RowsAttr space = rowSpaceOf(op);
  for (Value operand : op->getOperands())
    if (RowsAttr rows = rowsOf(operand.getType()); rows && rows != space)
      return op->emitOpError("[C1] expects one row space, got ") << rows << " and " << space;
  for (Type type : op->getResultTypes())
    if (RowsAttr rows = rowsOf(type); rows && rows != space)
      return op->emitOpError("[C1] expects one row space, got ") << rows << " and " << space;
  return success();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Value WeightRef::value() const { return operand.size() ? operand[0].get() : Value(); }

SmallVector<WeightRef> k2c::nn::detail::presentRefs(ArrayRef<WeightRef> refs) {
  SmallVector<WeightRef> present;
  llvm::copy_if(refs, std::back_inserter(present),
                [](const WeightRef &ref) { return ref.family || ref.operand.size(); });
  return present;
}

void k2c::nn::detail::bindWeight(Operation *op, WeightRef ref, Value value) {
  ref.operand.assign(value);
  op->removeAttr(ref.name);
}

FailureOr<RankedTensorType> k2c::nn::lookupWeight(Operation *op, FlatSymbolRefAttr family, bool layered,
                                                  SymbolTableCollection &tables) {
  Operation *symbol = tables.lookupNearestSymbolFrom(op, family);
  if (auto table = dyn_cast_or_null<ConstantTableOp>(symbol)) {
    if (layered)
      return op->emitOpError("[W2] expects no layer index: ") << family << " has no layer domain";
    return table.getTensorType();
  }
  auto weights = dyn_cast_or_null<WeightsOp>(symbol);
  if (!weights)
    return op->emitOpError("[W1] expects ") << family << " to be nn.weights or nn.constant_table";
  if (weights.isLayered() == layered)
    return readTypeOf(weights);
  return op->emitOpError("[W2] expects ") << (layered ? "no layer index: " : "a layer index: ") << family
                                          << (layered ? " has no" : " has a") << " layer domain";
}

LogicalResult k2c::nn::detail::verifyWeights(Operation *op, unsigned required, SymbolTableCollection &tables) {
  auto user = cast<WeightUser>(op);
  SmallVector<RankedTensorType> types;
  for (const WeightRef &ref : user.getWeightRefs()) {
    if (ref.family) {
      if (ref.value() && !ref.value().getType().isIndex())
        return op->emitOpError("[W3] expects a layer index beside ") << ref.family << ", got " << ref.value().getType();
      auto type = lookupWeight(op, ref.family, static_cast<bool>(ref.value()), tables);
      if (failed(type))
        return failure();
      types.push_back(*type);
      continue;
    }
    auto type = dyn_cast<RankedTensorType>(ref.value().getType());
    if (!type)
      return op->emitOpError("[W3] expects '")
             << ref.name << "' to be a symbol or a tensor, got " << ref.value().getType();
    types.push_back(type);
  }
  if (types.size() < required)
    return op->emitOpError("[W4] expects ") << required << " weights, got " << types.size();
  return user.verifyWeightTypes(types);
}

void k2c::nn::detail::nameResults(Operation *op, ArrayRef<StringRef> names, OpAsmSetValueNameFn set) {
  if (op->getNumResults() == 0)
    return;
  for (auto [result, name] : llvm::zip(op->getResults(), names))
    set(result, name);
  if (!names.empty())
    return;
  StringRef name = op->getName().stripDialect();
  if (auto user = dyn_cast<WeightUser>(op)) {
    const auto refs = user.getWeightRefs(); // llvm::reverse keeps no temporary
    for (const WeightRef &ref : llvm::reverse(refs))
      if (ref.family)
        name = ref.family.getValue();
  }
  set(op->getResult(0), name);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static std::string text(ArrayRef<int64_t> shape) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  stream << '[';
  llvm::interleaveComma(shape, stream, [&](int64_t dim) {
    if (ShapedType::isDynamic(dim))
      stream << '?';
    else
      stream << dim;
  });
  stream << ']';
  return result;
}

LogicalResult k2c::nn::checkEqual(Operation *op, StringRef id, StringRef what, int64_t got, StringRef of,
                                  int64_t expected) {
  if (got == expected)
    return success();
  return op->emitOpError() << '[' << id << "] expects " << what << ' ' << got << " to equal " << of << ' ' << expected;
}

LogicalResult k2c::nn::checkShape(Operation *op, StringRef id, StringRef what, ArrayRef<int64_t> got,
                                  ArrayRef<int64_t> expected) {
  if (got == expected)
    return success();
  return op->emitOpError() << '[' << id << "] expects " << what << " of shape " << text(expected) << ", got "
                           << text(got);
}

LogicalResult k2c::nn::checkRank(Operation *op, StringRef id, StringRef what, Type type, int64_t expected) {
  int64_t rank = cast<RankedTensorType>(type).getRank();
  if (rank == expected)
    return success();
  return op->emitOpError() << '[' << id << "] expects " << what << " of rank " << expected << ", got " << rank;
}

LogicalResult k2c::nn::checkElement(Operation *op, StringRef id, StringRef what, Type type, Type expected) {
  Type element = cast<RankedTensorType>(type).getElementType();
  if (element == expected)
    return success();
  return op->emitOpError() << '[' << id << "] expects " << what << " of type " << expected << ", got " << element;
}

LogicalResult k2c::nn::checkRows(Operation *op, StringRef id, StringRef what, Type type, RowsAttr expected) {
  RowsAttr rows = rowsOf(type);
  if (rows == expected)
    return success();
  return op->emitOpError() << '[' << id << "] expects " << what << " in row space " << expected << ", got " << rows;
}

LogicalResult k2c::nn::checkRows(Operation *op, StringRef id, StringRef what, Type type, RowKind kind) {
  RowsAttr rows = rowsOf(type);
  if (rows.getKind() == kind)
    return success();
  return op->emitOpError() << '[' << id << "] expects " << what << " in row space " << stringifyRowKind(kind)
                           << ", got " << stringifyRowKind(rows.getKind());
}

LogicalResult k2c::nn::checkStepRows(Operation *op, StringRef id, StringRef what, Type type) {
  if (rowsOf(type).getKind() == RowKind::Gathered)
    return success();
  return checkRows(op, id, what, type, RowKind::Token);
}

LogicalResult k2c::nn::checkPlane(Operation *op, StringRef id, PoolOp pool, StringRef name, ArrayRef<int64_t> dims,
                                  Type element) {
  PlaneAttr plane = pool.getPlane(name);
  if (!plane)
    return op->emitOpError() << '[' << id << "] expects pool @" << pool.getSymName() << " to have a plane '" << name
                             << "'";
  if (plane.getElement() != element)
    return op->emitOpError() << '[' << id << "] expects plane '" << name << "' of type " << element << ", got "
                             << plane.getElement();
  return checkShape(op, id, ("plane '" + name + "'").str(), plane.getDims(), dims);
}

//===----------------------------------------------------------------------===//
// Cache groups of views
//===----------------------------------------------------------------------===//

ParseResult k2c::parseCacheGroup(AsmParser &parser, int64_t &group) {
  group = 0;
  if (failed(parser.parseOptionalComma()))
    return success();
  return failure(parser.parseKeyword("group") || parser.parseEqual() || parser.parseInteger(group));
}

void k2c::printCacheGroup(AsmPrinter &printer, int64_t group) {
  if (group != 0)
    printer << ", group = " << group;
}
