//===- Math.cpp - exp, what is made of it, and lists of element operations --------------===//
//
// polynomials.def states constants and operations; polynomials.h performs them on one number, this file on vectors.
// Both use the same additions of 1.5 * 2^23 for rint, so that every lane has the bits of the scalar reading.
//
//===----------------------------------------------------------------------===//
#include "Math.h"
#include <limits>

namespace k2c::emit {

namespace constants {
#define K2RT_F32_CONSTANT(name, value) [[maybe_unused]] constexpr float name = value;
#include "k2rt/polynomials.def"
} // namespace constants

namespace polynomials {
#define K2RT_F32_POLYNOMIAL(name, ...) [[maybe_unused]] constexpr float name[] = {__VA_ARGS__};
#include "k2rt/polynomials.def"
} // namespace polynomials

static Value horner(KernelBuilder &b, llvm::ArrayRef<float> coefficients, Value x) {
  Value y = b.constantFloat(x.getType(), coefficients.front());
  for (float coefficient : coefficients.drop_front())
    y = b.fma(y, x, b.constantFloat(x.getType(), coefficient));
  return y;
}

/// 2^n of an integer -126 <= n <= 127.
static Value powerOfTwo(KernelBuilder &b, Value n) { return b.fromBits(b.shl(b.add(n, 127), 23)); }

Value emitExp(KernelBuilder &b, Value x) {
  auto number = [&](float value) { return b.constantFloat(x.getType(), value); };
  Value lowest = number(constants::exp_lowest), highest = number(constants::exp_highest);
  Value below = b.fcompare(Compare::Lt, x, lowest), above = b.fcompare(Compare::Gt, x, highest);
  Value y = b.select(below, lowest, x);
  y = b.select(above, highest, y);
  Value half = number(0x1.8p+23f);
  Value shifted = b.fadd(b.fmul(y, number(constants::exp_log2e)), half);
  Value n = b.fsub(shifted, half);
  Value k = b.sar(b.shl(b.bitsOf(shifted), 9), 9);
  Value r = b.fma(n, number(-constants::exp_ln2_high), y);
  r = b.fma(n, number(-constants::exp_ln2_low), r);
  Value p = horner(b, polynomials::exp, r);
  Value low = b.sar(k, 1);
  Value e = b.fmul(b.fmul(p, powerOfTwo(b, low)), powerOfTwo(b, b.sub(k, low)));
  e = b.select(below, number(0.0f), e);
  e = b.select(above, number(std::numeric_limits<float>::infinity()), e);
  return b.select(b.unordered(x, x), x, e);
}

Value emitSigmoid(KernelBuilder &b, Value x) {
  Value one = b.constantFloat(x.getType(), 1.0f);
  return b.fdiv(one, b.fadd(one, emitExp(b, b.fneg(x))));
}

/// x / (1 + e^-x).
static Value emitSilu(KernelBuilder &b, Value x) {
  Value one = b.constantFloat(x.getType(), 1.0f);
  return b.fdiv(x, b.fadd(one, emitExp(b, b.fneg(x))));
}

static Value apply(KernelBuilder &b, ElementOp op, Value x, Value y) {
  switch (op) {
  case ElementOp::Round:
    return x;
  case ElementOp::Add:
    return b.fadd(x, y);
  case ElementOp::Mul:
    return b.fmul(x, y);
  case ElementOp::Min:
    return b.select(b.fcompare(Compare::Lt, x, y), x, y);
  case ElementOp::Max:
    return b.select(b.fcompare(Compare::Gt, x, y), x, y);
  case ElementOp::Silu:
    return emitSilu(b, x);
  }
  return {};
}

Value emitElementwise(KernelBuilder &b, const Elementwise &list, int64_t lanes,
                      llvm::function_ref<Value(int64_t)> input) {
  llvm::SmallDenseMap<int64_t, Value> inputs;
  Values results;
  auto valueOf = [&](const ElementTerm &term) {
    if (term.kind == ElementTerm::Kind::Constant)
      return b.constantFloat(b.vec(b.f32(), lanes), float(term.value));
    if (term.kind == ElementTerm::Kind::Step)
      return results[term.index];
    Value &known = inputs[term.index];
    return known = known ? known : input(term.index);
  };
  for (const ElementStep &step : list.steps) {
    Value terms[2], *next = terms;
    for (const ElementTerm &term : step)
      *next++ = valueOf(term);
    Value result = apply(b, step.op, terms[0], terms[1]);
    results.push_back(&step == &list.steps.back() ? result : b.rounded(result, step.type));
  }
  return results.empty() ? input(0) : results.back();
}

} // namespace k2c::emit
