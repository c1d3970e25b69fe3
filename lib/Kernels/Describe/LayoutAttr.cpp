//===- LayoutAttr.cpp - Layouts of weights in the IR and in plain C++ -----===//
#include "k2c/Kernels/LayoutAttr.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace k2c {

/// name() is MLIR's spelling.
static Type elementType(MLIRContext *context, DType type) { return parseType(name(type), context); }

/// An attribute of matrices, #rt.panels or #rt.rows, and back.
template <class Attr> static Attribute matrixAttr(MLIRContext *context, const Matrix &m) {
  return Attr::get(context, elementType(context, m.type), m.count, m.n, m.k, m.parts, m.blockColumns, m.blockRows);
}
template <class Attr> static Matrix matrixOf(Attr layout) {
  return {elementOf(layout), layout.getMatrices(),     layout.getN(),        layout.getK(),
          layout.getParts(), layout.getBlockColumns(), layout.getBlockRows()};
}

Attribute layoutAttr(MLIRContext *context, const Operand &operand, WeightLayout weights) {
  if (!operand.isMatrix())
    return rt::RowMajorAttr::get(context, elementType(context, operand.type), operand.elements);
  return weights == WeightLayout::Panels ? matrixAttr<rt::PanelsAttr>(context, operand.matrix)
                                         : matrixAttr<rt::RowsAttr>(context, operand.matrix);
}

DType elementOf(Attribute layout) {
  Type type = TypeSwitch<Attribute, Type>(layout).Case<rt::PanelsAttr, rt::RowsAttr, rt::RowMajorAttr>(
      [](auto known) { return known.getType(); });
  for (DType stored : {DType::F32, DType::BF16, DType::F16, DType::F8E4M3, DType::F8E5M2, DType::I32})
    if (type == elementType(layout.getContext(), stored))
      return stored;
  llvm_unreachable("layoutAttr() wrote the type");
}

std::optional<MatrixLayout> matrixLayout(Attribute layout) {
  if (auto panels = dyn_cast<rt::PanelsAttr>(layout))
    return PanelLayout{matrixOf(panels)};
  if (auto rows = dyn_cast<rt::RowsAttr>(layout))
    return RowLayout{matrixOf(rows)};
  return std::nullopt;
}

} // namespace k2c
