#include "engine/OutputFile.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace k2c::runtime {

/// A pipe or a terminal takes what is written, and is not replaced.
static bool canBeReplaced(const std::string &path) {
  struct stat found;
  return ::lstat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode);
}

/// Its descriptor; negative: it cannot be written.
int OutputFile::create() {
  if (writtenTo != path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
    const int nameless = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    isNameless = nameless >= 0;
    if (isNameless)
      return nameless;
  }
  return ::open(writtenTo.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
}

/// So that it can be renamed.
bool OutputFile::giveName() const {
  if (!isNameless)
    return true;
  ::unlink(writtenTo.c_str()); // of a process with the same number
  const std::string self = "/proc/self/fd/" + std::to_string(::fileno(file));
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, writtenTo.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

Expected<OutputFile> OutputFile::create(const std::string &flag, const std::string &path) {
  OutputFile output;
  output.flag = flag;
  output.path = path;
  output.writtenTo = canBeReplaced(path) ? path + ".partial-" + std::to_string(::getpid()) : path;
  const int descriptor = output.create();
  output.file = descriptor < 0 ? nullptr : ::fdopen(descriptor, "w");
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
  std::swap(isNameless, other.isNameless);
  std::swap(file, other.file);
  return *this;
}

OutputFile::~OutputFile() {
  if (!file)
    return;
  std::fclose(file);
  if (writtenTo != path && !isNameless)
    ::unlink(writtenTo.c_str());
}

Status OutputFile::finish() {
  const bool hasFailed = std::fflush(file) != 0 || std::ferror(file) != 0 || !giveName();
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
