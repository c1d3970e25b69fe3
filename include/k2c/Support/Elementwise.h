//===- Elementwise.h - Arithmetic on one element, as data -----------------===//
//
// Element-wise ops say by such a list what they compute, kernels carry it, alone or as the epilogue of a linear, and
// evaluate and emit each have one switch over its operations. silu(gate) * up, say, is
//
//   step 0   silu  input 0            -> f32
//   step 1   mul   step 0, input 1    -> bf16
//
// A step computes in f32 and rounds to its type, so that a list has the roundings of the ops that it was made of (N2).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_SUPPORT_ELEMENTWISE_H
#define K2C_SUPPORT_ELEMENTWISE_H

#include "k2c/Support/DType.h"
#include <algorithm>
#include <array>
#include <vector>

namespace k2c {

/// On f32, with one rounding to nearest even. Round: x. Min(a, b): a < b ? a : b; Max(a, b): a > b ? a : b, so the
/// second operand stays when it is NaN. Silu: that of k2rt/polynomials.h.
enum class ElementOp : uint8_t { Round, Add, Mul, Min, Max, Silu };

/// What is known of an operation without doing it.
struct ElementOpTraits {
  const char *name;
  int terms;           ///< operands: 1 or 2
  bool hasExponential; ///< made of e^x, which takes longer than all others together
};
constexpr ElementOpTraits traitsOf(ElementOp op) {
  constexpr ElementOpTraits traits[] = {{"round", 1, false}, {"add", 2, false}, {"mul", 2, false},
                                        {"min", 2, false},   {"max", 2, false}, {"silu", 1, true}};
  return traits[static_cast<uint8_t>(op)];
}

/// An operand of a step.
struct ElementTerm {
  enum class Kind : uint8_t { Input, Step, Constant };
  Kind kind = Kind::Input;
  int64_t index = 0; ///< of the input or of the earlier step
  double value = 0;  ///< of the constant, rounded to f32

  static ElementTerm input(int64_t index) { return {Kind::Input, index, 0}; }
  static ElementTerm step(int64_t index) { return {Kind::Step, index, 0}; }
  static ElementTerm constant(double value) { return {Kind::Constant, 0, value}; }
};

/// The result of `op`, rounded to `type` (F32 or BF16). Terms beyond those that `op` takes are ignored.
struct ElementStep {
  ElementOp op = ElementOp::Round;
  DType type = DType::F32;
  std::array<ElementTerm, 2> terms;

  const ElementTerm *begin() const { return terms.data(); }
  const ElementTerm *end() const { return terms.data() + traitsOf(op).terms; }
};

/// The result is that of the last step; without steps, input 0.
struct Elementwise {
  std::vector<ElementStep> steps;

  /// The result of the step that is added.
  ElementTerm append(ElementOp op, DType type, ElementTerm first, ElementTerm second = {}) {
    steps.push_back({op, type, {first, second}});
    return ElementTerm::step(static_cast<int64_t>(steps.size()) - 1);
  }
  bool takesInput(int64_t index) const {
    return std::any_of(steps.begin(), steps.end(), [&](const ElementStep &step) {
      return std::any_of(step.begin(), step.end(), [&](const ElementTerm &term) {
        return term.kind == ElementTerm::Kind::Input && term.index == index;
      });
    });
  }
  bool hasExponential() const {
    return std::any_of(steps.begin(), steps.end(),
                       [](const ElementStep &step) { return traitsOf(step.op).hasExponential; });
  }
};

} // namespace k2c

#endif // K2C_SUPPORT_ELEMENTWISE_H
