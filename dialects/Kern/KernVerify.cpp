//===- KernVerify.cpp - Verifiers of the kern dialect ---------------------===//
//
// Ids are those of KernOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Kern/Kern.h"

using namespace mlir;
using namespace k2c::kern;

/// [C1] of tile.
LogicalResult TileAttr::verify(function_ref<InFlightDiagnostic()> emitError, Vocabulary, int64_t mr, int64_t nr,
                               int64_t prefetch, int64_t rowsBlock) {
  if (mr <= 0 || nr <= 0 || rowsBlock <= 0 || prefetch < 0)
    return emitError() << "'#kern.tile' [C1] expects positive mr, nr, rows_block and no negative prefetch, got " << mr << ", "
                       << nr << ", " << rowsBlock << ", " << prefetch;
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &) { return success(); }
