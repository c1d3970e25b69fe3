//===- ToolOutput.h - Programs that are spawned, and what they say -----------------------===//
#ifndef K2C_LIB_TARGET_HOST_TOOLOUTPUT_H
#define K2C_LIB_TARGET_HOST_TOOLOUTPUT_H

#include "base/Error.h"
#include <string>
#include <vector>

namespace k2c {

/// A file in memory, which is gone with the last process that has it: however one ends, nothing stays in a folder.
/// Programs that are spawned may open it by its path.
class MemoryFile {
public:
  /// Error: the system makes none.
  static Expected<MemoryFile> create();
  MemoryFile(MemoryFile &&from) noexcept;
  MemoryFile &operator=(MemoryFile &&) = delete;
  ~MemoryFile();

  int descriptor() const { return file; }
  std::string path() const;
  /// All that was written to it; "" where it cannot be read.
  std::string bytes() const;

private:
  explicit MemoryFile(int file) : file(file) {}
  int file; ///< -1: another has it
};

/// What a program prints.
struct ToolOutput {
  std::string out, messages; ///< its standard output and error
};

/// Runs the program at the path `tool`, which ends where this process does. Error, at `place`: it cannot be run or does
/// not end with 0, and what it said.
Expected<ToolOutput> runTool(const std::string &tool, std::vector<std::string> arguments, const std::string &place);

} // namespace k2c

#endif // K2C_LIB_TARGET_HOST_TOOLOUTPUT_H
