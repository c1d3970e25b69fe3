//===- Lists.h - What element-wise ops compute, written by hand ---------------===//
//
// The lists that nn.add, nn.clip and nn.gated_act say of themselves, for tests that know no op.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_KERNELS_LISTS_H
#define K2C_UNIT_KERNELS_LISTS_H

#include "k2c/Kernels/KernelDesc.h"

namespace k2c::test {

/// a, b -> a + b.
inline RowwiseDesc addition(const Rows &a, const Rows &b, const Rows &y) {
  RowwiseDesc desc{{a, b}, {}, y};
  desc.list.append(ElementOp::Add, y.type, ElementTerm::input(0), ElementTerm::input(1));
  return desc;
}

/// x -> x within [-limit, limit].
inline RowwiseDesc clip(const Rows &x, const Rows &y, double limit) {
  RowwiseDesc desc{{x}, {}, y};
  ElementTerm below = desc.list.append(ElementOp::Min, DType::F32, ElementTerm::constant(limit), ElementTerm::input(0));
  desc.list.append(ElementOp::Max, y.type, ElementTerm::constant(-limit), below);
  return desc;
}

/// gate, up, the halves of rows of `x` -> silu(gate) * up.
inline RowwiseDesc gatedSilu(const Rows &x, const Rows &y, int64_t slotsPerToken = 1) {
  Rows half = {x.space, x.width / 2, x.stride, x.type};
  RowwiseDesc desc{{half, half}, {}, y, slotsPerToken};
  ElementTerm gate = desc.list.append(ElementOp::Silu, DType::F32, ElementTerm::input(0));
  desc.list.append(ElementOp::Mul, y.type, gate, ElementTerm::input(1));
  return desc;
}

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_LISTS_H
