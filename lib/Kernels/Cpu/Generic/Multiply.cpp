//===- Multiply.cpp - Panel steps in instructions every target has -----------------------===//
#include "../InstructionSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace k2c::emit {

PanelVector loadPanelVector(KernelBuilder &b, Value address, DType type, int64_t lanes) {
  Type element = type == DType::BF16 ? b.i32() : b.f32();
  return {b.load(b.vec(element, lanes), address, type), type};
}

static Value lowHalf(KernelBuilder &b, Value pairs) { return b.fromBits(b.shl(pairs, 16)); }
static Value highHalf(KernelBuilder &b, Value pairs) {
  return b.fromBits(b.bitAnd(pairs, b.constant(pairs.getType(), int32_t(0xffff0000))));
}

PanelFactor loadFactor(KernelBuilder &b, Value address, DType x, DType w, int64_t lanes, bool half) {
  PanelFactor factor;
  if (x == DType::BF16 && w == DType::BF16) {
    Value pair = half ? b.bitsOf(b.loadFloats(address, DType::BF16, 0)) : b.load(b.i32(), address, DType::BF16);
    factor.pair = b.splat(half ? b.shr(pair, 16) : pair, lanes);
    return factor;
  }
  factor.first = b.splat(b.loadFloats(address, x, 0), lanes);
  if (w == DType::BF16 && !half)
    factor.second = b.splat(b.loadFloats(b.at(address, 1, x), x, 0), lanes);
  return factor;
}

PanelFactor factorOf(KernelBuilder &b, Value several, int64_t i, DType x, DType w, int64_t lanes) {
  PanelFactor factor;
  if (x == DType::BF16 && w == DType::BF16) {
    const int64_t count = mlir::cast<mlir::VectorType>(several.getType()).getNumElements() / 2;
    Value pairs = b.reinterpret(several, b.vec(b.i32(), count));
    factor.pair = b.splat(b.lane(pairs, i / 2), lanes);
    return factor;
  }
  auto element = [&](int64_t at) {
    Value raw = b.lane(several, at);
    if (x == DType::BF16)
      raw = b.fromBits(b.shl(Value(arith::ExtUIOp::create(b.builder(), raw.getLoc(), b.i32(), raw)), 16));
    return b.splat(raw, lanes);
  };
  factor.first = element(i);
  if (w == DType::BF16)
    factor.second = element(i + 1);
  return factor;
}

Value multiplyAdd(KernelBuilder &b, InstructionSet instructionSet, const PanelFactor &x, const PanelVector &w,
                  Value acc) {
  if (w.type == DType::F32)
    return b.fma(x.first, w.raw, acc);
  if (x.pair) {
    if (instructionSet == InstructionSet::Avx512)
      return multiplyPairsAvx512(b, x.pair, w.raw, acc);
    acc = b.fma(highHalf(b, x.pair), highHalf(b, w.raw), acc);
    return b.fma(lowHalf(b, x.pair), lowHalf(b, w.raw), acc);
  }
  acc = b.fma(x.first, lowHalf(b, w.raw), acc);
  return x.second ? b.fma(x.second, highHalf(b, w.raw), acc) : acc;
}

} // namespace k2c::emit
