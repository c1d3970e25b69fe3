//===- LayoutAttr.h - Layouts of weights in the IR and in plain C++ -------===//
//
// #rt.panels is PanelLayout, #rt.row_major the elements as they come; with TileAttr.h the only place that converts.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_LAYOUTATTR_H
#define K2C_KERNELS_LAYOUTATTR_H

#include "dialects/Rt/Rt.h"
#include "k2c/Kernels/KernelDesc.h"
#include <optional>

namespace k2c {

/// How the weight or table `operand` lies in its slot. Equal layouts can share a slot.
mlir::Attribute layoutAttr(mlir::MLIRContext *context, const Operand &operand);

/// The element type of a layout.
DType elementOf(mlir::Attribute layout);

/// The panels of a layout; none of one that is row-major.
std::optional<PanelLayout> panelLayout(mlir::Attribute layout);

} // namespace k2c

#endif // K2C_KERNELS_LAYOUTATTR_H
