//===- CheckCode.cpp - What machine code must not have ------------------------------------------===//
//
// ptxas takes whatever it is given, and what it could not do well shows in its code alone. A spill costs a round trip
// to memory wherever it is; the instructions below cost as much in each round of a loop.
//
//===----------------------------------------------------------------------===//
#include "k2c/Target/Nvidia.h"
#include "k2c/Target/Sass.h"
#include "llvm/ADT/StringRef.h"

namespace k2c {

/// Instructions that no main loop has, by the beginning of their names, and what they do.
static constexpr std::pair<const char *, const char *> costly[] = {
    {"MEMBAR", "waits until the device has seen what it wrote"},
    {"ERRBAR", "waits until the device has seen what it wrote"},
    {"LDL", "reads local memory"},
    {"STL", "writes local memory"},
    {"BRA.U.ANY", "runs lanes one after the other"},
};
static constexpr const char *remedy =
    "name a later ptxas with K2C_PTXAS, or one that is not there: the driver compiles PTX";

Status checkCode(const std::string &kernel, const Cubin &cubin, const std::optional<std::string> &sass) {
  if (cubin.spillBytes > 0)
    return Error{kernel,
                 "ptxas spills " + std::to_string(cubin.spillBytes) + " bytes of a thread beside " +
                     std::to_string(cubin.registers) + " registers, and 0 are allowed",
                 remedy};
  if (!sass)
    return {};
  for (const InstructionMix &loop : mainLoops(*sass))
    for (const auto &[name, count] : loop)
      for (const auto &[begin, does] : costly)
        if (llvm::StringRef(name).starts_with(begin))
          return Error{kernel,
                       "a main loop of " + std::to_string(instructionsOf(loop)) + " instructions has " +
                           std::to_string(count) + " of " + name + ", which " + does + ", and 0 are allowed",
                       remedy};
  return {};
}

} // namespace k2c
