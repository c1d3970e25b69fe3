//===- MlaVerify.cpp - Verifiers and folds of the mla dialect -------------===//
//
// Ids are those of MlaBase.td and MlaOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Mla/Mla.h"
#include "dialects/Nn/NnVerify.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace k2c::mla;
using namespace k2c::nn;

/// [C1] of forms.
LogicalResult FormsAttr::verify(function_ref<InFlightDiagnostic()> emitError, Form, Form generated) {
  if (generated == Form::Table)
    return emitError() << "'#mla.forms' [C1] expects one form for generated segments, got table";
  return success();
}

/// [C1], [C3] of view.
LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t latent, int64_t rope, Type,
                               int64_t group) {
  for (int64_t width : {latent, rope})
    if (width <= 0)
      return emitError() << "'!mla.view' [C1] expects positive widths, got " << width;
  if (group < 0)
    return emitError() << "'!mla.view' [C3] expects a group that is not negative, got " << group;
  return success();
}

/// `<latent = 512 x f32, rope = 64 x f32>`; [C2] of view.
Type ViewType::parse(AsmParser &parser) {
  SMLoc place = parser.getCurrentLocation();
  SmallVector<int64_t> latent, rope;
  Type element, ropeElement;
  int64_t group;
  if (parser.parseLess() || parser.parseKeyword("latent") || parser.parseEqual() ||
      parseDimsAndElement(parser, latent, element) || parser.parseComma() || parser.parseKeyword("rope") ||
      parser.parseEqual() || parseDimsAndElement(parser, rope, ropeElement) || parseCacheGroup(parser, group) ||
      parser.parseGreater())
    return {};
  if (latent.size() != 1 || rope.size() != 1) {
    parser.emitError(place, "expected `latent = width x type, rope = width x type`");
    return {};
  }
  if (element != ropeElement) {
    parser.emitError(place, "'!mla.view' [C2] expects one element type, got ") << element << " and " << ropeElement;
    return {};
  }
  return getChecked([&] { return parser.emitError(place); }, parser.getContext(), latent[0], rope[0], element, group);
}

void ViewType::print(AsmPrinter &printer) const {
  printer << "<latent = ";
  printDimsAndElement(printer, getLatent(), getElement());
  printer << ", rope = ";
  printDimsAndElement(printer, getRope(), getElement());
  printCacheGroup(printer, getGroup());
  printer << '>';
}

//===----------------------------------------------------------------------===//
// append
//===----------------------------------------------------------------------===//

/// [C1], [C2] of append.
LogicalResult k2c::mla::AppendOp::verify() {
  ViewType view = getView().getType();
  if (failed(checkStepRows(*this, "C1", "the latent", getLatent().getType())) ||
      failed(checkShape(*this, "C2", "latent columns", columnsOf(getLatent().getType()), view.getLatent())))
    return failure();
  return checkShape(*this, "C2", "rope columns", columnsOf(getRope().getType()), view.getRope());
}

/// [C3], [C4] of append.
LogicalResult k2c::mla::AppendOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto pool = tables.lookupNearestSymbolFrom<PoolOp>(*this, getPoolAttr());
  if (!pool)
    return emitOpError("[C3] expects ") << getPoolAttr() << " to be an nn.pool";
  ViewType view = getView().getType();
  if (failed(checkPlane(*this, "C3", pool, "latent", view.getLatent(), view.getElement())) ||
      failed(checkPlane(*this, "C3", pool, "rope", view.getRope(), view.getElement())))
    return failure();
  return checkEqual(*this, "C4", "the view's group", view.getGroup(), "the pool's", pool.getGroup());
}

//===----------------------------------------------------------------------===//
// Attention in its forms
//===----------------------------------------------------------------------===//

/// [C2], [C3], [C4], [C6] of attention.
LogicalResult k2c::mla::AttentionOp::verify() {
  if (failed(checkStepRows(*this, "C6", "the query", getQuery().getType())) ||
      failed(checkRank(*this, "C2", "a query", getQuery().getType(), 3)) ||
      failed(
          checkEqual(*this, "C2", "query dims", widthOf(getQuery().getType()), "nope + rope", getNope() + getRope())) ||
      failed(checkEqual(*this, "C4", "the view's rope width", getView().getType().getRope(), "rope", getRope())))
    return failure();
  return checkShape(*this, "C3", "result columns", columnsOf(getResult().getType()),
                    {columnsOf(getQuery().getType())[0], getV()});
}

/// [C5] of attention.
LogicalResult k2c::mla::AttentionOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  return checkShape(*this, "C5", "a weight", types[0].getShape(),
                    {columnsOf(getQuery().getType())[0], getNope() + getV(), getView().getType().getLatent()});
}

/// [C2] of absorb_query and expand_output.
static LogicalResult verifyHeads(Operation *op, Type input, Type result) {
  if (failed(checkRank(op, "C2", "an input", input, 3)) || failed(checkRank(op, "C2", "a result", result, 3)))
    return failure();
  return checkEqual(op, "C2", "result heads", columnsOf(result)[0], "input heads", columnsOf(input)[0]);
}

LogicalResult AbsorbQueryOp::verify() { return verifyHeads(*this, getInput().getType(), getResult().getType()); }
LogicalResult ExpandOutputOp::verify() { return verifyHeads(*this, getInput().getType(), getResult().getType()); }

/// [C3] of absorb_query and expand_output.
static LogicalResult verifyHeadWeight(Operation *op, Type weight, Type input, Type result) {
  return checkShape(op, "C3", "a weight", cast<RankedTensorType>(weight).getShape(),
                    {columnsOf(input)[0], widthOf(result), widthOf(input)});
}

LogicalResult AbsorbQueryOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  return verifyHeadWeight(*this, types[0], getInput().getType(), getResult().getType());
}
LogicalResult ExpandOutputOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  return verifyHeadWeight(*this, types[0], getInput().getType(), getResult().getType());
}

/// [C2], [C3], [C4] of attention_absorbed.
LogicalResult AttentionAbsorbedOp::verify() {
  ViewType view = getView().getType();
  if (failed(checkStepRows(*this, "C4", "the query", getQuery().getType())) ||
      failed(checkRank(*this, "C2", "a query", getQuery().getType(), 3)))
    return failure();
  int64_t heads = columnsOf(getQuery().getType())[0];
  if (failed(checkShape(*this, "C2", "query columns", columnsOf(getQuery().getType()), {heads, view.getLatent()})) ||
      failed(checkShape(*this, "C2", "result columns", columnsOf(getResult().getType()), {heads, view.getLatent()})))
    return failure();
  return checkShape(*this, "C3", "rotary columns", columnsOf(getRotary().getType()), {heads, view.getRope()});
}

/// [C2], [C5] of attention_expanded.
LogicalResult AttentionExpandedOp::verify() {
  if (failed(checkStepRows(*this, "C5", "the query", getQuery().getType())))
    return failure();
  return verifyHeads(*this, getQuery().getType(), getResult().getType());
}

/// [C3], [C4] of attention_expanded.
LogicalResult AttentionExpandedOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  ViewType view = getView().getType();
  int64_t heads = columnsOf(getQuery().getType())[0];
  if (failed(checkShape(*this, "C3", "uk", types[0].getShape(),
                        {heads, widthOf(getQuery().getType()) - view.getRope(), view.getLatent()})))
    return failure();
  return checkShape(*this, "C4", "uv", types[1].getShape(), {heads, widthOf(getResult().getType()), view.getLatent()});
}

/// [C2] of merge_forms.
LogicalResult MergeFormsOp::verify() { return checkStepRows(*this, "C2", "the result", getResult().getType()); }

/// Rows of one value need no merge.
OpFoldResult MergeFormsOp::fold(FoldAdaptor) { return getAbsorbed() == getExpanded() ? getAbsorbed() : Value(); }
