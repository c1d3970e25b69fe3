//===- Strides.h - Registers over the lanes of a warp ---------------------===//
#ifndef K2C_LIB_PTX_STRIDES_H
#define K2C_LIB_PTX_STRIDES_H

#include "k2c/Ptx/Module.h"

#include <algorithm>
#include <string_view>

namespace k2c::ptx {

/// What is known of a register.
struct Value {
  enum class Kind : uint8_t { Unseen, Uniform, Strided, Unknown }; ///< Unseen: nothing has been computed yet

  Kind kind = Kind::Unseen;
  uint32_t stride = 0;
  std::optional<uint32_t> constant; ///< its low 32 bits
  bool isThread = false;            ///< the number of the thread in its CTA

  bool isUniform() const { return kind == Kind::Uniform; }
  bool operator==(const Value &other) const { return kind == other.kind && stride == other.stride; }
};

/// A list of a few words.
template <size_t N> bool isIn(const std::string_view (&words)[N], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

/// `wanted` may have more behind a colon: shared::cta.
bool hasModifier(const Instruction &instruction, std::string_view wanted);

/// What an instruction of this opcode computes of one value for all lanes is one value.
bool isArithmetic(std::string_view opcode);

/// What is known of a function's registers, in time linear in its text.
class Strides {
public:
  /// `isParted`: lanes may go different ways.
  Strides(const Function &function, bool isParted);

  /// Whether all lanes of a warp that execute it do what it says, or none.
  bool isTogether(const Instruction &instruction) const {
    return instruction.guard == Instruction::noGuard || values[instruction.guard].isUniform();
  }
  Value of(const Operand &operand) const;

private:
  /// An instruction that writes registers.
  struct Writer {
    const Instruction *instruction;
    std::vector<uint32_t> results;
    bool isQueued;
  };

  static std::vector<uint32_t> results(const Instruction &instruction);
  void add(const Instruction &instruction);
  void update();
  void set(uint32_t index, const Value &value);
  void step(const Writer &writer);
  Value computed(const Instruction &instruction) const;
  Value exchanged(const Instruction &instruction, const std::vector<Value> &sources) const;
  Value loaded(const Instruction &instruction) const;
  Value affine(const Instruction &instruction, const std::vector<Value> &sources) const;

  const Function &function;
  const bool isParted;
  bool hasLocal = false, hasOwnParams = false; ///< threads have variables of their own: those, and those of calls
  std::vector<Value> values;
  std::vector<int> written; ///< in how many places
  std::vector<Writer> writers;
  std::vector<std::vector<uint32_t>> readers; ///< of each register: which writers
  std::vector<uint32_t> queue;                ///< writers to look at
};

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_STRIDES_H
