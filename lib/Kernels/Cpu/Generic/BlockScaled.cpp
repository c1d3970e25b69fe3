//===- BlockScaled.cpp - e4m3 weights to f32, in registers ---------------------------------===//
//
// The bits of an e4m3 code, moved to the fields of an f16, are its value times 2^-8, subnormals and -0 included:
//
//   s eeee mmm          ->     s 0eeee mmm0000000       bias 7 -> bias 15
//
// and f16 to f32 is exact; the conversion does not look at DAZ. The lost 2^8 goes to the scale, once for a block, where
// it is exact because the packer takes no scale that it would carry to infinity. NaN codes are refused there too.
//
//===----------------------------------------------------------------------===//
#include "../InstructionSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace k2c::emit {

Value panelScale(KernelBuilder &b, Value scales) { return b.fmul(scales, b.constantFloat(scales.getType(), 256.0f)); }

PanelVector scaledWeights(KernelBuilder &b, Value codes, Value scale) {
  OpBuilder &ops = b.builder();
  Location loc = codes.getLoc();
  int64_t lanes = cast<VectorType>(codes.getType()).getNumElements();
  Type halfBits = b.vec(ops.getI16Type(), lanes);
  Value signs = arith::ExtSIOp::create(ops, loc, halfBits, codes); // the sign in bits 7 to 15
  Value bits = b.bitAnd(b.shl(signs, 7), b.constant(halfBits, int16_t(0xbf80)));
  Value halves = arith::BitcastOp::create(ops, loc, b.vec(ops.getF16Type(), lanes), bits);
  Value values = arith::ExtFOp::create(ops, loc, b.vec(b.f32(), lanes), halves);
  return {b.fmul(values, scale), DType::F32};
}

} // namespace k2c::emit
