//===- Multiply.cpp - Panel steps in AVX-512 ---------------------------------------------===//
//
// vdpbf16ps(c, x, w) == fma(x0, w0, fma(x1, w1, c)) on every lane under DAZ and FTZ (N6, verified over all bit
// patterns). The f32 steps need nothing beyond Generic: LLVM folds the row element into vfmadd231ps as an embedded
// broadcast.
//
//===----------------------------------------------------------------------===//
#include "../InstructionSet.h"

using namespace mlir;

namespace k2c::emit {

Value multiplyPairsAvx512(KernelBuilder &b, Value xPair, Value wPair, Value acc) {
  OpBuilder &ops = b.builder();
  Location loc = acc.getLoc();
  int64_t lanes = cast<VectorType>(acc.getType()).getNumElements();
  Type pairs = VectorType::get({2 * lanes}, ops.getBF16Type());
  Value x = LLVM::BitcastOp::create(ops, loc, pairs, xPair), w = LLVM::BitcastOp::create(ops, loc, pairs, wPair);
  auto name = ops.getStringAttr("llvm.x86.avx512bf16.dpbf16ps." + std::to_string(lanes * 32));
  return LLVM::CallIntrinsicOp::create(ops, loc, acc.getType(), name, ValueRange{acc, x, w}).getResults();
}

} // namespace k2c::emit
