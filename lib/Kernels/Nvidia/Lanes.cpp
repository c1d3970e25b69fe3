//===- Lanes.cpp - What the lanes of a warp do together -------------------------===//
#include "Lanes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace k2c::warp {

Value Lanes::constant(int64_t value) {
  return arith::ConstantOp::create(ops, loc, ops.getI32IntegerAttr(int32_t(value)));
}

Value Lanes::intrinsic(StringRef name, ArrayRef<Value> operands) {
  return LLVM::CallIntrinsicOp::create(ops, loc, ops.getI32Type(), ops.getStringAttr(name), ValueRange(operands))
      .getResults();
}

Value Lanes::id() { return intrinsic("llvm.nvvm.read.ptx.sreg.laneid", {}); }

/// Bit b of all values is a mask of lanes, of which each lane takes its own.
Value Lanes::table(Type type, ArrayRef<uint64_t> values) {
  auto wide = [&](uint64_t value) -> Value {
    return arith::ConstantOp::create(ops, loc, ops.getIntegerAttr(type, int64_t(value)));
  };
  if (llvm::all_equal(values))
    return wide(values.front());
  Value lane = id(), sum;
  for (unsigned bit = 0; bit < type.getIntOrFloatBitWidth(); ++bit) {
    uint32_t mask = 0;
    for (unsigned i = 0; i < values.size(); ++i)
      mask |= uint32_t(values[i] >> bit & 1) << i;
    if (mask == 0)
      continue;
    Value own = arith::ShRUIOp::create(ops, loc, constant(int32_t(mask)), lane);
    own = arith::AndIOp::create(ops, loc, own, constant(1));
    if (type.isInteger(1))
      return arith::TruncIOp::create(ops, loc, type, own);
    if (type.getIntOrFloatBitWidth() > 32)
      own = arith::ExtUIOp::create(ops, loc, type, own);
    else if (type.getIntOrFloatBitWidth() < 32)
      own = arith::TruncIOp::create(ops, loc, type, own);
    own = arith::ShLIOp::create(ops, loc, own, wide(bit));
    sum = sum ? Value(arith::OrIOp::create(ops, loc, sum, own)) : own;
  }
  return sum;
}

Value Lanes::asBits(Value value) {
  Type type = value.getType();
  if (!isa<IntegerType>(type)) {
    type = ops.getIntegerType(type.getIntOrFloatBitWidth());
    value = arith::BitcastOp::create(ops, loc, type, value);
  }
  return type.isInteger(32) ? value : Value(arith::ExtUIOp::create(ops, loc, ops.getI32Type(), value));
}

Value Lanes::ofBits(Value bits, Type type) {
  Type integer = ops.getIntegerType(type.getIntOrFloatBitWidth());
  if (!integer.isInteger(32))
    bits = arith::TruncIOp::create(ops, loc, integer, bits);
  return integer == type ? bits : Value(arith::BitcastOp::create(ops, loc, type, bits));
}

Value Lanes::valueOf(Value value, Value from) {
  Value bits = intrinsic("llvm.nvvm.shfl.sync.idx.i32", {constant(-1), asBits(value), from, constant(lanes - 1)});
  return ofBits(bits, value.getType());
}

Value Lanes::reduce(Value value, bool isMax) {
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2) {
    Value other = intrinsic("llvm.nvvm.shfl.sync.bfly.i32",
                            {constant(-1), asBits(value), constant(distance), constant(lanes - 1)});
    other = ofBits(other, value.getType());
    value = isMax ? Value(arith::MaxSIOp::create(ops, loc, value, other))
                  : Value(arith::MinSIOp::create(ops, loc, value, other));
  }
  return value;
}

Value Lanes::sumUpTo(Value value) {
  Value lane = id();
  for (int64_t distance = 1; distance < lanes; distance *= 2) {
    Value other = intrinsic("llvm.nvvm.shfl.sync.up.i32", {constant(-1), value, constant(distance), constant(0)});
    Value isIn = arith::CmpIOp::create(ops, loc, arith::CmpIPredicate::sge, lane, constant(distance));
    other = arith::SelectOp::create(ops, loc, isIn, other, constant(0));
    value = arith::AddIOp::create(ops, loc, value, other);
  }
  return value;
}

Value Lanes::peers(Value value) { return intrinsic("llvm.nvvm.match.any.sync.i32", {constant(-1), value}); }

Value Lanes::below() { return intrinsic("llvm.nvvm.read.ptx.sreg.lanemask.lt", {}); }

void Lanes::sync() {
  LLVM::CallIntrinsicOp::create(ops, loc, ops.getStringAttr("llvm.nvvm.bar.warp.sync"), ValueRange{constant(-1)});
}

} // namespace k2c::warp
