//===- Effect.h - What a kernel does to an argument -------------------------===//
//
// What a static schedule has to know of kernels whose items run on several workers: which memory each reads and writes,
// and where item i of its grid keeps to row i. `operands(desc)` states it of each argument where it lists the argument;
// nothing else decides it.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_EFFECT_H
#define K2C_KERNELS_EFFECT_H

#include <cstdint>
#include <utility>
#include <vector>

namespace k2c {

/// Which rows an op defines: all, or those whose MLA segment form (step.row_form) is the named one (N4).
enum class FormFilter : uint8_t { All, Expanded, Absorbed };

/// Arrays of the step that kernels write (capture_* and samples of k2rt_ir_step), each memory of its own.
enum class Capture : uint8_t { Hidden, Experts, Weights, MaxLogit, Samples };

/// What a kernel does to one of its arguments. It has no default: who lists an argument says it.
class Effect {
public:
  /// A number, behind which there is no memory.
  static Effect none() { return {false, false}; }
  static Effect reads() { return {true, false}; }
  /// Defines the rows of a form, and reads nothing.
  static Effect writes(FormFilter rows = FormFilter::All) {
    Effect effect(false, true);
    effect.form = rows;
    return effect;
  }
  /// Reads it, and may leave anything in it.
  static Effect destroys() { return {true, true}; }
  /// Reads the step and writes these arrays of it.
  static Effect captures(std::vector<Capture> into) {
    Effect effect = reads();
    effect.into = std::move(into);
    return effect;
  }
  /// Item i of the grid touches row i and no other.
  Effect byRow() const {
    Effect effect = *this;
    effect.keepsToRow = true;
    return effect;
  }
  /// What is captured are atomic updates that commute: kernels may run at the same time that all make such.
  Effect inAnyOrder() const {
    Effect effect = *this;
    effect.commutes = true;
    return effect;
  }

  bool isRead() const { return read; }
  bool isWritten() const { return written; }
  bool isByRow() const { return keepsToRow; }
  bool isInAnyOrder() const { return commutes; }
  FormFilter rows() const { return form; }
  const std::vector<Capture> &captured() const { return into; }

private:
  Effect(bool read, bool written) : read(read), written(written) {}

  bool read, written, keepsToRow = false, commutes = false;
  FormFilter form = FormFilter::All;
  std::vector<Capture> into;
};

} // namespace k2c

#endif // K2C_KERNELS_EFFECT_H
