//===- Module.h - A PTX text as data --------------------------------------===//
//
// What a PTX file says, with names resolved: an operand knows its register, variable or label. Opcodes and modifiers
// stay text; what they mean is the machine's business (Machine.h).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PTX_MODULE_H
#define K2C_PTX_MODULE_H

#include "base/Error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k2c::ptx {

enum class Type : uint8_t {
#define K2C_PTX_TYPE(name, spelling, bits, kind) name,
#include "k2c/Ptx/Types.def"
};

enum class TypeKind : uint8_t { Predicate, Bits, Unsigned, Signed, Float, Packed };

TypeKind kindOf(Type type);
int bitsOf(Type type);
/// Bytes in memory; a predicate has none.
inline int bytesOf(Type type) { return bitsOf(type) / 8; }
std::string_view spellingOf(Type type);
/// The type that is spelled so; none: it is not known.
std::optional<Type> typeSpelled(std::string_view word);

/// Where a variable lies. (PTX ISA, State Spaces)
enum class Space : uint8_t { Param, Const, Global, Local, Shared };
std::string_view spellingOf(Space space);

/// A variable of a module, a parameter of a function, or a variable of its body.
struct Variable {
  std::string name;
  Space space = Space::Global;
  Type type = Type::B8;
  uint64_t elements = 1; ///< of an array; 0: as many as the launch gives (extern shared)
  uint64_t alignment = 1;
  bool isExternal = false;
  std::vector<std::byte> initial; ///< the first bytes; the others are zero
  int line = 0;

  uint64_t bytes() const { return elements * static_cast<uint64_t>(bytesOf(type)); }
};

/// Variables are numbered: those of the module first, then those of the function, parameters before the others.
using VariableId = uint32_t;

struct Operand {
  enum class Kind : uint8_t {
    Register, ///< `index`: of Function::registers
    Integer,  ///< `bits`: two's complement
    Float32,  ///< `bits`: of an f32
    Float64,  ///< `bits`: of an f64
    Variable, ///< `index`: a VariableId; its address
    Special,  ///< `name`: a special register, without the percent sign
    Label,    ///< `index`: of Function::code
    Vector,   ///< `parts`: {a, b, ..}
    Pair,     ///< `parts`: a|b
    Address,  ///< `parts`: [base, ..]; `bits`: what is added to the base
    Sink,     ///< _
    Function, ///< `name`: what a call names
  };

  Kind kind = Kind::Sink;
  bool isNegated = false; ///< !p
  uint32_t index = 0;
  uint64_t bits = 0;
  std::string name;
  std::vector<Operand> parts;
};

struct Instruction {
  static constexpr uint32_t noGuard = ~uint32_t(0);

  std::string opcode;                 ///< the part before the first dot
  std::vector<std::string> modifiers; ///< the others, without their dots
  std::vector<Operand> operands;
  uint32_t guard = noGuard; ///< the register of @p
  bool isGuardNegated = false;
  int line = 0;

  /// opcode.modifier.modifier
  std::string spelling() const;
};

struct Register {
  std::string name;
  Type type = Type::B32;
};

/// Threads or CTAs along three axes; 0: not said.
using Extent = std::array<uint32_t, 3>;
/// How many in all; the greatest number where there are more.
uint64_t product(const Extent &extent);

struct Function {
  std::string name;
  bool isEntry = false;
  bool hasBody = false;
  std::vector<Variable> results, parameters;
  std::vector<Variable> variables; ///< of the body, all blocks of it
  std::vector<Register> registers;
  std::vector<Instruction> code;
  Extent requiredThreads{}, maximalThreads{}, requiredCluster{};
  bool isExplicitCluster = false;
  uint32_t maximalRegisters = 0, minimalCtas = 0; ///< of a thread, of a multiprocessor; 0: not said
  int line = 0, lastLine = 0;
};

struct Module {
  std::string name; ///< for messages
  int major = 0, minor = 0;
  std::string target; ///< sm_90a
  std::vector<Variable> variables;
  std::vector<Function> functions;

  /// The variable that `id` names in `function`.
  const Variable &variable(const Function &function, VariableId id) const;
  /// The entry or function with a body of this name; null: there is none.
  const Function *find(std::string_view name) const;
};

/// The module of `text`; `name` names it in errors, whose places are "name:line". What is not PTX, or PTX that is not
/// understood, is an error. Any bytes may be given.
Expected<Module> parse(std::string_view text, std::string name);

} // namespace k2c::ptx

#endif // K2C_PTX_MODULE_H
