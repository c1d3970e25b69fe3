//===- WeightMaps.h - The weight map of a program -------------------------===//
#ifndef K2C_LIB_PIPELINES_WEIGHTMAPS_H
#define K2C_LIB_PIPELINES_WEIGHTMAPS_H

#include "k2c/Model/ModelSpec.h"
#include "k2c/Weights/WeightMap.h"
#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Where the bytes of every slot come from, of a module in the runtime form: slots and layouts from its
/// rt.weight_slots, tensor names and views from their nn.weights, rotary tables and the shapes of the checkpoint from
/// `spec`.
WeightMap weightMapOf(mlir::ModuleOp runtime, const ModelSpec &spec);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_WEIGHTMAPS_H
