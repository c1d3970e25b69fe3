//===- BufferLives.h - Which values need memory, and for how long ---------===//
//
// Analysis of assign-memory, apart from the writing of offsets.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_TRANSFORMS_BUFFERLIVES_H
#define K2C_LIB_TRANSFORMS_BUFFERLIVES_H

#include "dialects/Nn/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace k2c {

/// Bytes `type` takes at most under `limits`; 0 for values without memory (cache views, the step, layer indices).
int64_t boundBytes(mlir::Type type, nn::LimitsAttr limits);

/// One buffer: the values that share its bytes, and its life as op positions in the block, both ends included. The
/// calls of a group have one position.
struct Buffer {
  llvm::SmallVector<mlir::Value, 2> values;
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
  int64_t offset = -1; ///< bytes; -1: not placed yet
};

/// The buffers of one function's block in program order. merge_forms joins its operands and result, nn.layers its
/// argument and result; logits that nn.sample hands to the step lie in the step and have no buffer.
class BufferLives {
public:
  BufferLives(mlir::func::FuncOp function, nn::LimitsAttr limits);

  llvm::SmallVector<Buffer> buffers;
  /// Index into `buffers`, or -1 when `value` has no memory.
  int64_t bufferOf(mlir::Value value) const;
  /// Buffers that have bytes; one that was joined into another has none.
  int64_t count() const {
    return llvm::count_if(buffers, [](const Buffer &buffer) { return !buffer.values.empty(); });
  }
  int64_t positionOf(mlir::Operation *op) const { return position.lookup(op); }

private:
  void define(mlir::Value value, int64_t at, nn::LimitsAttr limits);
  void join(mlir::Value value, mlir::Value with);

  llvm::DenseMap<mlir::Value, int64_t> index;
  llvm::DenseMap<mlir::Operation *, int64_t> position;
};

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_BUFFERLIVES_H
