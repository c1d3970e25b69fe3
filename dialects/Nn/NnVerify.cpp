//===- NnVerify.cpp - Verifiers of nn ops ---------------------------------===//
#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace k2c::nn;

LogicalResult WeightsOp::verify() { return success(); }
LogicalResult ConstantTableOp::verify() { return success(); }
LogicalResult PoolOp::verify() { return success(); }
DomainAttr WeightsOp::getDomain(StringRef name) {
  for (auto domain : getDomains().getAsRange<DomainAttr>())
    if (domain.getName() == name)
      return domain;
  return nullptr;
}
SmallVector<StringRef> WeightsOp::getAlternatives() {
  SmallVector<StringRef> names;
  StringRef rest = getSource();
  while (!rest.empty()) {
    auto [inside, after] = rest.split('{').second.split('}');
    if (inside.contains('|'))
      inside.split(names, '|');
    rest = after;
  }
  return names;
}
DomainAttr PoolOp::getLayers() { return cast<DomainAttr>(getDomains()[0]); }
PlaneAttr PoolOp::getPlane(StringRef name) {
  for (auto plane : getPlanes().getAsRange<PlaneAttr>())
    if (plane.getName() == name)
      return plane;
  return nullptr;
}
LogicalResult LayersOp::verifySymbolUses(SymbolTableCollection &) { return success(); }
LogicalResult AppendOp::verifySymbolUses(SymbolTableCollection &) { return success(); }
