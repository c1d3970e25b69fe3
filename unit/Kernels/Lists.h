//===- Lists.h - What element-wise ops compute, written by hand ---------------===//
//
// The lists that nn.add, nn.clip and nn.gated_act say of themselves, and those of linears that they are joined with,
// for tests that know no op.
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

/// The epilogue of a linear that takes `inputs` beside its sum: bias, slot weight, SiLU of the gate, residual, in this
/// order, with a rounding to `type` where an op ends.
inline Elementwise epilogueOf(DType type, const std::vector<LinearDesc::Input> &inputs) {
  using Linear = LinearDesc;
  Elementwise list;
  auto takes = [&](Linear::Input input) { return std::find(inputs.begin(), inputs.end(), input) != inputs.end(); };
  auto ownOf = [&](int64_t part) {
    ElementTerm sum = ElementTerm::input(Linear::Sum + part);
    if (takes(Linear::Bias))
      sum = list.append(ElementOp::Add, takes(Linear::SlotWeight) ? DType::F32 : type, sum,
                        ElementTerm::input(Linear::Bias + part));
    if (takes(Linear::SlotWeight))
      sum = list.append(ElementOp::Mul, type, sum, ElementTerm::input(Linear::SlotWeight));
    return takes(Linear::Bias) || takes(Linear::SlotWeight) ? sum : list.append(ElementOp::Round, type, sum);
  };
  ElementTerm result = ownOf(0);
  if (takes(Linear::UpSum)) {
    ElementTerm up = ownOf(1), gate = list.append(ElementOp::Silu, DType::F32, result);
    result = list.append(ElementOp::Mul, type, gate, up);
  }
  if (takes(Linear::Residual))
    list.append(ElementOp::Add, type, result, ElementTerm::input(Linear::Residual));
  return list;
}

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_LISTS_H
