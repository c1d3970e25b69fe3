//===- Counters.cpp - What a launch does, in numbers ----------------------===//
//
// Instructions are counted by class, which is known when they are decoded. What memory sees is counted where the launch
// asks for it: a warp's access to global memory touches sectors of 32 bytes; one to shared memory takes as many
// wavefronts as the bank that is asked for the largest number of different words. Accesses of 8 and 16 bytes are made
// by half and quarter warps.
//
//===----------------------------------------------------------------------===//
#include "Counters.h"

#include <algorithm>
#include <map>

namespace k2c::ptx {

namespace {

constexpr uint32_t sectorBytes = 32, banks = 32, wordBytes = 4;

/// Different values among `count`, which are sorted then.
uint64_t distinct(uint64_t *values, size_t count) {
  std::sort(values, values + count);
  return static_cast<uint64_t>(std::unique(values, values + count) - values);
}

InstructionClass classOfAccess(const Operation &operation, bool isStore) {
  switch (operation.window) {
  case Window::Shared:
    return isStore ? InstructionClass::SharedStore : InstructionClass::SharedLoad;
  case Window::Local:
    return InstructionClass::Local;
  case Window::Param:
    return InstructionClass::Move;
  case Window::Global:
  case Window::Generic:
    break;
  }
  return isStore ? InstructionClass::GlobalStore : InstructionClass::GlobalLoad;
}

/// The kind of a number that an arithmetic instruction is about.
InstructionClass classOfArithmetic(const Instruction &instruction) {
  for (auto word = instruction.modifiers.rbegin(); word != instruction.modifiers.rend(); ++word)
    if (const std::optional<Type> type = typeSpelled(*word))
      return *type == Type::F32                                                      ? InstructionClass::F32
             : kindOf(*type) == TypeKind::Float || kindOf(*type) == TypeKind::Packed ? InstructionClass::OtherFloat
                                                                                     : InstructionClass::Integer;
  return InstructionClass::Integer;
}

} // namespace

InstructionClass classOf(const Instruction &instruction, const Operation &operation) {
  using Class = InstructionClass;
  static const std::map<std::string_view, Class> all = {{"mov", Class::Move},
                                                        {"cvta", Class::Move},
                                                        {"selp", Class::Move},
                                                        {"mapa", Class::Move},
                                                        {"isspacep", Class::Move},
                                                        {"cvt", Class::Conversion},
                                                        {"bra", Class::Control},
                                                        {"brx", Class::Control},
                                                        {"ret", Class::Control},
                                                        {"exit", Class::Control},
                                                        {"trap", Class::Control},
                                                        {"branchtargets", Class::Control},
                                                        {"bar", Class::Barrier},
                                                        {"barrier", Class::Barrier},
                                                        {"mbarrier", Class::Barrier},
                                                        {"fence", Class::Barrier},
                                                        {"membar", Class::Barrier},
                                                        {"atom", Class::Atomic},
                                                        {"red", Class::Atomic},
                                                        {"cp", Class::Copy},
                                                        {"wgmma", Class::Tensor},
                                                        {"mma", Class::Tensor},
                                                        {"wmma", Class::Tensor},
                                                        {"ldmatrix", Class::SharedLoad},
                                                        {"stmatrix", Class::SharedStore},
                                                        {"shfl", Class::Exchange},
                                                        {"vote", Class::Exchange},
                                                        {"match", Class::Exchange},
                                                        {"redux", Class::Exchange},
                                                        {"elect", Class::Exchange},
                                                        {"activemask", Class::Exchange},
                                                        {"ex2", Class::Special},
                                                        {"lg2", Class::Special},
                                                        {"sin", Class::Special},
                                                        {"cos", Class::Special},
                                                        {"tanh", Class::Special},
                                                        {"rcp", Class::Special},
                                                        {"rsqrt", Class::Special},
                                                        {"sqrt", Class::Special},
                                                        {"nanosleep", Class::Other},
                                                        {"prefetch", Class::Other},
                                                        {"griddepcontrol", Class::Other},
                                                        {"setmaxnreg", Class::Other}};
  if (instruction.opcode == "ld" || instruction.opcode == "st")
    return classOfAccess(operation, instruction.opcode == "st");
  const auto found = all.find(instruction.opcode);
  return found == all.end() ? classOfArithmetic(instruction) : found->second;
}

void countGlobal(Traffic &traffic, const uint64_t *addresses, uint32_t active, uint32_t bytes) {
  uint64_t sectors[2 * warpLanes];
  size_t count = 0;
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const uint64_t address = addresses[__builtin_ctz(left)];
    sectors[count++] = address / sectorBytes;
    sectors[count++] = (address + bytes - 1) / sectorBytes;
  }
  ++traffic.requests;
  traffic.bytes += static_cast<uint64_t>(__builtin_popcount(active)) * bytes;
  traffic.units += distinct(sectors, count);
}

void countShared(Traffic &traffic, const uint64_t *addresses, uint32_t active, uint32_t bytes) {
  const int lanesOfGroup = bytes <= wordBytes ? warpLanes : warpLanes / static_cast<int>(bytes / wordBytes);
  ++traffic.requests;
  traffic.bytes += static_cast<uint64_t>(__builtin_popcount(active)) * bytes;
  for (int first = 0; first < warpLanes; first += lanesOfGroup) {
    uint64_t words[warpLanes], wordsOfBank[banks] = {};
    size_t count = 0;
    for (int lane = first; lane < first + lanesOfGroup; ++lane)
      for (uint32_t at = 0; (active >> lane & 1) && at < bytes; at += wordBytes)
        words[count++] = (addresses[lane] + at) / wordBytes;
    if (count == 0)
      continue;
    const uint64_t different = distinct(words, count);
    for (uint64_t i = 0; i < different; ++i)
      ++wordsOfBank[words[i] % banks];
    const uint64_t wavefronts = *std::max_element(wordsOfBank, wordsOfBank + banks);
    traffic.units += wavefronts;
    traffic.conflicts += wavefronts - 1;
  }
}

} // namespace k2c::ptx
