//===- Decoder.h - From an instruction to an operation --------------------===//
//
// A function for each opcode takes modifiers and operands from the instruction; what it does not take is an error, so
// that no modifier is ever ignored.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PTX_DECODER_H
#define K2C_LIB_PTX_DECODER_H

#include "Program.h"

#include <optional>
#include <string>

namespace k2c::ptx {

class Decoder {
public:
  Decoder(const Module &module, Program &program, const std::map<std::string, uint64_t> &addresses)
      : module(module), program(program), addresses(addresses) {}

  /// All instructions of the program's function.
  Status run();

  // What decoders of opcodes use.

  const Instruction &instruction() const { return *current; }
  Operation &operation() { return program.code.back(); }

  /// Takes the next modifier if it is `word`.
  bool accept(std::string_view word);
  /// Takes the next modifier if it is one of `words`; its index, or -1.
  int acceptOneOf(std::initializer_list<std::string_view> words);
  /// Takes the next modifier, which has to be a type.
  Type takeType();
  std::optional<Type> acceptType();
  std::string_view nextModifier() const;
  /// Whether a modifier that is not yet taken is `word`.
  bool hasModifier(std::string_view word) const;
  /// Takes the one of them that is next and begins with `prefix`; what is behind it.
  std::optional<std::string_view> acceptPrefix(std::string_view prefix);

  /// The number of operands has to be in this range.
  void expectOperands(size_t least, size_t most);
  size_t operandCount() const { return current->operands.size(); }
  /// Operand `index`; one that is not there is a sink, and expectOperands() has failed.
  const Operand &operandAt(size_t index);
  /// The one that a label names; null: `operand` is no label, or that of the end.
  const Instruction *instructionAt(const Operand &operand) const {
    const std::vector<Instruction> &code = program.function.code;
    return operand.kind == Operand::Kind::Label && operand.index < code.size() ? &code[operand.index] : nullptr;
  }

  /// Operand `index` is read as a `type`; a register has to have the bits of it, or with `mayBeWider` at least those.
  Slot source(size_t index, Type type, bool mayBeWider = false) { return sourceOf(operandAt(index), type, mayBeWider); }
  Slot sourceOf(const Operand &operand, Type type, bool mayBeWider = false);
  Slot destination(size_t index, Type type, bool mayBeWider = false) {
    return destinationOf(operandAt(index), type, mayBeWider);
  }
  Slot destinationOf(const Operand &operand, Type type, bool mayBeWider = false);
  /// A register, or noSlot for _.
  Slot destinationOrSink(const Operand &operand, Type type, bool mayBeWider = false);
  /// [base + offset]: sets sources[index] and `immediate`; the base has 32 or 64 bits. Parts behind it are not allowed.
  void address(const Operand &operand, size_t index, Window window);
  /// [base + offset, ..]: its number in Program::addresses then.
  uint32_t addAddress(const Operand &operand);
  /// The number of an operand that has to be one.
  uint64_t constant(const Operand &operand, const std::string &what);
  Slot constantSlotOf(uint64_t bits, bool isWide);
  /// Its number in Program::conversions then.
  uint64_t addConversion(const Conversion &conversion) {
    program.conversions.push_back(conversion);
    return program.conversions.size() - 1;
  }
  /// Its number in Program::matrixForms then.
  uint32_t addMatrixForm(const MatrixForm &form) {
    program.matrixForms.push_back(form);
    return static_cast<uint32_t>(program.matrixForms.size() - 1);
  }
  /// A register that a product of a warpgroup has while it goes on.
  Slot matrixRegister(const Operand &operand, bool isWritten);
  /// The number of such a register among all of them.
  uint32_t matrixNumber(Slot slot) const { return program.matrixSlots.find(slot)->second; }
  /// Where `slots` stand in Program::lists then.
  uint32_t addList(const std::vector<Slot> &slots);
  /// Records that the instruction reads (writes) `slot`.
  void reads(Slot slot) { read.push_back(slot); }
  void writes(Slot slot) { written.push_back(slot); }
  Type typeOfRegister(const Operand &operand) const { return program.function.registers[operand.index].type; }

  void fail(std::string message, std::string remedy = "");
  bool hasFailed() const { return failure.has_value(); }

private:
  void layOut();
  void decode(const Instruction &instruction);
  void findTouched();
  Slot specialSlot(const std::string &name);
  Slot variableAddress(uint32_t id);

  const Module &module;
  Program &program;
  const std::map<std::string, uint64_t> &addresses;
  const Instruction *current = nullptr;
  size_t taken = 0;                ///< modifiers
  std::vector<Slot> read, written; ///< of the current instruction
  std::vector<std::vector<Slot>> allRead, allWritten;
  std::map<std::pair<uint64_t, bool>, Slot> constants;
  std::optional<Error> failure;
};

/// Takes .cta, .cluster, .gpu or .sys.
Scope takeScope(Decoder &decoder);

/// Decodes the modifiers and operands of an opcode.
using DecodeOpcode = void (*)(Decoder &decoder);

/// Adds the opcodes of a file.
using Opcodes = std::map<std::string_view, DecodeOpcode>;
void addArithmetic(Opcodes &opcodes);
void addBits(Opcodes &opcodes);
void addComparisons(Opcodes &opcodes);
void addFloats(Opcodes &opcodes);
void addMoves(Opcodes &opcodes);
void addConversions(Opcodes &opcodes);
void addMemory(Opcodes &opcodes);
void addControl(Opcodes &opcodes);
void addWarpWide(Opcodes &opcodes);
void addAtomics(Opcodes &opcodes);
void addMBarriers(Opcodes &opcodes);
void addBulkCopies(Opcodes &opcodes);
void addMatrixMoves(Opcodes &opcodes);
void addMma(Opcodes &opcodes);
void addRegisters(Opcodes &opcodes);
void addWgmma(Opcodes &opcodes);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_DECODER_H
