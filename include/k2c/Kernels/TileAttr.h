//===- TileAttr.h - #kern.tile and TileConfig -----------------------------===//
//
// The same choice in the IR and in plain C++; the only place that converts.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_TILEATTR_H
#define K2C_KERNELS_TILEATTR_H

#include "dialects/Kern/Kern.h"
#include "k2c/Kernels/TileConfig.h"

namespace k2c {

inline kern::TileAttr tileAttr(mlir::MLIRContext *context, const TileConfig &tile) {
  auto vocabulary = tile.vocabulary == Vocabulary::Avx512 ? kern::Vocabulary::Avx512 : kern::Vocabulary::Generic;
  return kern::TileAttr::get(context, vocabulary, tile.lanes, tile.mr, tile.nrVectors, tile.prefetch, tile.rowsPerItem,
                             tile.headTile, tile.valueParts, tile.splitTokens);
}

inline TileConfig tileConfig(kern::TileAttr tile) {
  TileConfig config;
  config.vocabulary = tile.getVocabulary() == kern::Vocabulary::Avx512 ? Vocabulary::Avx512 : Vocabulary::Generic;
  config.lanes = tile.getLanes();
  config.mr = tile.getMr();
  config.nrVectors = tile.getNr();
  config.prefetch = tile.getPrefetch();
  config.rowsPerItem = tile.getRowsBlock();
  config.headTile = tile.getHeadTile();
  config.valueParts = tile.getValueParts();
  config.splitTokens = tile.getSplitTokens();
  return config;
}

} // namespace k2c

#endif // K2C_KERNELS_TILEATTR_H
