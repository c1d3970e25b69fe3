// A file of results beside those on stdout: it appears when it is complete.
#ifndef K2RT_RUN_OUTPUTFILE_H
#define K2RT_RUN_OUTPUTFILE_H

#include "base/Error.h"
#include <cstdio>
#include <string>

namespace k2c::runtime {

class OutputFile {
public:
  /// None.
  OutputFile() = default;
  /// What will be `path`, which `flag` names; written beside it, unless it is there and no regular file. Fails where it
  /// cannot be written.
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
  std::string flag, path, writtenTo;
  FILE *file = nullptr; ///< null: none, or finished
};

} // namespace k2c::runtime

#endif
