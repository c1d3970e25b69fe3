// Positioned reads and writes on the descriptor; a short one is continued.
#include "run/BufferedRows.h"
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace k2c::runtime {

Expected<BufferedRows> BufferedRows::create() {
  BufferedRows buffered;
  buffered.file.reset(std::tmpfile());
  if (!buffered.file)
    return systemError("temporary file", "cannot be created in " P_tmpdir, errno);
  return buffered;
}

Status BufferedRows::status() const {
  if (failed != 0)
    return systemError("temporary file", "cannot hold the results in " P_tmpdir, failed);
  return {};
}

void BufferedRows::writeBytes(int64_t offset, const void *bytes, int64_t count) {
  const char *from = static_cast<const char *>(bytes);
  while (count > 0 && failed == 0) {
    const ssize_t done = ::pwrite(::fileno(file.get()), from, static_cast<size_t>(count), offset);
    if (done < 0 && errno != EINTR)
      failed = errno;
    if (done > 0) {
      from += done;
      offset += done;
      count -= done;
    }
  }
}

void BufferedRows::readBytes(int64_t offset, void *bytes, int64_t count) {
  char *to = static_cast<char *>(bytes);
  while (count > 0 && failed == 0) {
    const ssize_t done = ::pread(::fileno(file.get()), to, static_cast<size_t>(count), offset);
    if (done < 0 && errno != EINTR)
      failed = errno;
    if (done == 0) { // beyond the end
      std::memset(to, 0, static_cast<size_t>(count));
      return;
    }
    if (done > 0) {
      to += done;
      offset += done;
      count -= done;
    }
  }
}

} // namespace k2c::runtime
