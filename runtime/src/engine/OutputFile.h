// A file of results beside those on stdout: it appears when it is complete. Until then it has no name where the file
// system can do without, so that nothing is left of it when the process is killed.
#ifndef K2RT_ENGINE_OUTPUTFILE_H
#define K2RT_ENGINE_OUTPUTFILE_H

#include "base/Error.h"
#include <cstdio>
#include <string>

namespace k2c::runtime {

class OutputFile {
public:
  /// None.
  OutputFile() = default;
  /// What will be `path`, which `flag` names; written in its folder, unless it is there and no regular file. Fails
  /// where it cannot be written.
  static Expected<OutputFile> create(const std::string &flag, const std::string &path);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) noexcept;
  /// Leaves nothing of a file that was not finished.
  ~OutputFile();

  explicit operator bool() const { return file != nullptr; }
  FILE *stream() { return file; }
  /// It is complete: takes its place. Fails where not all of it could be written.
  Status finish();

private:
  int create();
  bool giveName() const;

  std::string flag, path, writtenTo;
  bool isNameless = false; ///< so far; else it is at writtenTo
  FILE *file = nullptr;    ///< null: none, or finished
};

} // namespace k2c::runtime

#endif
