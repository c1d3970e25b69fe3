//===- BankConflicts.cpp - Whether shared memory answers a warp at once -----===//
//
// Shared memory has 32 banks of four bytes. An access of a warp is free of conflicts if its lanes read one address, or
// if lane i reads at base + i * stride and the stride is the access's width, or an odd multiple of it. Strides are
// known modulo 2^32 (Strides.cpp), which is more than shared memory has.
//
// Threads of a CTA lie along one axis, so a warp has 32 that follow each other. What other instructions than loads and
// stores do to shared memory is not looked into: those that touch none are listed, and with any other one (atom, wmma,
// call) nothing is shown. (PTX ISA, State Spaces; the CUDA Programming Guide, Shared Memory)
//
//===----------------------------------------------------------------------===//
#include "k2c/Ptx/BankConflicts.h"
#include "Strides.h"

namespace k2c::ptx {

namespace {

constexpr uint32_t lanes = 32;

/// Of a load or store: of one lane.
uint32_t widthOf(const Instruction &instruction) {
  uint32_t width = 0, elements = 1;
  for (const std::string &modifier : instruction.modifiers)
    if (const std::optional<Type> type = typeSpelled(modifier))
      width = static_cast<uint32_t>(bytesOf(*type));
    else if (modifier == "v2" || modifier == "v4" || modifier == "v8")
      elements = static_cast<uint32_t>(modifier[1] - '0');
  return width * elements;
}

bool isSpread(uint32_t stride, uint32_t width) {
  if (stride == 0 || stride == width || stride == 0 - width)
    return true;
  return width >= 4 && stride % width == 0 && stride / width % 2 != 0;
}

/// Of loads, stores, and what touches no shared memory.
bool isFree(const Instruction &instruction, const Strides &strides) {
  constexpr std::string_view elsewhere[] = {"global", "local", "param", "const"};
  constexpr std::string_view without[] = {"activemask", "bar",      "barrier", "bra",    "branchtargets",
                                          "brx",        "elect",    "exit",    "fence",  "griddepcontrol",
                                          "isspacep",   "mapa",     "match",   "membar", "mma",
                                          "nanosleep",  "prefetch", "redux",   "ret",    "setmaxnreg",
                                          "shfl",       "trap",     "vote"};
  const auto isOf = [&](std::string_view space) { return hasModifier(instruction, space); };
  const std::string_view opcode = instruction.opcode;
  if (isArithmetic(opcode) || isIn(without, opcode))
    return true;
  if (opcode != "call" && std::any_of(std::begin(elsewhere), std::end(elsewhere), isOf) && !isOf("shared"))
    return true;
  const size_t place = opcode == "ld" ? 1 : 0;
  const uint32_t width = widthOf(instruction);
  if ((opcode != "ld" && opcode != "st") || isOf("async") || width == 0 || instruction.operands.size() <= place)
    return false;
  const Value address = strides.of(instruction.operands[place]);
  return address.kind != Value::Kind::Unknown && isSpread(address.stride, width);
}

/// Whether there is shared memory, or may be.
bool namesSharedMemory(const Module &module) {
  const auto isShared = [](const Variable &variable) { return variable.space == Space::Shared; };
  const auto declares = [&](const std::vector<Variable> &variables) {
    return std::any_of(variables.begin(), variables.end(), isShared);
  };
  return declares(module.variables) ||
         std::any_of(module.functions.begin(), module.functions.end(), [&](const Function &function) {
           return declares(function.variables) ||
                  std::any_of(function.code.begin(), function.code.end(), [](const Instruction &instruction) {
                    return instruction.opcode == "call" || hasModifier(instruction, "shared");
                  });
         });
}

} // namespace

bool hasNoBankConflicts(const Module &module, const Function &function) {
  if (!namesSharedMemory(module))
    return true;
  const Extent &threads = function.requiredThreads;
  if (!function.isEntry || threads[0] == 0 || threads[0] % lanes != 0 || threads[1] > 1 || threads[2] > 1)
    return false;
  const auto parts = [](const Strides &strides, const Instruction &instruction) {
    return instruction.opcode == "brx" || (instruction.opcode == "bra" && !strides.isTogether(instruction));
  };
  for (const bool isParted : {false, true}) {
    const Strides strides(function, isParted);
    if (!isParted && std::any_of(function.code.begin(), function.code.end(),
                                 [&](const Instruction &each) { return parts(strides, each); }))
      continue;
    return std::all_of(function.code.begin(), function.code.end(),
                       [&](const Instruction &each) { return isFree(each, strides); });
  }
  return false;
}

} // namespace k2c::ptx
