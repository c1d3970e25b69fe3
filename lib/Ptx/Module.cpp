//===- Module.cpp - A PTX text as data ------------------------------------===//
#include "k2c/Ptx/Module.h"

#include <iterator>

namespace k2c::ptx {

namespace {
struct TypeFacts {
  std::string_view spelling;
  int bits;
  TypeKind kind;
};
constexpr TypeFacts facts[] = {
#define K2C_PTX_TYPE(name, spelling, bits, kind) {spelling, bits, TypeKind::kind},
#include "k2c/Ptx/Types.def"
};
} // namespace

TypeKind kindOf(Type type) { return facts[static_cast<size_t>(type)].kind; }
int bitsOf(Type type) { return facts[static_cast<size_t>(type)].bits; }
std::string_view spellingOf(Type type) { return facts[static_cast<size_t>(type)].spelling; }

std::optional<Type> typeSpelled(std::string_view word) {
  for (size_t i = 0; i < std::size(facts); ++i)
    if (facts[i].spelling == word)
      return static_cast<Type>(i);
  return std::nullopt;
}

std::string_view spellingOf(Space space) {
  constexpr std::string_view names[] = {"param", "const", "global", "local", "shared"};
  return names[static_cast<size_t>(space)];
}

std::string Instruction::spelling() const {
  std::string text = opcode;
  for (const std::string &modifier : modifiers)
    text += "." + modifier;
  return text;
}

uint64_t product(const Extent &extent) {
  const uint64_t plane = uint64_t(extent[0]) * extent[1];
  uint64_t all = 0;
  return __builtin_mul_overflow(plane, uint64_t(extent[2]), &all) ? ~uint64_t(0) : all;
}

const Variable &Module::variable(const Function &function, VariableId id) const {
  if (id < variables.size())
    return variables[id];
  id -= static_cast<VariableId>(variables.size());
  return id < function.parameters.size() ? function.parameters[id]
                                         : function.variables[id - function.parameters.size()];
}

const Function *Module::find(std::string_view wanted) const {
  for (const Function &function : functions)
    if (function.name == wanted && function.hasBody)
      return &function;
  return nullptr;
}

} // namespace k2c::ptx
