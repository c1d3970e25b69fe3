//===- TileAttr.h - Tiles and targets in the IR and in plain C++ ----------===//
//
// #kern.tile is TileConfig, #kern.cpu and #kern.gpu are TargetInfo; the only place that converts.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_TILEATTR_H
#define K2C_KERNELS_TILEATTR_H

#include "dialects/Kern/Kern.h"
#include "k2c/Kernels/TileConfig.h"

namespace k2c {

inline kern::TileAttr tileAttr(mlir::MLIRContext *context, const TileConfig &tile) {
  auto instructionSet =
      tile.instructionSet == InstructionSet::Avx512 ? kern::InstructionSet::Avx512 : kern::InstructionSet::Generic;
  auto weights = tile.weights == WeightLayout::Rows ? kern::WeightLayout::Rows : kern::WeightLayout::Panels;
  return kern::TileAttr::get(context, instructionSet, tile.lanes, tile.mr, tile.nrVectors, tile.prefetch,
                             tile.rowsPerItem, tile.headTile, tile.valueParts, tile.splitTokens, weights);
}

inline WeightLayout weightLayout(kern::WeightLayout layout) {
  return layout == kern::WeightLayout::Rows ? WeightLayout::Rows : WeightLayout::Panels;
}

inline TileConfig tileConfig(kern::TileAttr tile) {
  TileConfig config;
  config.instructionSet =
      tile.getInstructionSet() == kern::InstructionSet::Avx512 ? InstructionSet::Avx512 : InstructionSet::Generic;
  config.lanes = tile.getLanes();
  config.mr = tile.getMr();
  config.nrVectors = tile.getNr();
  config.prefetch = tile.getPrefetch();
  config.rowsPerItem = tile.getRowsBlock();
  config.headTile = tile.getHeadTile();
  config.valueParts = tile.getValueParts();
  config.splitTokens = tile.getSplitTokens();
  config.weights = weightLayout(tile.getWeights());
  return config;
}

/// The layout in which `kernel` reads matrices: its tile's; panels before it has one.
inline WeightLayout weightsOf(kern::FuncOp kernel) {
  return kernel.getTile() ? tileConfig(*kernel.getTile()).weights : WeightLayout::Panels;
}

inline TargetInfo targetInfo(kern::CpuAttr cpu) {
  std::vector<std::string> features;
  for (auto feature : cpu.getFeatures().getAsRange<mlir::StringAttr>())
    features.push_back(feature.str());
  TargetInfo target = cpuTarget(features, cpu.getL1(), cpu.getL2());
  target.weights = weightLayout(cpu.getWeights());
  return target;
}

/// Of kern.target: #kern.cpu or #kern.gpu.
inline TargetInfo targetInfo(mlir::Attribute target) {
  if (auto gpu = mlir::dyn_cast<kern::GpuAttr>(target)) {
    TargetInfo warp = gpuTarget();
    warp.weights = weightLayout(gpu.getWeights());
    return warp;
  }
  return targetInfo(mlir::cast<kern::CpuAttr>(target));
}

} // namespace k2c

#endif // K2C_KERNELS_TILEATTR_H
