#include "run/OutputFile.h"
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace k2c::runtime {

/// A pipe or a terminal takes what is written, and is not replaced.
static bool canBeReplaced(const std::string &path) {
  struct stat found;
  return ::lstat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode);
}

Expected<OutputFile> OutputFile::create(const std::string &flag, const std::string &path) {
  OutputFile output;
  output.flag = flag;
  output.path = path;
  output.writtenTo = canBeReplaced(path) ? path + ".partial-" + std::to_string(::getpid()) : path;
  output.file = std::fopen(output.writtenTo.c_str(), "we");
  if (!output.file)
    return Error{K2RT_INVALID_ARGUMENT, flag + " " + path, std::string("cannot be written: ") + std::strerror(errno),
                 "name a file in an existing folder"};
  return output;
}

OutputFile::OutputFile(OutputFile &&other) noexcept { *this = std::move(other); }

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(flag, other.flag);
  std::swap(path, other.path);
  std::swap(writtenTo, other.writtenTo);
  std::swap(file, other.file);
  return *this;
}

OutputFile::~OutputFile() {
  if (!file)
    return;
  std::fclose(file);
  if (writtenTo != path)
    ::unlink(writtenTo.c_str());
}

Status OutputFile::finish() {
  const bool hasFailed = std::fflush(file) != 0 || std::ferror(file) != 0;
  int reason = errno;
  const bool isClosed = std::fclose(std::exchange(file, nullptr)) == 0;
  const bool isThere = writtenTo == path || ::rename(writtenTo.c_str(), path.c_str()) == 0;
  if (!hasFailed && isClosed && isThere)
    return {};
  if (!hasFailed)
    reason = errno;
  if (writtenTo != path)
    ::unlink(writtenTo.c_str());
  return Error{K2RT_SYSTEM, flag + " " + path, std::string("could not be written completely: ") + std::strerror(reason),
               "free space on its disk"};
}

} // namespace k2c::runtime
