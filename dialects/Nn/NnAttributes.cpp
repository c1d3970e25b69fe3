//===- NnAttributes.cpp - Verifiers and queries of nn attributes, types ---===//
//
// Ids are those of NnAttributes.td and NnTypes.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Nn/Nn.h"
#include "dialects/VerifyAttributes.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace k2c::nn;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// [C2], [C3] of rows.
LogicalResult RowsAttr::verify(EmitError emitError, RowKind kind, int64_t perToken, int64_t site, int64_t max) {
  bool isSlot = kind == RowKind::Slot;
  if (isSlot != (perToken > 0))
    return emitError() << "'#nn.rows' [C2] expects " << (isSlot ? "a positive number of" : "no")
                       << " slots for each token of space " << stringifyRowKind(kind) << ", got " << perToken;
  if (site >= 0 && max < 0)
    return emitError() << "'#nn.rows' [C3] expects a bound of the rows of site " << site << ", got none";
  return success();
}

/// [C1] of rows.
LogicalResult RowsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  if (shape.empty() || !ShapedType::isDynamic(shape.front()))
    return emitError() << "'#nn.rows' [C1] expects a dynamic dimension 0: row counts are known at run time only";
  return success();
}

OpAsmAliasResult RowsAttr::getAlias(llvm::raw_ostream &os) const {
  return detail::alias(os, getKind() == RowKind::Token ? "tok" : stringifyRowKind(getKind()));
}

/// [C1], [C2] of limits.
LogicalResult LimitsAttr::verify(EmitError emitError, int64_t token, int64_t seq, int64_t context,
                                 std::optional<int64_t> output, std::optional<int64_t> gathered) {
  for (auto [name, bound] : {std::pair{"token", token},
                             {"seq", seq},
                             {"context", context},
                             {"output", output.value_or(seq)},
                             {"gathered", gathered.value_or(token)}})
    if (bound <= 0)
      return emitError() << "'#nn.limits' [C1] expects a positive bound '" << name << "', got " << bound;
  if (gathered && *gathered < token)
    return emitError() << "'#nn.limits' [C2] expects at least " << token << " gathered rows, got " << *gathered;
  return success();
}

LogicalResult NnDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  Attribute value = attribute.getValue();
  if (name == limitsAttrName)
    return expectAttribute(op, attribute, isa<ModuleOp>(op) && isa<LimitsAttr>(value), "#nn.limits on a module");
  if (name == numericsAttrName)
    return expectAttribute(op, attribute, isa<ModuleOp>(op) && isa<NumericsAttr>(value), "#nn.numerics on a module");
  if (name == entryAttrName)
    return expectAttribute(op, attribute, isa<FunctionOpInterface>(op) && !isa<LayerOp>(op) && isa<StringAttr>(value),
                           "a name on a function that is no layer");
  return refuseAttribute(op, attribute);
}

LimitsAttr k2c::nn::limitsOf(Operation *module) { return module->getAttrOfType<LimitsAttr>(NnDialect::limitsAttrName); }

int64_t k2c::nn::pagesOf(PoolOp pool, LimitsAttr limits) {
  return limits.getSeq() * static_cast<int64_t>(llvm::divideCeil(limits.getPositions(), pool.getPage()));
}

int64_t k2c::nn::boundRows(RowsAttr rows, LimitsAttr limits) {
  switch (rows.getKind()) {
  case RowKind::Token:
  case RowKind::Entering:
    return limits.getToken();
  case RowKind::Gathered:
    return limits.getStepRows();
  case RowKind::Output:
    return limits.getOutputRows();
  case RowKind::Seq:
    return limits.getSeq();
  case RowKind::Slot:
    return (rows.getSite() < 0 ? limits.getToken() : rows.getMax()) * rows.getPerToken();
  case RowKind::Recv:
  case RowKind::Subtree:
  case RowKind::Message:
    return rows.getMax();
  }
  llvm_unreachable("a row space of a known kind");
}

int64_t k2c::nn::planeBytes(PoolOp pool, PlaneAttr plane, LimitsAttr limits) {
  return pagesOf(pool, limits) * pool.getPage() * plane.getWidth() * plane.getElement().getIntOrFloatBitWidth() / 8;
}

bool k2c::nn::isEntry(Operation *function) { return function->hasAttr(NnDialect::entryAttrName); }

bool k2c::nn::isView(Operation *op) {
  auto kernelOp = dyn_cast<KernelOp>(op);
  return kernelOp && kernelOp.isView();
}

/// [C1] of tree.
LogicalResult TreeAttr::verify(EmitError emitError, int64_t leaves) {
  if (leaves < 1 || leaves > 8 || (leaves & (leaves - 1)))
    return emitError() << "'#nn.tree' [C1] expects 1, 2, 4 or 8 leaves, got " << leaves;
  return success();
}

/// [C1] of softmax.
LogicalResult SoftmaxAttr::verify(EmitError emitError, int64_t block, SplitRule) {
  if (block <= 0)
    return emitError() << "'#nn.softmax' [C1] expects a positive block, got " << block;
  return success();
}

/// [C1] of blocks.
LogicalResult BlocksAttr::verify(EmitError emitError, Type, ArrayRef<int64_t> block, Type) {
  for (int64_t dim : block)
    if (dim <= 0)
      return emitError() << "'#nn.blocks' [C1] expects positive block dimensions, got " << dim;
  return success();
}

/// [C1], [C2], [C3] of slice.
LogicalResult SliceAttr::verify(EmitError emitError, ArrayRef<int64_t> dims, int64_t dim, int64_t from, int64_t to,
                                bool transpose) {
  int64_t rank = dims.size();
  if (dim < 0 || dim >= rank)
    return emitError() << "'#nn.slice' [C1] expects a dimension below " << rank << ", got " << dim;
  if (from < 0 || from >= to || to > dims[dim])
    return emitError() << "'#nn.slice' [C2] expects 0 <= from < to <= " << dims[dim] << ", got " << from << " to "
                       << to;
  if (transpose && rank < 2)
    return emitError() << "'#nn.slice' [C3] expects two dimensions to transpose, got " << rank;
  return success();
}

SmallVector<int64_t> SliceAttr::getShape() const {
  SmallVector<int64_t> shape(getDims());
  shape[getDim()] = getTo() - getFrom();
  if (getTranspose())
    std::swap(shape[shape.size() - 2], shape.back());
  return shape;
}

/// [C1], [C2], [C3] of indices.
LogicalResult IndicesAttr::verify(EmitError emitError, ArrayRef<k2c::IndexRange> ranges) {
  if (ranges.empty())
    return emitError() << "'#nn.indices' [C1] expects at least one range";
  for (const k2c::IndexRange &range : ranges) {
    if (range.from < 0 || range.from >= range.to)
      return emitError() << "'#nn.indices' [C1] expects 0 <= from < to, got " << range.from << " to " << range.to;
    if (range.step <= 0)
      return emitError() << "'#nn.indices' [C2] expects a positive step, got " << range.step;
  }
  std::vector<int64_t> members = k2c::membersOf({ranges.begin(), ranges.end()});
  auto twice = std::adjacent_find(members.begin(), members.end());
  if (twice != members.end())
    return emitError() << "'#nn.indices' [C3] expects every index once, got " << *twice << " in two ranges";
  return success();
}

int64_t IndicesAttr::size() const {
  int64_t count = 0;
  for (const k2c::IndexRange &range : getRanges())
    count += range.size();
  return count;
}

int64_t IndicesAttr::ordinal(int64_t index) const {
  int64_t before = 0;
  bool isMember = false;
  for (const k2c::IndexRange &range : getRanges()) {
    before += range.below(index);
    isMember |= range.contains(index);
  }
  return isMember ? before : -1;
}

/// [C1] of plane.
LogicalResult PlaneAttr::verify(EmitError emitError, StringRef name, ArrayRef<int64_t> dims, Type) {
  for (int64_t dim : dims)
    if (dim <= 0)
      return emitError() << "'#nn.plane' [C1] expects positive dimensions of plane '" << name << "', got " << dim;
  return success();
}

int64_t PlaneAttr::getWidth() const {
  int64_t width = 1;
  for (int64_t dim : getDims())
    width *= dim;
  return width;
}

/// [C1], [C2] of run.
LogicalResult LayerRunAttr::verify(EmitError emitError, ArrayRef<FlatSymbolRefAttr> callees, int64_t from, int64_t to) {
  if (from < 0 || from >= to)
    return emitError() << "'#nn.run' [C1] expects 0 <= from < to, got " << from << " to " << to;
  auto count = static_cast<int64_t>(callees.size());
  if (count < 1 || count > to - from)
    return emitError() << "'#nn.run' [C2] expects 1 to " << to - from << " callees for as many layers, got " << count;
  return success();
}

/// [C1], [C2] of rope.
LogicalResult RopeAttr::verify(EmitError emitError, FloatAttr, int64_t dims, Attribute scaling) {
  if (dims <= 0 || dims % 2)
    return emitError() << "'#nn.rope' [C1] expects a positive even number of dims, got " << dims;
  if (auto published = dyn_cast_or_null<FrequenciesAttr>(scaling))
    if (int64_t count = published.getValues().size(); count != dims / 2)
      return emitError() << "'#nn.rope' [C2] expects a frequency of each of " << dims / 2 << " pairs, got " << count;
  return success();
}

/// [C2], [C3] of kv_view ([C1] cannot be written down wrongly in C++).
LogicalResult KvViewType::verify(EmitError emitError, int64_t heads, int64_t keyDims, int64_t valueDims, Type,
                                 int64_t group) {
  for (int64_t dim : {heads, keyDims, valueDims})
    if (dim <= 0)
      return emitError() << "'!nn.kv_view' [C2] expects positive dimensions, got " << dim;
  if (group < 0)
    return emitError() << "'!nn.kv_view' [C3] expects a group that is not negative, got " << group;
  return success();
}
