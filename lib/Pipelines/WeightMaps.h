//===- WeightMaps.h - The weight map of a program -------------------------===//
#ifndef K2C_LIB_PIPELINES_WEIGHTMAPS_H
#define K2C_LIB_PIPELINES_WEIGHTMAPS_H

#include "k2c/Conversion/WeightSlots.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Weights/WeightMap.h"

namespace k2c {

/// Where the bytes of every slot come from: tensor names and views from the nn.weights of the module, layouts from the
/// kernels, rotary tables from `spec`. Slots are numbered as in `weights`.
WeightMap weightMapOf(const ProgramWeights &weights, const ModelSpec &spec);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_WEIGHTMAPS_H
