// Opens every path component by itself with O_NOFOLLOW, so that no link inside a bundle can lead out of it.
//
// A bundle is untrusted: its manifest may name an absolute path, climb with "..", or pass through a link that is
// exchanged between a check and an open. So a name is split first and refused unless every component is plain; then
// each folder is opened relative to the descriptor of the one before it:
//
//   open(bundle)  ->  openat(., "weights", O_DIRECTORY)  ->  openat(., "a.bin", O_NONBLOCK)  ->  fstat: a regular file
//
// The descriptor that fstat looked at is the one that is read or mapped. O_NONBLOCK keeps a FIFO from blocking the
// open. Text is read up to the caller's limit whatever size the system reports. The bundle's own folder and the user's
// files are opened as the user names them, links included.
#include "base/File.h"
#include "base/FormatBytes.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace k2c {

namespace {

Error badFile(const std::string &path, const std::string &message, const std::string &remedy) {
  return Error{K2RT_INVALID_BUNDLE, path, message, remedy};
}

Error openFailure(const std::string &path, int errorNumber) {
  if (errorNumber == ENOENT)
    return badFile(path, "is missing", "compile the bundle again, or copy the whole folder");
  if (errorNumber == ELOOP || errorNumber == ENOTDIR)
    return badFile(path, "is reached through a symbolic link or a file that is no folder",
                   "put the regular file there: a bundle does not follow links");
  return systemError(path, "cannot open", errorNumber);
}

/// Splits at '/'; empty when the path is absolute or has an empty, "." or ".." component.
std::vector<std::string> components(const std::string &relative) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= relative.size()) {
    size_t end = relative.find('/', begin);
    if (end == std::string::npos)
      end = relative.size();
    std::string part = relative.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos)
      return {};
    parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

Expected<Descriptor> openBeneath(const std::string &folder, const std::string &relative, struct stat &facts) {
  const std::string path = folder + "/" + relative;
  const std::vector<std::string> parts = components(relative);
  if (parts.empty())
    return badFile(path, "is not a path inside the bundle", "compile the bundle again");
  Descriptor at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (at.number < 0)
    return openFailure(folder, errno);
  for (size_t i = 0; i < parts.size(); ++i) {
    const int kind = i + 1 < parts.size() ? O_DIRECTORY : O_NONBLOCK;
    Descriptor next(::openat(at.number, parts[i].c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
    if (next.number < 0)
      return openFailure(path, errno);
    at = std::move(next);
  }
  if (::fstat(at.number, &facts) != 0)
    return systemError(path, "cannot read its size", errno);
  if (!S_ISREG(facts.st_mode))
    return badFile(path, "is not a regular file", "compile the bundle again");
  return at;
}

constexpr size_t block = 64 * 1024;

Status readAll(int descriptor, const std::string &path, int64_t limitBytes, k2rt_code code, std::string &text) {
  size_t filled = text.size();
  for (;;) {
    text.resize(filled + block);
    const ssize_t got = ::read(descriptor, text.data() + filled, block);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return systemError(path, "cannot read", errno);
    filled += static_cast<size_t>(got);
    text.resize(filled);
    if (static_cast<int64_t>(filled) > limitBytes)
      return Error{code, path, "is larger than " + formatBytes(limitBytes), ""};
    if (got == 0)
      return {};
  }
}

} // namespace

BytesRead readAt(int descriptor, int64_t offset, void *out, int64_t bytes) {
  BytesRead read;
  while (read.count < bytes) {
    const ssize_t got = ::pread(descriptor, static_cast<char *>(out) + read.count,
                                static_cast<size_t>(bytes - read.count), offset + read.count);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      read.error = errno;
    if (got <= 0)
      break;
    read.count += got;
  }
  return read;
}

Descriptor::~Descriptor() {
  if (number >= 0)
    ::close(number);
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : where(std::move(other.where)), base(std::exchange(other.base, nullptr)), begin(other.begin),
      bytes(std::exchange(other.bytes, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(where, other.where);
  std::swap(base, other.base);
  std::swap(begin, other.begin);
  std::swap(bytes, other.bytes);
  return *this;
}

MappedFile::~MappedFile() {
  if (base)
    ::munmap(base, static_cast<size_t>(bytes));
}

Expected<MappedFile> MappedFile::open(const std::string &folder, const std::string &relative, int64_t expectedBytes) {
  struct stat facts;
  Expected<Descriptor> file = openBeneath(folder, relative, facts);
  if (!file)
    return file.takeError();
  const std::string path = folder + "/" + relative;
  if (expectedBytes >= 0 && facts.st_size != expectedBytes)
    return badFile(path,
                   "has " + std::to_string(facts.st_size) + " bytes, the index says " + std::to_string(expectedBytes),
                   "copy the file again or run k2c pack");
  MappedFile mapped;
  mapped.where = path;
  if (Status done = mapped.map(file->number, 0, facts.st_size); !done)
    return done.takeError();
  return mapped;
}

Expected<MappedFile> MappedFile::openPart(const std::string &folder, const std::string &relative, int64_t offset,
                                          int64_t bytes) {
  struct stat facts;
  Expected<Descriptor> file = openBeneath(folder, relative, facts);
  if (!file)
    return file.takeError();
  MappedFile mapped;
  mapped.where = folder + "/" + relative;
  if (facts.st_size < offset + bytes)
    return badFile(mapped.where,
                   "has " + std::to_string(facts.st_size) + " bytes, the index names " +
                       std::to_string(offset + bytes) + " of them",
                   "copy the file again or run k2c pack");
  if (Status done = mapped.map(file->number, offset, bytes); !done)
    return done.takeError();
  return mapped;
}

Status MappedFile::map(int descriptor, int64_t offset, int64_t length) {
  begin = offset;
  if (length == 0)
    return {};
  void *address = ::mmap(nullptr, static_cast<size_t>(length), PROT_READ, MAP_SHARED, descriptor, offset);
  if (address == MAP_FAILED)
    return systemError(where, "cannot map " + formatBytes(length), errno);
  base = address;
  bytes = length;
  return {};
}

Expected<std::string> readBundleFile(const std::string &folder, const std::string &relative, int64_t limitBytes) {
  struct stat facts;
  Expected<Descriptor> file = openBeneath(folder, relative, facts);
  if (!file)
    return file.takeError();
  std::string text;
  Status read = readAll(file->number, folder + "/" + relative, limitBytes, K2RT_INVALID_BUNDLE, text);
  if (!read)
    return read.takeError();
  return text;
}

Expected<int64_t> visitBundleFile(const std::string &folder, const std::string &relative,
                                  const std::function<void(const char *data, size_t bytes)> &visit) {
  struct stat facts;
  Expected<Descriptor> file = openBeneath(folder, relative, facts);
  if (!file)
    return file.takeError();
  std::vector<char> piece(block);
  int64_t bytes = 0;
  for (;;) {
    const ssize_t got = ::read(file->number, piece.data(), piece.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return systemError(folder + "/" + relative, "cannot read", errno);
    if (got == 0)
      return bytes;
    visit(piece.data(), static_cast<size_t>(got));
    bytes += got;
  }
}

Expected<int64_t> bundleFileBytes(const std::string &folder, const std::string &relative) {
  struct stat facts;
  Expected<Descriptor> file = openBeneath(folder, relative, facts);
  if (!file)
    return file.takeError();
  return int64_t(facts.st_size);
}

Expected<std::string> readUserFile(const std::string &path, int64_t limitBytes) {
  Descriptor file(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number < 0)
    return Error{K2RT_INVALID_ARGUMENT, path, errno == ENOENT ? "no such file" : "cannot be opened", ""};
  struct stat facts;
  if (::fstat(file.number, &facts) == 0 && S_ISDIR(facts.st_mode))
    return Error{K2RT_INVALID_ARGUMENT, path, "is a folder, a file is needed", ""};
  std::string text;
  Status read = readAll(file.number, path, limitBytes, K2RT_INVALID_ARGUMENT, text);
  if (!read)
    return read.takeError();
  return text;
}

bool isInsidePath(const std::string &relative) { return !components(relative).empty(); }

bool bundleFileExists(const std::string &folder, const std::string &relative) {
  struct stat facts;
  return ::lstat((folder + "/" + relative).c_str(), &facts) == 0;
}

} // namespace k2c
