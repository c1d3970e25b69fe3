//===- NnSymbols.cpp - Weight families, tables, pools ---------------------===//
//
// Queries and verifiers; ids are those of NnSymbols.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Nn/NnVerify.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace k2c::nn;

/// What stands between braces in a source name.
static SmallVector<StringRef> placeholders(StringRef source) {
  SmallVector<StringRef> found;
  for (size_t open = source.find('{'); open != StringRef::npos; open = source.find('{', open + 1))
    found.push_back(source.substr(open + 1).split('}').first);
  return found;
}

//===----------------------------------------------------------------------===//
// weights
//===----------------------------------------------------------------------===//

IndicesAttr WeightsOp::getDomain(StringRef name) {
  for (auto domain : getDomains().getAsRange<DomainAttr>())
    if (domain.getName() == name)
      return domain.getIndices();
  return nullptr;
}

SmallVector<StringRef> WeightsOp::getAlternatives() {
  SmallVector<StringRef> names;
  for (StringRef placeholder : placeholders(getSource()))
    if (placeholder.contains('|'))
      placeholder.split(names, '|');
  return names;
}

int64_t WeightsOp::getLeadingDims() { return (getDomain("expert") ? 1 : 0) + (getAlternatives().empty() ? 0 : 1); }

/// [C1] of weights.
static LogicalResult verifyPlaceholders(WeightsOp op) {
  llvm::StringSet<> named;
  for (StringRef name : placeholders(op.getSource())) {
    if (name.contains('|'))
      continue;
    named.insert(name);
    if (!op.getDomain(name))
      return op.emitOpError("[C1] expects a domain for placeholder {") << name << "} of \"" << op.getSource() << '"';
  }
  for (auto domain : op.getDomains().getAsRange<DomainAttr>())
    if (!named.contains(domain.getName()))
      return op.emitOpError("[C1] expects a placeholder {") << domain.getName() << "} in \"" << op.getSource() << '"';
  return success();
}

/// [C8] of weights.
static LogicalResult verifyParts(WeightsOp op) {
  if (op.getParts().has_value() != op.getAlong().has_value())
    return op.emitOpError("[C8] expects parts along a dimension, got one without the other");
  if (!op.getParts())
    return success();
  ArrayRef<int64_t> shape = op.getTensorType().getShape();
  const int64_t parts = *op.getParts(), along = *op.getAlong(), leading = op.getLeadingDims();
  if (along < leading || along >= static_cast<int64_t>(shape.size()))
    return op.emitOpError("[C8] expects parts along one of dimensions ")
           << leading << " to " << shape.size() - 1 << ", got " << along;
  if (parts < 2 || shape[along] % parts != 0)
    return op.emitOpError("[C8] expects two parts or more that divide ") << shape[along] << ", got " << parts;
  return success();
}

/// [C1] to [C8] of weights.
LogicalResult WeightsOp::verify() {
  RankedTensorType type = getTensorType();
  if (failed(verifyPlaceholders(*this)))
    return failure();
  if (!type.hasStaticShape())
    return emitOpError("[C4] expects a static type, got ") << type;
  ArrayRef<int64_t> own = type.getShape();
  auto takeFront = [&](StringRef id, StringRef what, int64_t size) {
    int64_t dim = own.empty() ? 1 : own.front();
    own = own.empty() ? own : own.drop_front();
    return checkEqual(*this, id, "leading dimension", dim, what, size);
  };
  if (IndicesAttr experts = getDomain("expert"))
    if (failed(takeFront("C2", "number of experts", experts.size())))
      return failure();
  if (int64_t alternatives = getAlternatives().size())
    if (failed(takeFront("C3", "number of alternatives", alternatives)))
      return failure();
  if (SliceAttr view = getViewAttr())
    if (failed(checkShape(*this, "C5", "a view", view.getShape(), own)))
      return failure();
  if (getStorage() && getStorage()->getBlock().size() > own.size())
    return emitOpError("[C6] expects at most ")
           << own.size() << " block dimensions, got " << getStorage()->getBlock().size();
  if (getHeld() && (*getHeld() < 1 || !getDomain("expert")))
    return emitOpError("[C7] expects a rank to hold 1 or more of several experts, got ") << *getHeld();
  return verifyParts(*this);
}

//===----------------------------------------------------------------------===//
// constant_table, pool
//===----------------------------------------------------------------------===//

/// [C1], [C2] of constant_table.
LogicalResult ConstantTableOp::verify() {
  RankedTensorType type = getTensorType();
  if (failed(checkRank(*this, "C1", "a table", type, 3)) ||
      failed(checkShape(*this, "C1", "a table row", columnsOf(type), {2, getTable().getDims() / 2})))
    return failure();
  return checkElement(*this, "C2", "a table", type, Float32Type::get(getContext()));
}

IndicesAttr PoolOp::getLayers() { return cast<DomainAttr>(getDomains()[0]).getIndices(); }

PlaneAttr PoolOp::getPlane(StringRef name) {
  for (auto plane : getPlanes().getAsRange<PlaneAttr>())
    if (plane.getName() == name)
      return plane;
  return nullptr;
}

/// [C1] to [C4] of pool.
LogicalResult PoolOp::verify() {
  if (getDomains().size() != 1 || cast<DomainAttr>(getDomains()[0]).getName() != "layer")
    return emitOpError("[C1] expects one domain, layer, got ") << getDomains().size() << " domains";
  llvm::StringSet<> names;
  if (getPlanes().empty())
    return emitOpError("[C2] expects at least one plane");
  for (auto plane : getPlanes().getAsRange<PlaneAttr>())
    if (!names.insert(plane.getName()).second)
      return emitOpError("[C2] expects different plane names, got '") << plane.getName() << "' twice";
  if (getPage() <= 0 || getPage() % 64)
    return emitOpError("[C3] expects a page of a positive multiple of 64 tokens, got ") << getPage();
  if (getGroup() < 0)
    return emitOpError("[C4] expects a group that is not negative, got ") << getGroup();
  return success();
}
