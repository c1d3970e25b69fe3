//===- LayoutAttr.cpp - Layouts of weights in the IR and in plain C++ -----===//
#include "k2c/Kernels/LayoutAttr.h"
#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;

namespace k2c {

/// name() is MLIR's spelling.
static Type elementType(MLIRContext *context, DType type) { return parseType(name(type), context); }

Attribute layoutAttr(MLIRContext *context, const Operand &operand) {
  const PanelLayout &p = operand.panels;
  if (operand.role != Operand::Role::Weight || p.n == 0)
    return rt::RowMajorAttr::get(context, elementType(context, operand.type), operand.elements);
  return rt::PanelsAttr::get(context, elementType(context, p.type), p.matrices, p.n, p.k, p.interleave, p.scaleColumns,
                             p.scaleRows);
}

DType elementOf(Attribute layout) {
  auto panels = dyn_cast<rt::PanelsAttr>(layout);
  Type type = panels ? panels.getType() : cast<rt::RowMajorAttr>(layout).getType();
  for (DType stored : {DType::F32, DType::BF16, DType::F16, DType::F8E4M3, DType::F8E5M2, DType::I32})
    if (type == elementType(layout.getContext(), stored))
      return stored;
  llvm_unreachable("layoutAttr() wrote the type");
}

std::optional<PanelLayout> panelLayout(Attribute layout) {
  auto panels = dyn_cast<rt::PanelsAttr>(layout);
  if (!panels)
    return std::nullopt;
  PanelLayout p;
  p.type = elementOf(layout);
  p.matrices = panels.getMatrices();
  p.n = panels.getN();
  p.k = panels.getK();
  p.interleave = panels.getInterleave();
  p.scaleColumns = panels.getScaleColumns();
  p.scaleRows = panels.getScaleRows();
  return p;
}

} // namespace k2c
