//===- Lanes.h - What the lanes of a warp do together ---------------------------===//
#ifndef K2C_LIB_KERNELS_NVIDIA_LANES_H
#define K2C_LIB_KERNELS_NVIDIA_LANES_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace k2c::warp {

constexpr int64_t lanes = 32;

/// Code of a warp at `ops`' insertion point. A value is one of each lane.
class Lanes {
public:
  Lanes(mlir::OpBuilder &ops, mlir::Location loc) : ops(ops), loc(loc) {}

  /// This lane, i32.
  mlir::Value id();
  /// values[lane] of an integer type, at most 64 bits.
  mlir::Value table(mlir::Type type, llvm::ArrayRef<uint64_t> values);
  /// What lane `from` (i32, of this lane's choice) has of `value`, of at most 32 bits.
  mlir::Value valueOf(mlir::Value value, mlir::Value from);
  /// The largest, or smallest, of all lanes, signed.
  mlir::Value reduce(mlir::Value value, bool isMax);
  /// The sum of what this lane and those below it have, i32.
  mlir::Value sumUpTo(mlir::Value value);
  /// The lanes that have the same i32, a bit each.
  mlir::Value peers(mlir::Value value);
  /// The lanes below this one, a bit each.
  mlir::Value below();
  /// Lanes wait for each other, and see what the others have written.
  void sync();

private:
  mlir::Value constant(int64_t value);
  mlir::Value intrinsic(llvm::StringRef name, llvm::ArrayRef<mlir::Value> operands);
  mlir::Value asBits(mlir::Value value);
  mlir::Value ofBits(mlir::Value bits, mlir::Type type);

  mlir::OpBuilder &ops;
  mlir::Location loc;
};

} // namespace k2c::warp

#endif // K2C_LIB_KERNELS_NVIDIA_LANES_H
