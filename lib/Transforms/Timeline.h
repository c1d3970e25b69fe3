//===- Timeline.h - Which values need memory, and when --------------------===//
//
// Points of a function's time, over nested regions, and what lives between them: buffers, and asynchronous work between
// its start and its wait. group-launches, assign-memory and the verifier of the scheduled form read the same timeline.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_TRANSFORMS_TIMELINE_H
#define K2C_LIB_TRANSFORMS_TIMELINE_H

#include "dialects/Nn/Nn.h"
#include "k2c/Transforms/BoundBytes.h"
#include "llvm/ADT/DenseMap.h"

namespace k2c {

/// The step owns the logits that are sampled.
bool livesInStep(mlir::Value value);

/// True for ops that are no work, only a name for values that share a place (mla.merge_forms).
bool isJoin(mlir::Operation *op);

/// One buffer: the values that share its bytes, and its life as points, both ends included.
struct Buffer {
  llvm::SmallVector<mlir::Value, 2> values;
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
  int64_t offset = -1; ///< bytes; -1: not placed yet
};

/// Asynchronous work. Spans are several where its token is carried around a loop. Where a name of the token is taken by
/// nothing that is sure to run, its span ends with the function, and the work is not awaited.
struct Flight {
  nn::AsyncStart start;
  bool isAwaited = true;
  llvm::SmallVector<std::pair<int64_t, int64_t>, 1> spans; ///< from a point to a later one, both excluded
  bool isUnderway(int64_t at) const {
    return llvm::any_of(spans, [&](auto span) { return span.first < at && at < span.second; });
  }
};

/// The timeline of one function. Every op has a point; the calls of a group have one together, and an op with regions
/// has one before and one after all that is in them. Values that share a place are one buffer: those of a
/// SharedPlaceOp, and what control flow forwards. Logits that nn.sample hands to the step have no buffer.
class Timeline {
public:
  Timeline(mlir::FunctionOpInterface function, nn::LimitsAttr limits);

  llvm::SmallVector<Buffer> buffers; ///< in the order of the program
  llvm::SmallVector<Flight> flights;

  /// Index into `buffers`, or -1 when `value` has no memory.
  int64_t bufferOf(mlir::Value value) const;
  /// Buffers that have bytes; one that was joined into another has none.
  int64_t count() const {
    return llvm::count_if(buffers, [](const Buffer &buffer) { return !buffer.values.empty(); });
  }
  int64_t positionOf(mlir::Operation *op) const { return points.lookup(op).first; }
  /// The point behind all that is in `op`.
  int64_t endOf(mlir::Operation *op) const { return points.lookup(op).second; }
  /// The point at which `value` is there: behind its op, or at the op whose region it is an argument of; -1 for an
  /// argument of the function.
  int64_t definitionOf(mlir::Value value) const;
  /// The point at which `user` reads `value` last: in a loop that repeats around a value from outside, its end.
  int64_t useOf(mlir::Value value, mlir::Operation *user) const;

private:
  void number(mlir::Region &region);
  void live(mlir::Region &region);
  void enter(mlir::Operation *op);
  void define(mlir::Value value, int64_t at);
  void join(mlir::Value value, mlir::Value with);
  void fly(nn::AsyncStart start);
  void addSpan(Flight &flight, mlir::Value token, llvm::SmallVectorImpl<mlir::Value> &forwarded);

  nn::LimitsAttr limits;
  int64_t now = 0; ///< the next point
  llvm::DenseMap<mlir::Value, int64_t> index;
  llvm::DenseMap<mlir::Operation *, std::pair<int64_t, int64_t>> points;
};

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_TIMELINE_H
