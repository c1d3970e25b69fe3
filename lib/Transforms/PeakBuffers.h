//===- PeakBuffers.h - What the arena holds when it is fullest -------------===//
//
// Analysis of assign-memory: the buffers below the highest byte of the arena, so that a user sees which operations an
// arena is as large as it is for.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_TRANSFORMS_PEAKBUFFERS_H
#define K2C_LIB_TRANSFORMS_PEAKBUFFERS_H

#include "Timeline.h"
#include "mlir/IR/SymbolTable.h"

namespace k2c {

/// The live ranges of every placed function's buffers, with their offsets.
using PlacedTimelines = llvm::DenseMap<mlir::Operation *, std::unique_ptr<Timeline>>;

/// A buffer that is alive at the fullest moment.
struct PeakBuffer {
  mlir::Value value; ///< the first that lies in it
  int64_t bytes = 0, offset = 0;
};

/// The buffers alive when `entry` and the layers that it calls reach their highest byte, the largest first; values that
/// share a place are one buffer. Without `reuse` all buffers are alive at once.
llvm::SmallVector<PeakBuffer> buffersAtPeak(mlir::FunctionOpInterface entry, const PlacedTimelines &timeline,
                                            mlir::SymbolTable &symbols, bool reuse);

/// What makes a value, and where it comes from: "@linear in 'layer' (model.layers.{}.mlp.up_proj.weight)".
std::string nameOf(mlir::Value value);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_PEAKBUFFERS_H
