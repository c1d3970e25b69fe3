//===- KernVerify.cpp - Verifiers of the kern dialect ---------------------===//
//
// Ids are those of KernOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Kern/Kern.h"

using namespace mlir;
using namespace k2c::kern;

/// [C1] of tile.
LogicalResult TileAttr::verify(function_ref<InFlightDiagnostic()> emitError, Vocabulary, int64_t lanes, int64_t mr,
                               int64_t nr, int64_t prefetch, int64_t rowsBlock, int64_t keyTile, int64_t headTile) {
  std::pair<StringRef, int64_t> positive[] = {{"lanes", lanes}, {"mr", mr}, {"nr", nr}, {"key_tile", keyTile}, {"head_tile", headTile}};
  for (auto [name, value] : positive)
    if (value <= 0)
      return emitError() << "'#kern.tile' [C1] expects positive " << name << ", got " << value;
  if (prefetch < 0 || rowsBlock < 0)
    return emitError() << "'#kern.tile' [C1] expects no negative prefetch or rows_block, got " << prefetch << " and "
                       << rowsBlock;
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &) { return success(); }
