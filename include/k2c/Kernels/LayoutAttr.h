//===- LayoutAttr.h - Layouts of weights in the IR and in plain C++ -------===//
//
// #rt.panels is PanelLayout, #rt.rows is RowLayout, #rt.row_major the elements as they come; with TileAttr.h the only
// place that converts.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_LAYOUTATTR_H
#define K2C_KERNELS_LAYOUTATTR_H

#include "dialects/Rt/Rt.h"
#include "k2c/Kernels/WeightLayout.h"
#include <optional>

namespace k2c {

/// How the weight or table `operand` of a kernel whose matrices lie in `weights` lies in its slot. Equal layouts can
/// share a slot.
mlir::Attribute layoutAttr(mlir::MLIRContext *context, const Operand &operand, WeightLayout weights);

/// The element type of a layout.
DType elementOf(mlir::Attribute layout);

/// The matrices of a layout; none of elements as they come.
std::optional<MatrixLayout> matrixLayout(mlir::Attribute layout);

} // namespace k2c

#endif // K2C_KERNELS_LAYOUTATTR_H
