//===- ToolOutput.h - Programs that are spawned, and what they say -----------------------===//
#ifndef K2C_LIB_TARGET_HOST_TOOLOUTPUT_H
#define K2C_LIB_TARGET_HOST_TOOLOUTPUT_H

#include "base/Error.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace k2c {

/// What a program prints.
struct ToolOutput {
  std::string out, messages; ///< its standard output and error
};

/// Runs the program at the path `tool`. Error, at `place`: it cannot be run or does not end with 0, and what it said.
Expected<ToolOutput> runTool(const std::string &tool, std::vector<llvm::StringRef> arguments, const std::string &place);

/// The path of a new file without a byte, of a name that ends with `suffix`.
Expected<std::string> temporaryFile(llvm::StringRef suffix);

} // namespace k2c

#endif // K2C_LIB_TARGET_HOST_TOOLOUTPUT_H
