//===- Disassembly.h - The machine code of a function, as text ------------===//
#ifndef K2C_TARGET_DISASSEMBLY_H
#define K2C_TARGET_DISASSEMBLY_H

#include "base/Error.h"
#include <cstdint>
#include <optional>
#include <string>

namespace k2c {

/// Function `symbol` of the shared object `path`, an instruction a line, indented, "<L3>:" before what a branch goes
/// to. llvm-objdump-22 is spawned for it; none: it is not on the PATH. Error: the object is damaged, or has no such
/// function.
Expected<std::optional<std::string>> disassemble(const std::string &path, const std::string &symbol);

/// Some lines of what `disassemble` returns.
struct AssemblyPart {
  std::string text;
  int64_t instructions = 0;
  int64_t multiplyAdds = 0; ///< of these, fused multiply-adds and dot products of vectors
};

/// All lines.
AssemblyPart wholeFunction(const std::string &assembly);

/// The lines of one loop, from its label to the branch back to it: of those that have no other inside the one with the
/// most multiply-adds; of equals the one with the most instructions on vectors, then the first. "" where nothing loops.
AssemblyPart mainLoop(const std::string &assembly);

} // namespace k2c

#endif // K2C_TARGET_DISASSEMBLY_H
